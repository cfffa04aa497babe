"""What `scale` prints: the objects, the reasons beside them, and how many replicas there may be."""

from dataclasses import replace
from typing import Any

import pytest
import yaml as reader

from gpufence import names
from kube.kinds import ApiKind
from kubectl_gpufence.arguments import parse
from kubectl_gpufence.scale.fits import fitting, offer_of, taking_of
from kubectl_gpufence.scale.manifest import Reasoned, bare, yaml
from kubectl_gpufence.scale.wish import Ceiling, Queue, Wish, documents, number, query

WISH = Wish(
    kind=ApiKind("apps/v1", "Deployment", "deployments", scalable=True),
    namespace="vision",
    name="quality",
    queue=Queue("quality"),
    ceiling=Ceiling(6, "2 there are, and 4 more fit"),
    target=5.0,
    message=0.5,
)
MEASURED = replace(
    WISH,
    queue=Queue("quality", kind="prometheus", prometheus="http://prometheus:9090"),
    message=None,
)


def scaled(wish: Wish) -> Any:
    """Return the spec of the ScaledObject."""
    return bare(documents(wish)[-1])["spec"]


def triggers(wish: Wish) -> dict[str, Any]:
    return {item["name"]: item for item in scaled(wish)["triggers"]}


@pytest.mark.parametrize("wish", [WISH, MEASURED, replace(WISH, asks_token=False)])
def test_what_is_printed_is_what_is_meant(wish: Wish) -> None:
    """Read back, the text with its reasons is the objects."""
    made = documents(wish)

    assert [bare(item) for item in made] == list(reader.safe_load_all("\n".join(yaml(made))))


@pytest.mark.parametrize(
    "value",
    [
        {"a": Reasoned("true", "short")},
        {"a": Reasoned({"b": ["x", Reasoned("no", "first")]}, "long " * 30)},
        {"a": [{"b": 1}, {"c": 'it\'s "both"'}, []], "d": {}, "e": "line\nline"},
        {"a": [Reasoned({"b": 1}, "why")], "f": True, "g": None, "h": 'only "these"', "i": "1.5"},
    ],
)
def test_any_value_is_read_back(value: dict[str, Any]) -> None:
    """Whatever a value is, the text of it is YAML for just that."""
    assert bare(value) == reader.safe_load("\n".join(yaml([value])))


def test_both_triggers_are_averages() -> None:
    """With Value an autoscaler would multiply totals by replicas once more."""
    for wish in (WISH, MEASURED):
        assert {"AverageValue"} == {item["metricType"] for item in triggers(wish).values()}


def test_a_broker_is_asked_for_messages_of_the_target() -> None:
    """Five seconds of messages of half a second are ten, of those that wait."""
    backlog = triggers(WISH)["backlog"]

    assert ("10", "QueueLength", "amqp") == tuple(
        backlog["metadata"][key] for key in ("value", "mode", "protocol")
    )
    assert {"name": "quality-queue"} == backlog["authenticationRef"]


def test_prometheus_is_asked_for_seconds() -> None:
    """Messages times seconds for each are seconds, and the target is their threshold."""
    known = replace(MEASURED, message=0.25, target=3.0)

    assert 'sum(rabbitmq_queue_messages_ready{queue="quality"}) * 0.25' == query(known)
    assert ("3", "false") == tuple(
        triggers(known)["backlog"]["metadata"][key] for key in ("threshold", "ignoreNullValues")
    )


def test_seconds_for_a_message_can_be_measured() -> None:
    """Busy seconds by messages done; where none was done the guess stands, never 0/0."""
    text = query(replace(MEASURED, guess=0.7))

    assert 'gpufence_pod_gpu_busy_seconds_total{namespace="vision",pod=~"quality-.*"}' in text
    assert text.endswith("> 0), 0.001) or vector(0.7))")


def test_other_queues_have_queries_of_their_own() -> None:
    """Whoever has no RabbitMQ says what waits, and what was done."""
    queue = replace(MEASURED.queue, waiting="lag", done="rate(done[5m])")

    assert query(replace(MEASURED, queue=queue)).startswith("lag * scalar(clamp_min(")
    assert "/ (rate(done[5m]) > 0)" in query(replace(MEASURED, queue=queue))


def test_the_controller_may_ask_for_no_token() -> None:
    """On a trusted network nothing is needed for the second trigger."""
    wish = replace(WISH, asks_token=False, activity="http://10.0.0.7:8080")
    busy = triggers(wish)["busy"]

    assert ["TriggerAuthentication", "ScaledObject"] == [item["kind"] for item in documents(wish)]
    assert "authenticationRef" not in busy
    assert "http://10.0.0.7:8080/v1/activity/vision/deployments/quality" == busy["metadata"]["url"]


def test_nothing_defeats_the_two_triggers() -> None:
    """
    No fallback and no modifiers, a cooldown from the beginning on, and a poll within the target.
    """
    spec = scaled(replace(WISH, target=3.0))

    assert {"fallback", "scalingModifiers"}.isdisjoint((*spec, *spec["advanced"]))
    assert (900, 900, 3) == tuple(
        spec[key] for key in ("cooldownPeriod", "initialCooldownPeriod", "pollingInterval")
    )


@pytest.mark.parametrize(("value", "text"), [(10.0, "10"), (0.9, "0.9"), (0.00001, "0.001")])
def test_numbers_are_written_for_keda(value: float, text: str) -> None:
    """As short as can be, and never nothing."""
    assert text == number(value)


def node(name: str = "gpu-1", cards: int = 2, units: int = 15, **spec: Any) -> dict[str, Any]:
    amounts = {names.GPUSHARE_MEMORY: str(cards * units), names.GPUSHARE_COUNT: str(cards)}
    return {
        "metadata": {"name": name, "labels": {"zone": "a"}},
        "spec": spec,
        "status": {"allocatable": {"cpu": "4", "pods": "many", **amounts}},
    }


def demand(amount: int, card: int | None = None, node: str = "gpu-1", **spec: Any) -> Any:
    limits = {names.GPUSHARE_MEMORY: str(amount)}
    marks = {} if card is None else {names.GPUSHARE_CARD_INDEX: str(card)}
    return taking_of(
        {"annotations": marks},
        {"nodeName": node, "containers": [{"resources": {"limits": limits}}, {}], **spec},
    )


@pytest.mark.parametrize(
    ("wanted", "pods", "expected"),
    [
        (demand(4), [], 6),
        (demand(4), [demand(10, 0)], 4),
        (demand(4), [demand(10)], 5),
        (demand(4), [demand(15, 0), demand(15, 1)], 0),
        (demand(4), [demand(15, 7)], 3),
        (demand(4), [demand(10, 0, "gpu-2")], 6),
        (demand(16), [], 0),
        (demand(4, nodeSelector={"zone": "b"}), [], 0),
        (demand(4, nodeSelector={"zone": "a"}), [], 6),
        (demand(0), [], 0),
    ],
)
def test_pods_are_fitted_card_by_card(wanted: Any, pods: list[Any], expected: int) -> None:
    """On two cards of 15 units each a pod fits where its card has as much left."""
    offer = offer_of(node())

    assert offer is not None
    assert expected == fitting(wanted, [offer], pods)


def test_whole_cards_are_counted_in_sum() -> None:
    """What no extender deals out by card is a sum."""
    raw = node()
    raw["status"]["allocatable"] = {names.NVIDIA_GPU: "4"}
    offer = offer_of(raw)
    wanted = taking_of({}, {"containers": [{"resources": {"limits": {names.NVIDIA_GPU: "2"}}}]})

    assert offer is not None
    assert 2 == fitting(wanted, [offer], [])


@pytest.mark.parametrize(
    "raw",
    [
        node(unschedulable=True),
        {"metadata": {"name": "cpu"}, "status": {"allocatable": {"cpu": "4"}}},
        {"metadata": {"name": "odd"}, "status": {"allocatable": {names.GPUSHARE_MEMORY: "x"}}},
    ],
)
def test_nodes_that_take_no_gpu_pods_offer_nothing(raw: dict[str, Any]) -> None:
    """A node that is cordoned, has no GPU, or says what cannot be read, does not count."""
    assert offer_of(raw) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("quality",), "names no kind; write such as deploy/quality"),
        (("deploy/Q",), '"Q" is no name of an object'),
        (("deploy/q", "--seconds-per-message", "-1"), "is no number of seconds"),
        (("deploy/q", "--seconds-per-message", "x"), "is no number of seconds"),
        (("deploy/q", "--max", "many"), "is no number of replicas"),
        (("deploy/q", "--prometheus", "here"), "is not an address"),
        (("deploy/q", "--host-secret", "A/b"), "is not a Secret"),
        (("deploy/q", "--queue", 'x"}'), "is not the name of a queue"),
    ],
)
def test_calls_that_cannot_be_read_are_refused(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was typed is named, with what would do."""
    with pytest.raises(SystemExit, match="2"):
        parse(["scale", "--queue", "q", "--target", "5s", *words])
    assert said in capsys.readouterr().err


def test_seconds_for_a_message_are_measured_unless_said() -> None:
    """`auto` is what holds without a word, and so is the ceiling."""
    call = parse(["scale", "deploy/q", "--queue", "q", "--target", "5s"])

    assert (None, None, 0) == (call.message, call.most, call.least)
