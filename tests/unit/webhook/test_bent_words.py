"""Pods by which a tenant would get out of his limit: contradictions, forgeries, and sheer size."""

import copy
from typing import Any

import pytest

from gpufence import names
from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.errors import InvalidError
from gpufence.mode import MODES, Mode
from tests.support.builders import card, container, gpushare, node, pod, sidecar
from tests.support.observing import quiet_seconds
from tests.support.rewriting import annotation, applied, decide, environment, gpu_node, rewritten
from webhook.fleet import Fleet
from webhook.frameworks.table import read_slot
from webhook.policy import WebhookPolicy
from webhook.rewrite import MOST_CONTAINERS, MOST_VOLUMES, Refusal, Rewrite, Unchanged
from webhook.rewrite.patch import MOST_OPERATIONS

GPU = {names.NVIDIA_GPU: "1"}
FORGED = {
    names.GPUSHARE_CARD_INDEX: "0",
    names.VOLCANO_CARD_INDEX: "1",
    names.PLAN: '{"v":1}',
    names.INJECTED: "yes",
    f"{names.ENV_PREFIX}s0": "0.99",
}
FULL = {"big": "x" * 252 * 1024}
STRAY = {names.GPUSHARE_MEMORY: "3", names.VOLCANO_NUMBER: "1"}
CONTRADICTING = {
    "a fraction beside gpushare": pod(gpushare(), annotations={names.KAI_FRACTION: "0.5"}),
    "memory and fraction": pod(
        container(), annotations={names.KAI_FRACTION: "0.5", names.KAI_MEMORY: "1"}
    ),
    "a container that is not there": pod(
        container(), annotations={names.KAI_FRACTION: "0.5", names.KAI_CONTAINER: "x"}
    ),
    "cards below zero": pod(
        container(), annotations={names.KAI_MEMORY: "1024", names.KAI_DEVICES: "-1"}
    ),
    "two sizes of MIG": pod(
        container("a", **{"nvidia.com/mig-1g.5gb": "1"}),
        container("b", **{"nvidia.com/mig-3g.20gb": "1"}),
    ),
    "a stray limit on a node of its choice": pod(container(**STRAY), nodeName="n"),
    "a stray limit of an init container": pod(
        gpushare(), init=[container("first", **{names.VOLCANO_MEMORY: "9"})]
    ),
    "an amount below zero": pod(container(**GPU), annotations={names.MEMORY: "-6Gi"}),
    "an absurd amount": pod(container(**GPU), annotations={names.MEMORY: "100Ti"}),
    "an absurd amount in one of two": pod(gpushare("a"), gpushare("b", units="9000000")),
    "a fractional count": pod(container(**{names.NVIDIA_GPU: "0.5"})),
    "a selector nobody can read": pod(container(**GPU), nodeSelector={names.GKE_CLIENTS: "many"}),
}


@pytest.mark.parametrize("asked", CONTRADICTING.values(), ids=CONTRADICTING)
def test_evict_refuses_what_its_own_words_make_unreadable(asked: dict[str, Any]) -> None:
    """In evict the pod is refused with a remedy, in cap it is let in with the same words."""
    refused, warned = decide(asked, Mode.EVICT), decide(asked, Mode.CAP)

    assert isinstance(refused, Refusal)
    assert isinstance(warned, Rewrite)
    assert refused.message == f"gpufence refuses this pod: {warned.warnings[0]}"


def test_an_unknown_unit_does_not_hide_a_contradiction() -> None:
    """Two systems in one pod are refused even where the unit of one of them is not known."""
    policy = WebhookPolicy(default=CandidateCard(Units(gpushare_bytes=None), None))
    asked = pod(gpushare(), annotations={names.KAI_FRACTION: "0.5"})

    assert isinstance(decide(asked, Mode.EVICT, policy=policy), Refusal)
    assert isinstance(decide(pod(gpushare()), Mode.EVICT, policy=policy), Rewrite)


@pytest.mark.parametrize(
    "namespace",
    [
        {names.MEMORY: "6 GiB"},
        {names.MEMORY: "-1"},
        {names.MEMORY: "8Ei"},
        {names.MEMORY: "100Ti"},
        {names.MEMORY: "1Mi"},
        {f"{names.MEMORY_OF_CONTAINER}a": "2Gi"},
        {f"{names.MEMORY_OF_CONTAINER}a": "2Gi", names.MEMORY: "2Gi"},
        {names.MEMORY: "100Mi"},
        {names.MAX_MEMORY: "none"},
        {names.HEADROOM: "lots", names.PROCESSES_PER_CARD: "many"},
    ],
)
def test_a_namespace_s_default_refuses_nobody(namespace: dict[str, str]) -> None:
    """
    Whatever the namespace says by default, a pod that says nothing wrong itself is let in, on the
    second pass too.
    """
    asked = pod(container("a", **GPU), container("b", **GPU))
    result, said = rewritten(asked, Mode.EVICT, namespace)

    assert any(text.startswith("namespace ") or "too little" in text for text in said.warnings)
    assert isinstance(decide(result, Mode.EVICT, namespace), Unchanged)


def test_a_default_that_fits_no_container_is_not_written_onto_the_pod() -> None:
    """An agent reads the pod: what was not counted does not stand there."""
    asked = pod(container("a", **GPU), container("b", **GPU))
    result, _ = rewritten(asked, Mode.EVICT, {names.MEMORY: "1Mi"})

    assert annotation(result, names.MEMORY) is None


def test_a_pod_s_own_small_amount_is_refused_all_the_same() -> None:
    """What the pod itself says counts as its own, though the namespace has a default."""
    asked = pod(container(**GPU), annotations={names.MEMORY: "100Mi"})

    assert isinstance(decide(asked, Mode.EVICT, {names.MEMORY: "200Mi"}), Refusal)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "asked",
    [
        pod(gpushare(), annotations={**FULL, **FORGED}),
        pod(container(), annotations={**FORGED}),
        pod(container(), annotations={names.GPUSHARE_CARD_INDEX: "0"}),
        pod(gpushare(), annotations=FORGED, os={"name": "windows"}),
        pod(container(**STRAY), annotations=FORGED),
        pod(*(gpushare(f"c{n}") for n in range(MOST_CONTAINERS + 1)), annotations=FORGED),
    ],
    ids=["full", "no GPU", "only bookkeeping", "Windows", "unreadable", "many containers"],
)
def test_forged_keys_never_stay(asked: dict[str, Any], mode: str) -> None:
    """Whatever becomes of a pod that is let in, no forged text of its stands on it afterwards."""
    said = decide(asked, Mode[mode.upper()])
    if isinstance(said, Refusal):
        assert mode == "evict"
        return
    assert isinstance(said, Rewrite)
    kept = applied(asked, said)["metadata"]["annotations"]
    assert [] == [key for key, text in FORGED.items() if kept.get(key) == text]


def test_forged_keys_make_no_room_scarce() -> None:
    """A plan that somebody has forged does not keep the true one out."""
    asked = pod(gpushare(), annotations={names.PLAN: "x" * 252 * 1024})
    result, said = rewritten(asked, Mode.EVICT)

    assert said.plan.limit_bytes == 3 * 2**30
    assert (annotation(result, names.PLAN) or "").startswith('{"v":1')


def test_a_pod_without_room_is_refused_in_evict() -> None:
    """In evict nobody sheds the plan by filling his pod up; in cap it is said."""
    asked = pod(gpushare(), annotations=FULL)
    refused, warned = decide(asked, Mode.EVICT), decide(asked, Mode.CAP)

    assert isinstance(refused, Refusal)
    assert "shorten them to 200 KiB" in refused.message
    assert "shorten them to 200 KiB" in " ".join(getattr(warned, "warnings", ()))


def test_who_has_no_annotations_is_not_told_to_shorten_them() -> None:
    """Where the plan itself is too long, the refusal says what it is made of."""
    long = {"env": [{"name": names.CUPY_LIMIT, "value": "9" * 257_000}]}
    unread = {names.FRAMEWORK: "pytorch"}
    refused = decide(pod(gpushare() | long), Mode.EVICT, unread)

    assert isinstance(refused, Refusal)
    assert "metadata.annotations: 0 bytes of the pod's own" in refused.message
    assert "fewer containers, with shorter variables" in refused.message


def test_what_an_earlier_pass_wrote_stays_where_room_has_run_out() -> None:
    """Another webhook that fills the pod up afterwards takes no variable its value."""
    result, _ = rewritten(pod(gpushare()))
    before = environment(result)
    result["metadata"]["annotations"] |= FULL
    said = decide(result)
    after = applied(result, said) if isinstance(said, Rewrite) else result

    assert before == environment(after)


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (
            pod(*(container(f"c{n}") for n in range(MOST_CONTAINERS)), init=[gpushare("first")]),
            f"{MOST_CONTAINERS + 1} containers",
        ),
        (pod(gpushare(), volumes=[{"name": "v"}] * (MOST_VOLUMES + 1)), "4097 volumes"),
    ],
)
def test_a_pod_that_is_too_much_work_is_not_looked_at(asked: dict[str, Any], what: str) -> None:
    """Above any pod of this world it is refused in evict, and left alone with a warning in cap."""
    refused, warned = decide(asked, Mode.EVICT), decide(asked, Mode.CAP)

    assert isinstance(refused, Refusal)
    assert what in refused.message
    assert isinstance(warned, Unchanged)
    assert what in warned.warnings[0]


@pytest.mark.parametrize(
    "slots",
    [
        *(["s9999"], ["s9990", "s0"], [f"s{n * 100 + 99}" for n in range(100)]),
        *(["{}.{}"] * 100, ["{}"] * 100, ["{}", "{}.{}"] * 50, ["s{1}", "{}.7"] * 50),
    ],
)
def test_slots_that_a_user_has_scattered_need_no_second_pass(slots: list[str]) -> None:
    """Whatever slots a pod's variables point at beforehand, a second pass finds nothing to do."""
    told = (names.XLA_FRACTION, names.CUPY_LIMIT, names.PADDLE_LIMIT)
    pointing = [
        gpushare(f"c{at}", units="1")
        | {
            "env": [
                read_slot(env, slot.format(env, n))
                for n, (env, slot) in enumerate(zip(told, some, strict=False), 3 * at)
            ]
        }
        for at, some in enumerate(slots[start : start + 3] for start in range(0, len(slots), 3))
    ]
    asked = pod(*pointing, gpushare("other"))
    result, said = rewritten(asked)
    given = [row.slot for each in said.plan.containers.values() for row in each.settings]

    assert len(set(given)) == len(given)
    assert isinstance(decide(copy.deepcopy(result)), Unchanged)


@pytest.mark.parametrize(
    "more",
    [
        {"labels": {f"k{n}": "v" * 50 for n in range(10_000)}},
        {"finalizers": [f"example.com/{n}" for n in range(40_000)]},
        {
            "managedFields": [
                {"manager": "m", "fieldsV1": {f"f:{n}" * 200: {}}} for n in range(1000)
            ]
        },
    ],
    ids=["labels", "finalizers", "managed fields"],
)
def test_a_pod_near_the_limit_of_etcd_is_refused_in_evict(more: dict[str, Any]) -> None:
    """
    What is so large that it can hardly be written to again is refused, with its size, the bound and
    what helps; elsewhere it is warned of.
    """
    asked = pod(gpushare())
    asked["metadata"] |= more
    refused = decide(asked, Mode.EVICT)
    said = [decide(asked, mode) for mode in (Mode.CAP, Mode.OBSERVE)]

    assert isinstance(refused, Refusal)
    assert "KiB, above 512: near the limit of etcd" in refused.message
    assert "into ConfigMaps or its images" in refused.message
    assert all(isinstance(each, Rewrite) for each in said)
    assert all("above 512" in getattr(each, "warnings", ("",))[0] for each in said)


def test_what_gpufence_adds_makes_no_pod_too_large() -> None:
    """A pod just within the bound needs no second pass, and is let in by it."""
    asked = pod(gpushare(), annotations={"filling": "x" * 200_000}, labels={"l": "x" * 320_000})
    result, _ = rewritten(asked, Mode.EVICT)

    assert isinstance(decide(result, Mode.EVICT), Unchanged)


def test_eight_thousand_doubles_take_one_operation() -> None:
    """A list of which most has to go is replaced at once, and reads afterwards as it should."""
    doubles = [{"name": names.CUPY_LIMIT, "value": str(n)} for n in range(8000)]
    asked = pod(gpushare() | {"env": [*doubles, {"name": "KEPT", "value": "1"}]})
    said = decide(asked)
    seconds = quiet_seconds(decide, lambda: asked, enough=3)

    assert isinstance(said, Rewrite)
    assert len(said.operations) <= 8
    assert seconds < 3
    left = applied(pod(gpushare() | {"env": doubles}), said)["spec"]["containers"][0]["env"]
    assert {"KEPT", names.CUPY_LIMIT} <= {item["name"] for item in left}
    assert len(left) == len({item["name"] for item in left})


def test_twenty_thousand_forged_keys_take_one_operation() -> None:
    """Annotations of which many have to go are replaced at once; the user's own stay."""
    forged = {f"{names.ENV_PREFIX}{n}": "1" for n in range(20_000)}
    asked = pod(gpushare(), annotations={**forged, "team": "ml"})
    said = decide(asked)

    assert isinstance(said, Rewrite)
    assert len(said.operations) <= MOST_OPERATIONS
    kept = applied(asked, said)["metadata"]["annotations"]
    assert kept["team"] == "ml"
    assert set() == kept.keys() & (forged.keys() - {f"{names.ENV_PREFIX}s{n}" for n in range(99)})


def test_thousands_of_keys_that_do_nothing_are_not_all_remarked_on() -> None:
    """Warnings stay a page, whatever a pod carries."""
    wrong = {f"{names.MEMORY_OF_CONTAINER}x{n}": "1Gi" for n in range(3000)}
    asked = pod(*(gpushare(f"c{n}", units="1") for n in range(20)), annotations=wrong)
    said = decide(asked)

    assert isinstance(said, Rewrite)
    assert sum(map(len, said.warnings)) < 64 * 1024


def _least_seconds(asked: dict[str, Any], fleet: Fleet) -> float:
    return quiet_seconds(lambda given: decide(given, fleet=fleet), lambda: asked, rounds=3)


def test_a_thousand_wishes_for_a_node_take_no_time() -> None:
    """A pod that requires more of its node than anybody does counts as if it took any node."""
    nodes = [
        gpu_node(node(card(), name=f"n{n}", labels={"host": f"n{n}"}) if n else node(card()))
        for n in range(300)
    ]
    terms = [
        {"matchExpressions": [{"key": "host", "operator": "Gt", "values": [str(n)]}]}
        for n in range(20_000)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    asked = pod(gpushare(), affinity={"nodeAffinity": required})
    alone, crowd = Fleet(nodes[:1]), Fleet(nodes)
    said = decide(asked, fleet=crowd)

    assert _least_seconds(asked, crowd) < 3 * _least_seconds(asked, alone)
    assert isinstance(said, Rewrite)
    assert said.plan.limit_bytes == 3 * 2**30


@pytest.mark.parametrize("shape", ["pairs", "sidecars first"])
def test_init_containers_and_sidecars_take_no_square(shape: str) -> None:
    """The most containers that are read take a fraction of a second."""
    half = MOST_CONTAINERS // 2 - 1
    pairs = [item for n in range(half) for item in (sidecar(f"s{n}"), gpushare(f"i{n}", units="1"))]
    early = pairs if shape == "pairs" else sorted(pairs, key=lambda item: item["name"][::-1])
    asked = pod(gpushare(), init=early)
    said = decide(asked)

    assert quiet_seconds(decide, lambda: asked, enough=1) < 1
    assert isinstance(said, Rewrite | Unchanged)


@pytest.mark.parametrize("env", [names.XLA_FRACTION, names.CUPY_LIMIT, "MINE"])
@pytest.mark.parametrize("asked", [gpushare(), container()], ids=["GPU", "no GPU"])
def test_observe_leaves_a_variable_that_reads_a_slot(asked: dict[str, Any], env: str) -> None:
    """In observe a container reads by its own variables and files what it would have read."""
    path = f"metadata.annotations['{names.ENV_PREFIX}s7']"
    entry = {"name": env, "valueFrom": {"fieldRef": {"fieldPath": path}}}
    file = {"path": "f", "fieldRef": {"fieldPath": f"metadata.annotations['{names.ENV_PREFIX}x']"}}
    own = {f"{names.ENV_PREFIX}s7": "0.5", f"{names.ENV_PREFIX}x": "y"}
    before = pod(
        asked | {"env": [entry]},
        annotations={**own, f"{names.ENV_PREFIX}s8": "forged"},
        volumes=[{"name": "v", "downwardAPI": {"items": [file]}}],
    )
    after, _ = rewritten(before, Mode.OBSERVE)

    assert before["spec"] == after["spec"]
    assert own == {
        key: text
        for key, text in after["metadata"]["annotations"].items()
        if key.startswith(names.ENV_PREFIX)
    }


def test_one_of_many_variables_that_is_no_text_is_no_pod() -> None:
    """Variables of a long list are read at once, where all of them are text."""
    entries: list[dict[str, object]] = [{"name": f"V{n}", "value": "x"} for n in range(70)]
    entries.append({"name": "LAST", "value": 1})

    with pytest.raises(InvalidError):
        decide(pod(gpushare() | {"env": entries}))
