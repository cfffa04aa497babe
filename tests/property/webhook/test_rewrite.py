"""What holds for every pod and patch, with jsonpatch as the judge of the operations."""

import copy
import re
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufence import names
from gpufence.candidates import usable_cards
from gpufence.mode import Mode
from gpufence.need.applied import AppliedProfile
from gpufence.nodes import GpuNode
from gpufence.plan import Plan
from gpufence.pods import read_pod
from tests.property.webhook.strategies import (
    manifests,
    namespaces,
    nodes,
    policies,
    profiles,
)
from tests.support.builders import phases
from tests.support.rewriting import applied, environment
from tests.support.running import examples
from webhook.driver_limits import VARIABLES as DRIVER_VARIABLES
from webhook.fleet import Fleet
from webhook.policy import WebhookPolicy
from webhook.rewrite import Refusal, Rewrite, Unchanged, rewrite
from webhook.rewrite.binding import exact_values
from webhook.rewrite.containers import SETTABLE, slot_of
from webhook.rewrite.patch import MOST_OPERATIONS, Patch


class Case(NamedTuple):
    """A pod, and all that its rewriting depends on."""

    pod: dict[str, Any]
    mode: Mode
    namespace: dict[str, str]
    fleet: Fleet
    policy: WebhookPolicy
    profile: AppliedProfile | None = None

    def rewrite(self, pod: dict[str, Any] | None = None) -> Rewrite | Unchanged | Refusal:
        item = self.pod if pod is None else pod
        given = (self.mode, self.namespace, self.fleet, self.policy, self.profile)
        return rewrite(copy.deepcopy(item), *given)


def cases(*modes: Mode) -> st.SearchStrategy[Case]:
    fleets = st.lists(nodes(), max_size=3).map(Fleet)
    mode = st.sampled_from(modes or tuple(Mode))
    return st.builds(Case, manifests(), mode, namespaces, fleets, policies, profiles)


@examples(100)
@given(cases())
def test_a_patch_is_whole_and_changes_what_is_ours_alone(case: Case) -> None:
    """
    Applied elsewhere it leads to the pod as rewritten here, a second pass finds nothing to do, and
    whatever gpufence has no business with is the same.
    """
    pod = copy.deepcopy(case.pod)
    said = rewrite(pod, case.mode, case.namespace, case.fleet, case.policy, case.profile)
    if isinstance(said, Rewrite):
        result = applied(case.pod, said)

        assert result == pod
        assert _foreign(case.pod) == _foreign(result)
        assert isinstance(case.rewrite(result), Unchanged)


@examples(100)
@given(cases(Mode.CAP, Mode.EVICT))
def test_every_variable_reads_a_value_within_the_share(case: Case) -> None:
    """
    Each stands once in its container and reads a slot of its own that an annotation holds; whatever
    a user wishes, no fraction is above limit / card on the card it was reckoned for.
    """
    said = case.rewrite()
    if isinstance(said, Rewrite):
        result = applied(case.pod, said)
        written = _slots(result["metadata"]["annotations"])
        planned, read = [], []
        for name, container in said.plan.containers.items():
            env = _container(result, name).get("env", [])
            ours = [row for row in container.settings if row.slot]
            planned += [row.slot for row in ours]
            last = {entry["name"]: entry for entry in env}  # of a name that stands twice it counts
            read += [slot_of(entry) for each, entry in last.items() if each in SETTABLE]
            counted = Counter(entry["name"] for entry in env)
            assert {row.env: 1 for row in ours} == {row.env: counted[row.env] for row in ours}
            for row in ours:
                if row.limit_bytes and row.card_bytes:
                    text = result["metadata"]["annotations"][names.ENV_PREFIX + row.slot]
                    _assert_within(row.form, text, row.limit_bytes, row.card_bytes)
        slots = sorted(slot for slot in read if slot is not None)
        held = sorted(key.removeprefix(names.ENV_PREFIX) for key in written)

        assert held == sorted(planned) == slots


@given(cases(Mode.CAP, Mode.EVICT))
def test_who_runs_together_fits_together(case: Case) -> None:
    """The caps of all processes of containers that run together sum to at most the pod's limit."""
    said = case.rewrite()
    if isinstance(said, Rewrite) and said.plan.limit_bytes is not None:
        for phase in phases(read_pod(case.pod)):
            caps = [_caps(said.plan, item.name) for item in phase]

            assert sum(caps) <= said.plan.limit_bytes


@given(cases(Mode.OBSERVE))
def test_observe_changes_nothing_that_a_container_sees(case: Case) -> None:
    """In observe a pod's spec stays as it is, and so does what its variables read."""
    said = case.rewrite()
    told = {names.GROWTH, names.OOM_MESSAGE}.isdisjoint(case.pod["metadata"].get("annotations", {}))
    if isinstance(said, Rewrite) and told:
        after = applied(case.pod, said)

        assert case.pod["spec"] == after["spec"]
        for item in read_pod(case.pod).containers:
            assert environment(case.pod, item.name) == environment(after, item.name)


@given(cases(Mode.CAP), nodes())
def test_a_binding_changes_only_what_is_there(case: Case, node: GpuNode) -> None:
    """At binding no slot appears that the pod does not read, and none is lost."""
    said = case.rewrite()
    if isinstance(said, Rewrite):
        bound = applied(case.pod, said)
        before = _slots(bound["metadata"]["annotations"])
        exact = exact_values(bound, node, case.policy)

        assert _slots(exact) <= before
        if exact:
            certain = usable_cards(read_pod(bound), node)
            assert (node.name if certain else None) == exact.get(names.NODE)
            assert _slots(exact) in (set(), before)


BY_DRIVER = (names.DRIVER_REQUEST, names.DRIVER_LIMIT)  # literals, since a slot may be empty


@given(cases(Mode.CAP, Mode.EVICT))
def test_a_container_that_joins_later_is_told_too(case: Case) -> None:
    """
    After another webhook has added a container, the second pass leaves what the others have but
    for the driver's limit, and all of it where their parts of the limit are still the same.
    """
    said = case.rewrite()
    if isinstance(said, Rewrite):
        once = applied(case.pod, said)
        joined = copy.deepcopy(once)
        joined["spec"]["containers"].insert(0, {"name": "proxy", "image": "proxy"})
        second = case.rewrite(joined)
        if isinstance(second, Rewrite):
            twice = applied(joined, second)
            for name, planned in said.plan.containers.items():
                first, later = _container(once, name), _container(twice, name)
                kept = [each for each in first.get("env", []) if each["name"] not in BY_DRIVER]
                assert all(entry in later["env"] for entry in kept)
                now = second.plan.containers.get(name)
                if now is not None and now.limit_bytes == planned.limit_bytes:
                    assert first == later


def _slots(annotations: dict[str, str]) -> set[str]:
    return {key for key in annotations if key.startswith(names.ENV_PREFIX)}


def _caps(plan: Plan, name: str) -> int:
    container = plan.containers.get(name)
    if container is None or container.cap_bytes is None:
        return 0
    return container.cap_bytes * container.processes


def _assert_within(form: str, text: str, limit: int, card: int) -> None:
    share = Fraction(min(limit, card), card)
    if form == "pytorch":
        text = text.rpartition("per_process_memory_fraction:")[2].split(",")[0]
    if form in ("fraction", "share", "pytorch"):
        assert 0 < Fraction(text) <= share
    elif form == "bytes" and not text.endswith("%"):
        assert 0 < int(text) <= limit


def _container(pod: dict[str, Any], name: str) -> dict[str, Any]:
    spec = pod["spec"]
    found = [*spec.get("initContainers", []), *spec["containers"]]
    return next(item for item in found if item["name"] == name)


_INSERTED = re.compile(rf" --[a-z-]+[= ]\S*{names.ENV_SERVER}\S*")


def _foreign(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod without all that gpufence may add, drop or replace."""
    rest = copy.deepcopy(pod)
    kept = rest["metadata"].pop("annotations", {})
    for field in ("schedulerName", "tolerations", "volumes", "affinity"):
        rest["spec"].pop(field, None)
    for item in [*rest["spec"]["containers"], *rest["spec"].get("initContainers", [])]:
        item["env"] = [
            entry
            for entry in item.get("env", [])
            if entry["name"] not in SETTABLE | {names.PYTHON_PATH, *DRIVER_VARIABLES}
        ]
        for field in ("volumeMounts", "terminationMessagePolicy"):
            item.pop(field, None)
        item["args"] = [text for text in item.get("args", []) if names.ENV_SERVER not in text]
        item["command"] = [_INSERTED.sub("", text) for text in item.get("command", [])]
    rest["kept"] = {key: text for key, text in kept.items() if key == "team/owner"}
    return rest


_keys = st.sampled_from(["a", "b/c", "d~e", "f", "~1", "g.io/h"])
_few = st.integers(0, 3)
_many = st.integers(MOST_OPERATIONS - 2, MOST_OPERATIONS + 1)


def document() -> dict[str, Any]:
    return {
        "metadata": {"labels": {"x": "1"}, "annotations": {"a": "1"}},
        "spec": {"args": ["0", "1", "2"], "env": [{"name": str(n)} for n in range(5)]},
    }


class Changes:
    """One change after another, each of what is there by then."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw
        self.patch = Patch(document())

    def update(self) -> None:
        path = self.draw(st.sampled_from([("metadata", "labels"), ("metadata", "annotations")]))
        self.patch.update(path, self.draw(st.dictionaries(_keys, st.text(max_size=3))))

    def update_many(self, count: int) -> None:
        made = {f"k{n}": "v" for n in range(count)}
        self.patch.update(("metadata", "annotations"), made)

    def set_field(self) -> None:
        self.patch.update(("spec",), {"schedulerName": self.draw(st.text(max_size=3))})

    def remove(self) -> None:
        labels = self.patch.at(("metadata", "labels"))
        self.patch.remove(("metadata", "labels"), *self.draw(_some(sorted(labels))))

    def extend(self) -> None:
        path = ("spec", self.draw(st.sampled_from(["args", "tolerations"])))
        self.patch.extend(path, [str(n) for n in range(self.draw(_few | _many))])

    def replace(self) -> None:
        last = len(self.patch.document["spec"]["args"]) - 1
        if last >= 0:
            at = self.draw(st.integers(0, last))
            self.patch.replace(("spec", "args"), at, self.draw(st.text(max_size=3)))

    def drop(self) -> None:
        positions = range(len(self.patch.document["spec"]["args"]))
        self.patch.drop_items(("spec", "args"), sorted(self.draw(_some(positions))))

    def change_item(self) -> None:
        at = self.draw(st.integers(0, 4))
        self.patch.update(("spec", "env", at), self.draw(st.dictionaries(_keys, st.text())))


def _some(items: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(items), unique=True, max_size=5) if items else st.just([])


_CHANGES = (
    Changes.update,
    Changes.set_field,
    Changes.remove,
    Changes.extend,
    Changes.replace,
    Changes.drop,
    Changes.change_item,
)


@pytest.mark.parametrize("last", _CHANGES)
@given(
    data=st.data(),
    many=st.sampled_from([0, 1, *range(MOST_OPERATIONS - 4, MOST_OPERATIONS + 3)]),
    order=st.lists(st.sampled_from(_CHANGES), max_size=2),
)
def test_the_operations_make_what_the_patch_has_made(
    data: Any, many: int, order: list[Any], last: Any
) -> None:
    """Applied to the object as it was, the operations lead to the object that the patch holds."""
    changes = Changes(data)
    changes.update_many(many)
    for change in (*order, last):
        change(changes)
    operations = copy.deepcopy(changes.patch.operations)

    assert changes.patch.document == jsonpatch.apply_patch(document(), operations)
    assert len(operations) <= MOST_OPERATIONS
