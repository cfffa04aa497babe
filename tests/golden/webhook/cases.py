"""
The golden pairs: a pod and where it stands on one side, what gpufence makes of it on the other.

`<name>.in.json` holds `pod`, `mode`, and where they matter `namespace` (annotations), `nodes` (as
the API server has them), `settings` (environment of the webhook) and `bind` (a node's name: what
the Binding gets). `<name>.out.json` holds what came of it, as far as `base.json` does not say it
for all. After a change on purpose, write the second halves anew with `GPUFENCE_GOLDEN=write make
test` and read the difference.
"""

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonpatch

from gpufence.mode import read_mode
from gpufence.nodes import GpuNode, read_node
from gpufence.plan import write_plan
from gpufence.settings import read_settings
from tests.golden.webhook.printing import Printer
from webhook.fleet import Fleet
from webhook.policy import WebhookPolicy
from webhook.rewrite import Refusal, Rewrite, Unchanged, rewrite
from webhook.rewrite.binding import exact_values
from webhook.settings import PodSettings

FOLDER = Path(__file__).parent
SOURCE = "# the start-up hook's source stands here\n"


@dataclass(frozen=True)
class Case:
    """One golden pair."""

    name: str
    given: dict[str, Any]

    @property
    def expected_file(self) -> Path:
        return FOLDER / f"{self.name}.out.json"

    def policy(self) -> WebhookPolicy:
        variables = self.given.get("settings", {"GPUFENCE_DEFAULT_CARD": "15360Mi"})
        return read_settings(PodSettings, variables).policy(SOURCE)

    def nodes(self) -> list[GpuNode]:
        units = self.policy().default.units
        found = [read_node(node, units) for node in self.given.get("nodes", [])]
        return [node for node in found if node is not None]

    def decide(self, pod: dict[str, Any]) -> Rewrite | Unchanged | Refusal:
        mode = read_mode(self.given["mode"], "mode")
        namespace = self.given.get("namespace", {})
        return rewrite(copy.deepcopy(pod), mode, namespace, Fleet(self.nodes()), self.policy())

    def outcome(self) -> dict[str, Any]:
        """Return what becomes of the pod, as the second half of the pair says it."""
        pod = self.given["pod"]
        said = self.decide(pod)
        if isinstance(said, Refusal):
            return {"refusal": said.message}
        if isinstance(said, Unchanged):
            return {"unchanged": said.reason, "warnings": list(said.warnings)}
        after = applied(pod, said)
        plan = json.loads(write_plan(said.plan))
        printer = Printer(plan, after["metadata"]["annotations"])
        outcome: dict[str, Any] = {
            "summary": said.summary,
            "warnings": list(said.warnings),
            "plan": printer.plan(),
            "operations": printer.operations(said.operations),
        }
        if "bind" in self.given:
            node = next(item for item in self.nodes() if item.name == self.given["bind"])
            outcome["binding"] = printer.binding(exact_values(after, node, self.policy()))
        return outcome


def cases() -> list[Case]:
    files = sorted(FOLDER.glob("*.in.json"))
    return [
        Case(path.name.removesuffix(".in.json"), json.loads(path.read_text(encoding="utf-8")))
        for path in files
    ]


def applied(pod: dict[str, Any], said: Rewrite) -> dict[str, Any]:
    """Return the pod as the API server would have it."""
    patch = json.loads(json.dumps(said.operations))
    result: dict[str, Any] = jsonpatch.apply_patch(copy.deepcopy(pod), patch)
    return result
