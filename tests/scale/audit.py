"""What the API server writes down of the requests of our programs: who asked for what, and when."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from gpufence.names import SYSTEM_NAMESPACE

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
