"""
What happens first: a namespace opts in, a pod is rewritten, its process stays inside its fence.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from gpufence import names
from simulator.demo.narrator import StoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulator.demo.cast import Cast
    from simulator.demo.narrator import Narrator
    from simulator.demo.stage import Stage

PATIENCE_SECONDS = 60.0


def tell(stage: Stage, say: Narrator, cast: Cast) -> None:
    """Tell the story; raises `StoryError` where it does not happen."""
    _unfenced(stage, say, cast)
    _opt_in(stage, say)
    _rewritten(stage, say, cast)
    _kept_inside(stage, say)


def _unfenced(stage: Stage, say: Narrator, cast: Cast) -> None:
    say.chapter("1. A namespace that did not opt in")
    say.tell(
        "Two T4 cards of 15 GiB, shared by gpushare, which only counts. This pod asks for 3 GiB "
        f"and runs {cast.trainer_is} that wants 6 GiB. Nobody stops it."
    )
    say.kubectl("create", "namespace", "wild")
    wait_for(lambda: stage.takes_pods("wild"), "pods can be made in the namespace")
    say.kubectl("apply", "-n", "wild", "-f", "-", stdin=cast.trainer)
    pod = wait_for(lambda: running_pod(stage, "wild", "trainer"), "the pod runs")
    say.expect(
        not any(key.startswith(names.PREFIX) for key in annotations_of(pod)),
        "the pod is as its author wrote it: the webhook was not even called",
    )
    taken = wait_for(lambda: _at_least(stage, 6 * 1024), "it took more than it asked for")
    say.expect(taken, f"it declared 3072 MiB and holds {taken} MiB of the card")
    say.kubectl("delete", "namespace", "wild", "--wait=false")


def _opt_in(stage: Stage, say: Narrator) -> None:
    say.chapter("2. A namespace opts in")
    say.tell("A label is all a user does. No image, no command and no code changes.")
    say.kubectl("create", "namespace", "vision")
    say.kubectl("label", "namespace", "vision", f"{names.MODE}=cap")
    wait_for(lambda: stage.fences("vision"), "the API server calls the webhook")


def _rewritten(stage: Stage, say: Narrator, cast: Cast) -> None:
    say.chapter("3. The same pod again")
    say.kubectl("apply", "-n", "vision", "-f", "-", stdin=cast.trainer, quiet=True)
    pod = wait_for(lambda: running_pod(stage, "vision", "trainer"), "the pod runs")
    annotations = annotations_of(pod)
    say.expect(names.PLAN in annotations, "the webhook rewrote it on the way in")
    say.tell("What changed, for a person:")
    say.kubectl("get", "pod", "-n", "vision", "trainer", "-o", jsonpath(names.SUMMARY))
    say.tell("And what the container is told, computed for the card of the node it landed on:")
    say.show(_environment_table(pod, annotations))
    say.expect(
        annotations.get(names.NODE) == stage.node.name,
        f"exact for node {stage.node.name}, written in the same moment as it was chosen",
    )


def _kept_inside(stage: Stage, say: Narrator) -> None:
    say.chapter("4. What its process really does")
    log = wait_for(
        lambda: _log(stage) if "out of memory" in _log(stage).lower() else "",
        "the framework met its own limit",
    )
    say.show(log)
    kept = held(stage, "vision", "trainer")
    say.expect(
        0 < kept <= 3 * 1024, f"it holds {kept} MiB, context included, of the 3072 MiB declared"
    )
    say.tell(
        "The framework said no to itself, long before its neighbour would have died of it. The "
        "whole story stands on the pod: kubectl describe pod -n vision trainer."
    )


def _environment_table(pod: dict[str, Any], annotations: dict[str, str]) -> str:
    rows = []
    for item in pod["spec"]["containers"][0]["env"]:
        path = item.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        key = path.removeprefix("metadata.annotations['").removesuffix("']")
        value = annotations.get(key, "") if key != path else item.get("value", "")
        rows.append(f"{item['name']:32} {value}")
    return "\n".join(rows)


def jsonpath(key: str) -> str:
    return "jsonpath={.metadata.annotations." + key.replace(".", r"\.") + r'}{"\n"}'


def running_pod(stage: Stage, namespace: str, name: str) -> dict[str, Any]:
    """Return a pod once it runs."""
    text = stage.plane.kubectl("get", "pod", "-n", namespace, name, "-o", "json").stdout
    pod: dict[str, Any] = json.loads(text)
    return pod if pod["status"].get("phase") == "Running" else {}


def annotations_of(pod: dict[str, Any]) -> dict[str, str]:
    annotations: dict[str, str] = pod["metadata"].get("annotations", {})
    return annotations


def held(stage: Stage, namespace: str, name: str) -> int:
    """Return the MiB that the pod's processes hold, as the simulated driver counts them."""
    pids = set(stage.node.pids(namespace, name))
    cards = stage.node.state.cards
    return sum(use.memory for card in cards for use in card.uses if use.pid in pids) // 2**20


def _at_least(stage: Stage, mebibytes: int) -> int:
    taken = held(stage, "wild", "trainer")
    return taken if taken >= mebibytes else 0


def _log(stage: Stage) -> str:
    return stage.node.log("vision", "trainer", "trainer")


def wait_for(look: Callable[[], Any], what: str) -> Any:  # noqa: ANN401 - whatever is waited for
    """Look until there is something to see, and return it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (answer := look()):
        if time.monotonic() > deadline:
            raise StoryError(f"waited {PATIENCE_SECONDS:.0f} s in vain until {what}")
        time.sleep(0.1)
    return answer
