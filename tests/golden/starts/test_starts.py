"""
What containers start, in every way that people start it, and what becomes of each.

Each file holds one kind of program: `given` is a container, `then` what it runs, what of it is
known to be read, which of its arguments change and which values it is told, in `cap` with
`gpufence.io/args`; and why `evict` without that refuses it, where it does. After a change on
purpose, write the second halves anew with `GPUFENCE_GOLDEN=write make test` and read the
difference.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from gpufence import names
from gpufence.mode import Mode
from gpufence.plan import ContainerPlan
from tests.support.builders import pod
from tests.support.golden import assert_reviewed
from tests.support.rewriting import decide, environment, rewritten, variables
from webhook.rewrite import Refusal, Unchanged
from webhook.rewrite.containers import SETTABLE

FOLDER = Path(__file__).parent
KINDS = sorted(path.stem for path in FOLDER.glob("*.json"))


def cases(kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))
    return found


def manifest(given: dict[str, Any], *, args: bool) -> dict[str, Any]:
    """Build a pod of 6 GiB on the usual card."""
    container: dict[str, Any] = {
        "name": "main",
        **{key: given[key] for key in ("image", "command", "args") if key in given},
        "env": variables(**given.get("env", {})),
        "resources": {"limits": {names.NVIDIA_GPU: "1"}},
    }
    said = {names.MEMORY: given.get("memory", "6Gi")}
    if args:
        said[names.ARGS] = "enabled"
    if "framework" in given:
        said[names.FRAMEWORK] = given["framework"]
    return pod(container, annotations=said)


def _plain() -> dict[str, str]:
    """Return what a container of 6 GiB is told of which nothing is known."""
    after, said = rewritten(manifest({"image": "x"}, args=False))
    seen = environment(after)
    return {row.env: seen[row.env] or "" for row in said.plan.containers["main"].settings}


PLAIN = _plain()


def outcome(given: dict[str, Any]) -> dict[str, Any]:
    """Return what becomes of a container, as its file says it."""
    before = manifest(given, args=True)
    after, said = rewritten(before)
    plan: ContainerPlan = said.plan.containers["main"]
    own, new = before["spec"]["containers"][0], after["spec"]["containers"][0]
    refused = decide(manifest(given, args=False), Mode.EVICT)
    seen = environment(after)
    told = {item.env: seen[item.env] for item in plan.settings if item.slot}
    assert told.keys() <= SETTABLE
    plain = {env: text for env, text in told.items() if PLAIN.get(env) == text}
    if not plan.runs:  # what everybody is told is in the other golden files
        told = {env: told[env] for env in (names.PYTORCH_CONF,) if env in told}
    elif len(plain) > len(PLAIN) / 2:
        less = dict.fromkeys(sorted(PLAIN.keys() - told.keys()))
        more = {env: text for env, text in told.items() if env not in plain}
        told = {"others": "as a container of which nothing is known", **less, **more}
    return {
        "runs": plan.runs or None,
        "reads": list(plan.reads),
        **{key: new[key] for key in ("command", "args") if own.get(key) != new.get(key)},
        "told": told,
        **({"warnings": list(said.warnings)} if said.warnings else {}),
        **({"refused": refused.message} if isinstance(refused, Refusal) else {}),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_container_gets_what_its_file_says(kind: str) -> None:
    """What runs, what it reads, what it is told and why it is refused stand beside it."""
    found = [{"given": item["given"], "then": outcome(item["given"])} for item in cases(kind)]
    lines = [json.dumps(item, indent=1, ensure_ascii=False) for item in found]

    assert_reviewed(FOLDER / f"{kind}.json", "[\n" + ",\n".join(lines) + "\n]\n")


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_pass_changes_nothing(kind: str) -> None:
    """What a pass has made of a container, another one leaves alone."""
    for item in cases(kind):
        after, _ = rewritten(manifest(item["given"], args=True))

        assert isinstance(decide(copy.deepcopy(after)), Unchanged), item["given"]["name"]


def test_there_are_enough_starts() -> None:
    """At least a hundred and twenty containers are held, each under a name of its own."""
    named = [(kind, item["given"]["name"]) for kind in KINDS for item in cases(kind)]

    assert len(named) >= 120
    assert len(named) == len(set(named))


def test_every_known_program_is_started() -> None:
    """There is a container for each program that gpufence knows."""
    run = {item["then"]["runs"] for kind in KINDS for item in cases(kind)}

    assert set(names.ENGINES) == run - {None}
