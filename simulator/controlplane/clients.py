"""
Ways into a running control plane: kubeconfig files, tokens, kubectl, and a look whether it answers.
"""

import http.client
import json
import ssl
import subprocess
from collections.abc import Mapping
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from simulator.controlplane import programs
from simulator.controlplane.errors import RequestError
from simulator.controlplane.identities import (
    ADMIN,
    ServerIdentity,
    SimulatedAuthority,
    User,
    with_certificate,
    with_token,
    write_secret,
)
from simulator.controlplane.programs import LOOPBACK

KUBECTL_SECONDS = 60.0
ANSWER_SECONDS = 30.0
NOTHING: Mapping[str, str] = MappingProxyType({})


class PlaneClients:
    """Issues identities of one control plane, and acts as its administrator."""

    def __init__(
        self,
        layout: programs.PlaneLayout,
        authority: SimulatedAuthority,
        environment: Mapping[str, str],
    ) -> None:
        self._layout = layout
        self._authority = authority
        self._environment = environment
        self._server = ServerIdentity(layout.url(programs.API_SERVER), authority.pair.certificate)
        pair = authority.for_user(ADMIN)
        certificate, key = layout.administrator
        self._context = ssl.create_default_context(cafile=layout.authority)
        self._context.load_cert_chain(
            write_secret(certificate, pair.certificate), write_secret(key, pair.key)
        )

    def is_found(self, path: str, program: str = programs.API_SERVER) -> bool:
        """Return whether a program answers a path with 200; one that is not there yet does not."""
        try:
            return self._answer("GET", path, program=program)[0] == HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False

    def request(self, method: str, path: str, body: object = None) -> Mapping[str, Any]:
        """
        Ask the API server as administrator, for a small part of what kubectl costs; return the
        object that it answers with. What is to be deleted may be gone.

        Raises RequestError where it says no, or nothing.
        """
        try:
            status, said = self._answer(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            raise RequestError(f"{method} {path} got no answer: {error}") from error
        answer: dict[str, Any] = json.loads(said)
        gone = method == "DELETE" and status == HTTPStatus.NOT_FOUND
        if status >= HTTPStatus.BAD_REQUEST and not gone:
            raise RequestError(f"{method} {path} ended with {status}: {answer.get('message')}")
        return answer

    def kubeconfig(self, label: str, user: User) -> Path:
        """
        Return a file that makes its reader the user; the second request finds the first one's.
        """
        path = self._file(label)
        if not path.exists():
            pair = self._authority.for_user(user)
            write_secret(path, with_certificate(self._server, pair))
        return path

    def token_kubeconfig(self, label: str, token: str) -> Path:
        """
        Return a file that makes its reader the holder of the token, in place of an earlier one.
        """
        return write_secret(self._file(label), with_token(self._server, token))

    def kubectl(
        self,
        *arguments: str,
        stdin: str | None = None,
        check: bool = True,
        environment: Mapping[str, str] = NOTHING,
    ) -> subprocess.CompletedProcess[str]:
        """
        Run the real kubectl as administrator, with its caches in our folder.

        Plugins are found on the PATH of the assets. Raises RequestError where kubectl ended with a
        status that is not zero, unless `check` is off.
        """
        done = subprocess.run(
            [self._layout.binaries[programs.KUBECTL], *arguments],
            env={
                **self._environment,
                "KUBECONFIG": str(self.kubeconfig("admin", ADMIN)),
                **environment,
            },
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=KUBECTL_SECONDS,
            check=False,
        )
        if check and done.returncode != 0:
            raise RequestError(
                f"kubectl {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}"
            )
        return done

    def _answer(
        self, method: str, path: str, body: object = None, *, program: str = programs.API_SERVER
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(
            LOOPBACK, self._layout.ports[program], context=self._context, timeout=ANSWER_SECONDS
        )
        with closing(connection):
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json"},
            )
            response = connection.getresponse()
            return response.status, response.read()

    def _file(self, label: str) -> Path:
        return self._layout.folder / f"{quote(label, safe='')}.kubeconfig"
