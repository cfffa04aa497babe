"""Who asked the API server what: its audit log, and a relay that counts bytes."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Self

from gpufence.names import SYSTEM_NAMESPACE
from tests.support.servers import LOOPBACK

_ACCOUNT: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
_POD: Final = "authentication.kubernetes.io/pod-name"
_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{SYSTEM_NAMESPACE}"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True)
class Asked:
    """One request of a program; `pod` is whose token it came with, where that is bound to one."""

    at: float
    account: str
    pod: str
    verb: str
    resource: str
    code: int

    @property
    def what(self) -> str:
        return f"{self.verb} {self.resource}"


class Audit:
    """The API server's log, in a folder of ours."""

    def __init__(self, folder: Path) -> None:
        self._policy, self._log = folder / "audit-policy.json", folder / "audit.log"
        self._policy.write_text(json.dumps(_POLICY), encoding="utf-8")

    @property
    def options(self) -> tuple[str, ...]:
        """Return what makes the API server write it."""
        return f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}"

    def asked(self, account: str, since: float, until: float) -> list[Asked]:
        """Return the requests of an account between two moments, each watch when it began."""
        return [
            item for item in self._all() if item.account == account and since <= item.at < until
        ]

    def _all(self) -> Iterator[Asked]:
        with self._log.open(encoding="utf-8") as lines:
            for line in lines:
                with_end = line.endswith("\n")
                if with_end and (item := _read(json.loads(line))) is not None:
                    yield item


def _read(event: dict[str, object]) -> Asked | None:
    """Read one line; a watch has two of them, of which the second is no request."""
    verb, user = str(event["verb"]), event["user"]
    if verb == "watch" and event["stage"] == "ResponseComplete":
        return None
    assert isinstance(user, dict)
    about, answer = event.get("objectRef") or {}, event.get("responseStatus") or {}
    assert isinstance(about, dict)
    assert isinstance(answer, dict)
    resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    return Asked(
        at=datetime.fromisoformat(str(event["requestReceivedTimestamp"])).timestamp(),
        account=str(user["username"]).removeprefix(_ACCOUNT),
        pod="".join((user.get("extra") or {}).get(_POD, [])),
        verb=verb,
        resource=resource or str(event["requestURI"]).partition("?")[0],
        code=int(answer.get("code") or 0),
    )


_CHUNK = 2**16


class Relay:
    """Use it as a context manager; `asked` and `answered` are bytes, handshakes included."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._port = 0
        self.asked = 0
        self.answered = 0
        self.connections = 0

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _listen(self) -> int:
        server = await asyncio.start_server(self._connected, LOOPBACK, 0, backlog=1024)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _connected(
        self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        try:
            server, to_server = await asyncio.open_connection(LOOPBACK, self._target)
        except OSError:
            to_client.close()
            return
        self.connections += 1
        await asyncio.gather(
            self._hand_on(client, to_server, asking=True),
            self._hand_on(server, to_client, asking=False),
        )

    async def _hand_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, asking: bool
    ) -> None:
        with suppress(ConnectionError):
            while chunk := await source.read(_CHUNK):
                if asking:
                    self.asked += len(chunk)
                else:
                    self.answered += len(chunk)
                target.write(chunk)
                await target.drain()
        target.close()
