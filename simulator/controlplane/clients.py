"""
Ways into a running control plane: kubeconfig files, ServiceAccount tokens, kubectl, and the few
requests that starting and watching over it take.
"""

import http.client
import json
import ssl
import subprocess
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
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

JsonObject = dict[str, Any]
KUBECTL_SECONDS = 60.0


class RestClient:
    """
    Talks to servers of this control plane as one user.
    """

    def __init__(self, authority: Path, certificate: Path, key: Path) -> None:
        self._context = ssl.create_default_context(cafile=authority)
        self._context.load_cert_chain(certificate, key)

    def is_found(self, port: int, path: str) -> bool:
        """
        Return whether a path answers 200; a server that is not there yet does not.
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


class PlaneClients:
    """
    Issues identities of one control plane, and acts as its administrator.
    """

    def __init__(
        self,
        site: programs.PlaneLayout,
        authority: SimulatedAuthority,
        environment: Mapping[str, str],
    ) -> None:
        self._site = site
        self._authority = authority
        self._environment = environment
        self._port = site.ports[programs.API_SERVER]
        self._server = ServerIdentity(site.url(programs.API_SERVER), authority.pair.certificate)
        pair = authority.for_user(ADMIN)
        certificate, key = site.administrator
        self._rest = RestClient(
            site.authority,
            write_secret(certificate, pair.certificate),
            write_secret(key, pair.key),
        )

    def is_found(self, path: str, program: str = programs.API_SERVER) -> bool:
        """
        Return whether a program of the control plane answers a path with 200.
        """
        return self._rest.is_found(self._site.ports[program], path)

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

    def token(self, namespace: str, name: str, bound_to: JsonObject | None, seconds: int) -> str:
        """
        Let the API server issue a ServiceAccount's token, as it does for a pod's volume.
        """
        spec: JsonObject = {"expirationSeconds": seconds}
        if bound_to is not None:
            spec["boundObjectRef"] = bound_to
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": spec,
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = self._rest.post(self._port, path, request)
        return str(answer["status"]["token"])

    def reference(self, kind: str, path: str) -> JsonObject:
        """
        Name one existing object so exactly that its successor of the same name is not meant.
        """
        metadata = self._rest.get(self._port, path)["metadata"]
        return {
            "apiVersion": "v1",
            "kind": kind,
            "name": metadata["name"],
            "uid": metadata["uid"],
        }

    def kubectl(
        self, *arguments: str, stdin: str | None, check: bool, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """
        Run the real kubectl as administrator, with its caches in our folder.
        """
        done = subprocess.run(
            [self._site.binaries[programs.KUBECTL], *arguments],
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

    def _file(self, label: str) -> Path:
        return self._site.folder / f"{quote(label, safe='')}.kubeconfig"
