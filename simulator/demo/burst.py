"""Two models on one card: one lends what it does not use, the other gives it back in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence import names
from simulator.compiled import default_cache
from simulator.demo.eviction import reasons
from simulator.demo.stage import StagePlan
from simulator.demo.story import held, jsonpath, running_pod, wait_for

if TYPE_CHECKING:
    from simulator.demo.narrator import Narrator
    from simulator.demo.stage import Stage

LENDER, BORROWER = "vision", "speech"
LENT_SECONDS, ASKED_SECONDS = 4, 6
PLAN = StagePlan(
    cards="T4",
    cards_are="a simulated T4 card",
    agent={
        "GPUFENCE_ACTIVITY_SECONDS": "0.5",
        "GPUFENCE_LEND_AFTER": f"{LENT_SECONDS}",
        "GPUFENCE_GIVE_BACK": f"{ASKED_SECONDS}",
    },
)
_EVENTS = "custom-columns=REASON:.reason,MESSAGE:.message"
_GIB: Final = 1024
_MODEL = """\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  annotations: {{{annotations}}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: model
    image: gpufence/workload
    args: [{program}--context, 300Mi, "{script}"]
    env: [{variable}]
    resources:
      limits: {{aliyun.com/gpu-mem: 6}}
"""
_BURST = f"{names.BURST}: 12Gi, {names.HEADROOM}: auto"
_HOOKED = f"{_BURST}, {names.PYTHON_HOOK}: pythonpath"


def tell(stage: Stage, say: Narrator, wheels: str = "") -> None:
    """Tell the story; raises `StoryError` where it does not happen."""
    _idle(stage, say)
    _borrowed(stage, say, wheels)
    _given_back(stage, say)
    _evicted(stage, say)


def _idle(stage: Stage, say: Narrator) -> None:
    say.chapter("1. A model that waits")
    say.tell(
        "One T4 card of 15 GiB for two models, each promised 6 GiB. The first has loaded its "
        "weights, 2 GiB, and waits for requests. What it is promised stands empty."
    )
    for namespace in (LENDER, BORROWER):
        say.kubectl("create", "namespace", namespace, quiet=True)
    say.kubectl("label", "namespace", LENDER, BORROWER, f"{names.MODE}=evict", quiet=True)
    wait_for(lambda: all(map(stage.fences, (LENDER, BORROWER))), "the webhook is called")
    grows = "; ".join(f"hold 2Gi; await $(SIGNS)/{one}; grow 1Gi/s to 5400Mi" for one in "13")
    script = grows.replace("; hold", "; await $(SIGNS)/2; hold")
    signs = f"{{name: SIGNS, value: {stage.folder}}}"
    lender = _model("first", "", "--on-oom, wait, ", script, signs)
    say.kubectl("apply", "-n", LENDER, "-f", "-", stdin=lender, quiet=True)
    wait_for(lambda: held(stage, LENDER, "first") > 2 * _GIB, "the first model is loaded")


def _borrowed(stage: Stage, say: Narrator, wheels: str) -> None:
    say.chapter("2. Its neighbour needs more for a moment")
    say.tell(
        f"The second, {_who(wheels)}, is promised 6 GiB as well, and may use 12 while they are "
        "free. It needs 10 GiB for a batch, and then 4; its framework keeps the rest in its cache."
    )
    say.kubectl("apply", "-n", BORROWER, "-f", "-", stdin=_borrower("second", _HOOKED, wheels))
    wait_for(lambda: running_pod(stage, BORROWER, "second"), "the second model runs")
    say.kubectl("get", "pod", "-n", BORROWER, "second", "-o", jsonpath(names.SUMMARY))
    wait_for(lambda: held(stage, BORROWER, "second") > 10 * _GIB, "it holds 10 GiB")
    say.kubectl("gpufence", "top", "-A")
    say.expect(
        names.EVICTED not in reasons(stage), "it borrows what the idle one is owed, and stays"
    )


def _given_back(stage: Stage, say: Narrator) -> None:
    say.chapter("3. The first wakes up")
    say.tell(
        "Requests come, and the first grows to what it was promised. The card becomes full, and "
        "the file that gpufence mounted beside the second one's Python gives its cache back."
    )
    _sign(stage, 1)
    wait_for(lambda: held(stage, LENDER, "first") > 5 * _GIB, "the first has its memory")
    left = held(stage, BORROWER, "second")
    say.kubectl("gpufence", "top", "-A")
    say.expect(left < 6 * _GIB, f"the second gave back: it holds {left} MiB, within its request")
    say.expect(names.EVICTED not in reasons(stage), "nothing was evicted")
    say.kubectl("delete", "pod", "-n", BORROWER, "second", "--wait=false", quiet=True)
    _sign(stage, 2)


def _evicted(stage: Stage, say: Narrator) -> None:
    say.chapter("4. The same without the file")
    say.tell(
        "A program that keeps what it has borrowed is asked for it by its eviction, "
        f"{ASKED_SECONDS} s after the first misses its memory (15 s by default)."
    )
    wait_for(lambda: not held(stage, BORROWER, "second"), "the second has gone")
    wait_for(lambda: held(stage, LENDER, "first") < 3 * _GIB, "the first waits again")
    manifest = _borrower("keeper", _BURST, "")
    say.kubectl("apply", "-n", BORROWER, "-f", "-", stdin=manifest, quiet=True)
    wait_for(lambda: held(stage, BORROWER, "keeper") > 10 * _GIB, "the third holds 10 GiB")
    _sign(stage, 3)
    wait_for(lambda: names.EVICTED in reasons(stage), "the borrower is evicted")
    kept = wait_for(lambda: _at_least(stage, 5 * _GIB), "the first has its memory")
    chosen = "involvedObject.name=keeper"
    say.kubectl("get", "events", "-n", BORROWER, "--field-selector", chosen, "-o", _EVENTS)
    say.expect(kept, f"the first has what it was promised, and holds {kept} MiB")


def _at_least(stage: Stage, amount: int) -> int:
    taken = held(stage, LENDER, "first")
    return taken if taken >= amount else 0


def _borrower(name: str, annotations: str, wheels: str) -> str:
    program = f"--wheels, {wheels}, " if wheels else "--framework, torch, "
    script = "hold 2Gi; after 6s hold 10Gi; after 3s need 4Gi"
    variable = f"{{name: XDG_CACHE_HOME, value: {default_cache().parent}}}" if wheels else ""
    return _model(name, annotations, program, script, variable)


def _model(name: str, annotations: str, program: str, script: str, variable: str) -> str:
    return _MODEL.format(**locals())


def _who(wheels: str) -> str:
    return f"a real PyTorch ({wheels})" if wheels else "a PyTorch (simulated)"


def _sign(stage: Stage, number: int) -> None:
    (stage.folder / f"{number}").touch()
