"""
Wherever a pod lands, the variables that were written let its containers start, and take nothing
from what its frameworks had without them.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufence import names
from gpufence.mode import Mode
from gpufence.nodes import REQUIRED, allows
from gpufence.plan import driver_bytes, read_plan
from gpufence.pods import read_pod
from gpufence.quantity import MIB
from tests.property.webhook.test_work import MOST_SECONDS
from tests.support.builders import CARDS, Sold, card, container, labels_of, node, pod
from tests.support.observing import quiet_seconds
from tests.support.rewriting import applied, decide, gpu_node, variables
from tests.support.running import examples
from webhook.fleet import Fleet
from webhook.frameworks.figures import container_figures
from webhook.policy import DriverLimits, WebhookPolicy
from webhook.rewrite import Rewrite, Unchanged, rewrite
from webhook.rewrite.binding import exact_values
from webhook.rewrite.injection import own_settings

OURS = (names.DRIVER_REQUEST, names.DRIVER_LIMIT)
MOST = 17592186044415
OFF = WebhookPolicy()


class Machine(NamedTuple):
    """A node as it really is: cards in MiB, driver, and whether NVIDIA's hook is run in its way."""

    cards: tuple[int, ...]
    labels: dict[str, str]
    stated: bool  # by an agent of gpufence's
    driver: int = 615
    hook: bool = True  # toolkit >= 1.20.1, not in legacy mode
    unified: bool = True  # control groups, version 2
    mig: bool = False

    @property
    def capable(self) -> bool:
        return self.driver >= 615 and self.hook and self.unified and not self.mig

    def manifest(self, name: str) -> dict[str, Any]:
        profile = "1g.5gb" if self.mig else ""
        cards = [
            card(at, memory_bytes=size * MIB, parent="GPU-x" if profile else "", profile=profile)
            for at, size in enumerate(self.cards)
        ]
        count = len(self.cards)
        offered = {
            names.NVIDIA_GPU: str(4 * count),
            names.GPUSHARE_MEMORY: str(self.cards[0] // 1024 * count),
            names.GPUSHARE_COUNT: str(count),
            names.VOLCANO_MEMORY: str(self.cards[0] * count),
        }
        driver = f"{self.driver}.71.09"
        told = cards if self.stated else []
        return node(*told, name=name, labels=self.labels, allocatable=offered, driver=driver)


def starts(machine: Machine, env: dict[str, str]) -> bool:
    """Return whether a container starts there: what NVIDIA's hook does, as it was run."""
    request, limit = (env.get(name) for name in OURS)
    if not machine.hook or machine.mig or (request is None and limit is None):
        return True
    if not machine.unified or machine.driver < 615:
        return False
    said = [text for text in (request, limit) if text is not None]
    if not all(text.isdigit() and int(text) <= MOST for text in said):
        return False
    soft, hard = int(request or limit or 0), int(limit or MOST)
    return soft <= hard and (limit is None or all(hard <= size for size in machine.cards))


def fits(machine: Machine, asked: dict[str, Any]) -> bool:
    """Return whether its scheduler would place the pod there, as device plugins count cards."""
    limits = asked["spec"]["containers"][0]["resources"]["limits"]
    said = asked["metadata"]["annotations"]
    units = int(limits.get(names.GPUSHARE_MEMORY, 0))
    shares = int(limits.get(names.VOLCANO_MEMORY, said.get(names.KAI_MEMORY, 0)))
    return units <= machine.cards[0] // 1024 and shares <= machine.cards[0]


KINDS = (
    *("nothing", "pool", "karpenter", "karpenter, memory alone", "eks", "gke", "product"),
    "measured",
)
WHOLE = [each for each in CARDS if each.shown > 4096]
_MPS = {names.GFD_REPLICAS: "4", names.GFD_SHARING: "mps"}
_SHARING = st.sampled_from([{}, {names.GFD_REPLICAS: "4"}, _MPS, {"zone": "a"}])


def born(sold: Sold, kind: str, extra: dict[str, str], stated: bool) -> Machine:  # noqa: FBT001 - drawn
    return Machine((sold.shown,), labels_of(kind, sold) | extra, stated)


_stated = st.booleans()
_parts = st.sampled_from([kind for kind in KINDS if kind not in ("product", "gke")])
births = st.one_of(
    st.builds(born, st.sampled_from(WHOLE), st.sampled_from(KINDS), _SHARING, _stated),
    st.builds(born, st.just(CARDS[7]), _parts, _SHARING, _stated),
)
"""Nodes with a card of one kind, or of a part of one, and what is said of it."""


def with_label(machine: Machine) -> Machine:
    return machine._replace(labels={**machine.labels, names.DRIVER_LIMITS: "true"})


def without_label(machine: Machine) -> Machine:
    return machine._replace(labels={**machine.labels, names.DRIVER_LIMITS: "false"})


unequal = st.tuples(st.sampled_from(WHOLE), st.sampled_from(WHOLE)).map(
    lambda two: Machine((two[0].shown, two[1].shown), {}, stated=True)
)
rolled_back = births.map(lambda each: each._replace(stated=True, driver=580))
cut = births.map(lambda each: each._replace(stated=True, mig=True))
capable = births | unequal
anything = st.builds(
    lambda each, driver, hook, unified: each._replace(driver=driver, hook=hook, unified=unified),
    *(births, st.sampled_from([450, 580, 615]), st.booleans(), st.booleans()),
)


class Site(NamedTuple):
    """Nodes that are known, nodes that come later, and what the operator has said of both."""

    known: list[Machine]
    later: list[Machine]
    policy: WebhookPolicy

    def fleet(self) -> Fleet:
        return Fleet([gpu_node(each.manifest(f"node-{at}")) for at, each in enumerate(self.known)])

    def landings(self, asked: dict[str, Any], written: dict[str, Any]) -> list[Machine]:
        """Return where a pod may run that was written so; nodes only come where others came."""
        pools = {names.KARPENTER_POOL, names.EKS_COMPUTE}
        grows = not self.known or any(pools & each.labels.keys() for each in self.known)
        read = read_pod(written)
        named = [machine for name, machine in self._nodes(grows=False) if name == read.node_name]
        return named or [
            machine
            for name, machine in self._nodes(grows=grows)
            if not read.node_name and allows(read, name, machine.labels) and fits(machine, asked)
        ]

    def _nodes(self, *, grows: bool) -> list[tuple[str, Machine]]:
        machines = [*self.known, *(self.later if grows else [])]
        return [(f"node-{at}", machine) for at, machine in enumerate(machines)]


def policies(said: DriverLimits) -> st.SearchStrategy[WebhookPolicy]:
    return st.just(replace(OFF, driver_limits=said))


proved = capable.map(with_label)
not_proved = st.one_of(
    births.map(lambda each: each._replace(stated=False, driver=580)),  # its canary cannot start
    births.map(without_label),
    births,  # no canary was there yet
    anything,
)
lost = (rolled_back | cut).map(with_label)  # and the label is still there: no node is born so
canaries = st.builds(
    Site,
    st.lists(proved, max_size=3) | st.lists(proved | lost | not_proved, min_size=2, max_size=3),
    st.lists(births.map(with_label) | not_proved, max_size=2),
    policies(DriverLimits.AUTO),
)
"""Nodes by what a canary has found on them; by an operator's word, `false`, none is proved."""
sites = st.one_of(
    st.builds(
        Site,
        st.lists(capable, max_size=3) | st.lists(capable | rolled_back | cut, max_size=3),
        st.lists(births, max_size=2),
        policies(DriverLimits.ON),
    ),
    st.builds(
        Site,
        st.lists(capable.map(with_label) | anything, max_size=4)
        | st.lists((capable | rolled_back | cut).map(with_label) | anything, max_size=4),
        st.lists(births.map(with_label) | anything, max_size=2),
        policies(DriverLimits.LABELLED),
    ),
    canaries,
)
_amounts = st.sampled_from(
    [
        ({names.GPUSHARE_MEMORY: "3"}, {}),
        ({names.GPUSHARE_MEMORY: "14"}, {names.MEMORY: "9Gi"}),
        ({names.VOLCANO_MEMORY: "12000"}, {}),
        ({names.NVIDIA_GPU: "1"}, {names.MEMORY: "2Gi"}),
        ({names.NVIDIA_GPU: "2"}, {names.MEMORY: "20Gi", names.HEADROOM: "auto"}),
        ({names.NVIDIA_GPU: "1"}, {names.MEMORY: "800Mi"}),
        ({names.NVIDIA_GPU: "1"}, {names.MEMORY: "15361Mi", names.PROCESSES_PER_CARD: "2"}),
        ({names.NVIDIA_GPU: "1"}, {}),
        ({}, {names.KAI_FRACTION: "0.25"}),
        ({}, {names.KAI_FRACTION: "0.99", names.MEMORY: "13Gi"}),
        ({}, {names.KAI_MEMORY: "6000"}),
    ]
)
_values = st.sampled_from(["", "0", "1", "3Gi", "3072", "999999", "$(A)"])
_own = st.lists(
    st.builds(lambda env, text: {"name": env, "value": text}, st.sampled_from(OURS), _values)
    | st.sampled_from(OURS).map(
        lambda env: {"name": env, "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}
    )
    | st.just({"name": names.XLA_FRACTION, "value": "0.9"}),
    max_size=4,
)
_NOWHERE: dict[str, Any] = {}
_ANYWHERE = {"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}
_where: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"nodeName": "node-0"},
        {"nodeSelector": {"zone": "a"}},
        {"nodeSelector": {names.DRIVER_LIMITS: "true"}},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [_NOWHERE, _ANYWHERE]}}}},
    ]
)
_starts: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"image": "vllm/vllm-openai:v0.20.0", "args": ["--model", "m"]}, {"envFrom": [{}]}]
)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    """Draw pods of every kind of limit, that say something of the driver's themselves."""
    resources, annotations = draw(_amounts)
    item = container(**resources) | draw(_starts) | {"env": draw(_own)}
    more = [container("beside") | {"env": variables(A="1")}] if draw(st.booleans()) else []
    said = annotations | draw(st.sampled_from([{}, {names.ARGS: "enabled"}]))
    said |= draw(st.sampled_from([{}, {}, {names.BURST: "card"}, {names.BURST: "13Gi"}]))
    return pod(item, *more, annotations=said, **draw(_where))


NAMESPACE = {names.IMPLIED_LIMITS: "enabled"}


def _of_driver(made: dict[str, Any]) -> list[dict[str, Any]]:
    env = made["spec"]["containers"][0].get("env", [])
    return [each for each in env if each["name"] in OURS]


def told_of(env: list[dict[str, Any]], annotations: dict[str, str]) -> dict[str, str]:
    """Return the literals of a container and the slots that it reads."""
    seen = {}
    for entry in env:
        if "valueFrom" not in entry:
            seen[entry["name"]] = entry.get("value", "")
        else:
            path = entry["valueFrom"].get("fieldRef", {}).get("fieldPath", "")
            key = path.removeprefix("metadata.annotations['").removesuffix("']")
            seen[entry["name"]] = annotations.get(key, "")
    return seen


@examples(500)
@given(pods(), sites, st.sampled_from([Mode.CAP, Mode.EVICT]))
def test_no_container_is_kept_from_starting(asked: dict[str, Any], site: Site, mode: Mode) -> None:
    """Both variables are there or none of ours, once and never empty, and the container starts."""
    said = decide(asked, mode, NAMESPACE, site.fleet(), site.policy)
    if not isinstance(said, Rewrite):
        return
    written = applied(asked, said)
    limit = driver_bytes(said.plan.containers["main"]) if "main" in said.plan.containers else None
    own = _of_driver(written)
    if limit is None:
        assert _of_driver(asked) == own
        return
    env = {each["name"]: each["value"] for each in own}

    assert {names.DRIVER_REQUEST: "0", names.DRIVER_LIMIT: str(limit // MIB)} == env
    assert len(own) == 2
    assert limit >= MIB
    for machine in site.landings(asked, written):
        assert starts(machine, env), machine


@given(pods(), sites)
def test_a_second_pass_finds_nothing_to_do(asked: dict[str, Any], site: Site) -> None:
    """What the container has said itself is kept in the plan, so that nothing is done twice."""
    said = decide(asked, Mode.CAP, NAMESPACE, site.fleet(), site.policy)
    if isinstance(said, Rewrite):
        again = decide(applied(asked, said), Mode.CAP, NAMESPACE, site.fleet(), site.policy)

        assert isinstance(again, Unchanged)


@examples(300)
@given(pods(), sites)
def test_nothing_gets_less_than_without_the_driver(asked: dict[str, Any], site: Site) -> None:
    """
    On whichever card it lands, what a framework makes of its value is no less than it was without
    the driver's limit, whether it takes that limit for the card or sees all of the card.
    """
    said = decide(asked, Mode.CAP, NAMESPACE, site.fleet(), site.policy)
    before = decide(asked, Mode.CAP, NAMESPACE, site.fleet(), OFF)
    if not isinstance(said, Rewrite) or not isinstance(before, Rewrite):
        return
    if "main" not in said.plan.containers or driver_bytes(said.plan.containers["main"]) is None:
        return
    written, plain = applied(asked, said), applied(asked, before)
    for at, machine in enumerate(site.landings(asked, written)):
        where = gpu_node(machine.manifest(f"node-{at}"))
        with_driver, without = (
            _amounts_on(each, where, machine, policy)
            for each, policy in ((written, site.policy), (plain, OFF))
        )

        for env, (least, rounded) in with_driver.items():
            assert least + rounded >= without.get(env, (Fraction(0), 0))[0], (env, machine)


def _amounts_on(
    made: dict[str, Any], where: Any, machine: Machine, policy: WebhookPolicy
) -> dict[str, tuple[Fraction, int]]:
    """
    Return the bytes that readers of each value take at least once the pod is bound, and how much
    of the pod's limit is lost to rounding, or to a card that is a little smaller.
    """
    annotations = made["metadata"]["annotations"] | exact_values(made, where, policy)
    plan = read_plan(annotations[names.PLAN]).containers["main"]
    limit = driver_bytes(plan)
    whole = min(machine.cards) * MIB
    seen = whole if limit is None else limit
    env = told_of(made["spec"]["containers"][0].get("env", []), annotations)
    lost = 0 if limit is None else max(limit // 40, 2 * MIB)
    found = {}
    for row in plan.settings:
        if row.slot and row.form in ("fraction", "bytes") and env[row.env]:
            share = Fraction(env[row.env])
            found[row.env] = (share * seen if row.form == "fraction" else share, lost)
    return found


@pytest.mark.parametrize("says", [DriverLimits.OFF, DriverLimits.ON])
@pytest.mark.parametrize("own", [0, 1], ids=["alike", "each its own amount"])
def test_many_containers_and_sizes_take_no_longer(own: int, says: DriverLimits) -> None:
    """64 containers on cards of 200 sizes that were never seen are decided about in 30 ms."""
    made = [container(f"c{at}", **{names.GPUSHARE_MEMORY: "1"}) for at in range(64)]
    said = {f"{names.MEMORY_OF_CONTAINER}c{at}": f"{300 + at * own}Mi" for at in range(64)}
    body = orjson.dumps(pod(*made, annotations=said))
    machines = [Machine((20_000 + at,), {}, stated=True) for at in range(200)]
    fleet = Site(machines, [], OFF).fleet()

    def unseen() -> dict[str, Any]:
        container_figures.cache_clear()
        own_settings.cache_clear()
        read: dict[str, Any] = orjson.loads(body)
        return read

    def hold(read: dict[str, Any]) -> object:
        return rewrite(read, Mode.CAP, {}, fleet, replace(OFF, driver_limits=says))

    asks = "the driver is asked to hold c0 to 300Mi, " in repr(hold(unseen()))

    assert asks == (says is DriverLimits.ON)
    assert quiet_seconds(hold, unseen, enough=MOST_SECONDS) < MOST_SECONDS
