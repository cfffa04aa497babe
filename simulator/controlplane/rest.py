"""
Ask the API server for the few things that starting and watching over it take.
"""

import http.client
import json
import ssl
from http import HTTPStatus
from pathlib import Path
from typing import Any

from simulator.controlplane.errors import RequestError
from simulator.controlplane.ports import LOOPBACK

JsonObject = dict[str, Any]


class Rest:
    """
    Talks to servers of this control plane as one user.
    """

    def __init__(self, authority: Path, certificate: Path, key: Path) -> None:
        self._context = ssl.create_default_context(cafile=authority)
        self._context.load_cert_chain(certificate, key)

    def is_found(self, port: int, path: str) -> bool:
        """
        Tell whether a path answers 200; a server that is not there yet does not.
        """
        try:
            status, _ = self._ask(port, "GET", path, None)
        except (OSError, http.client.HTTPException):
            return False
        return status == HTTPStatus.OK

    def get(self, port: int, path: str) -> JsonObject:
        """
        Read an object.
        """
        return self._object(port, "GET", path, None)

    def post(self, port: int, path: str, body: JsonObject) -> JsonObject:
        """
        Create an object.
        """
        return self._object(port, "POST", path, body)

    def _object(self, port: int, method: str, path: str, body: JsonObject | None) -> JsonObject:
        try:
            status, content = self._ask(port, method, path, body)
        except (OSError, http.client.HTTPException) as error:
            raise RequestError(
                f"{method} {path}: the API server did not answer: {error}"
            ) from error
        if status >= HTTPStatus.BAD_REQUEST:
            raise RequestError(f"{method} {path}: {status} {content.decode(errors='replace')}")
        answer: JsonObject = json.loads(content)
        return answer

    def _ask(self, port: int, method: str, path: str, body: JsonObject | None) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(LOOPBACK, port, context=self._context, timeout=10)
        try:
            connection.request(
                method,
                path,
                body=None if body is None else json.dumps(body),
                headers={"Content-Type": "application/json", "Accept": "application/json"},
            )
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()
