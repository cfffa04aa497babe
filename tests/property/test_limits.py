from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from gpufence import names
from gpufence.annotations import (
    NamespaceOptions,
    defaults_from,
    read_namespace_options,
    read_pod_options,
)
from gpufence.candidates import CandidateCard
from gpufence.dialects import Undeclared, Units, Unreadable
from gpufence.dialects.dra import SPEC as CLAIMS
from gpufence.errors import InvalidError
from gpufence.limits import Limits, read_limits
from gpufence.pods import Pod, read_pod
from gpufence.quantity import GIB, MIB
from tests.property.strategies import cards, json_values, noise, pods, readable_pods
from tests.support.builders import container, phases, pod

BY_CLASS = f"{names.DRA_CLASS_PREFIX}{names.DRA_CLASSES[0]}"
ceilings = st.none() | st.integers(MIB, 20 * GIB)


def _read(
    pod: Pod, card: int | None = 15 * GIB, ceiling: int | None = None
) -> Limits | Undeclared | Unreadable:
    options = read_pod_options(pod.annotations, frozenset(item.name for item in pod.containers))
    namespace = NamespaceOptions(max_memory_bytes=ceiling, implied_limits=True)
    return read_limits(pod, options, namespace, CandidateCard(Units(clients=3), card))


@given(readable_pods(), cards, ceilings)
def test_parts_that_run_together_fit_the_pods_limit(
    manifest: dict[str, Any], card: int, ceiling: int | None
) -> None:
    """The parts of containers that run at the same time never sum above the pod's limit."""
    pod = read_pod(manifest)
    limits = _read(pod, card, ceiling)
    if isinstance(limits, Limits) and limits.limit_bytes is not None:
        parts = {part.container: part.limit_bytes or 0 for part in limits.parts}
        for phase in phases(pod):
            assert sum(parts.get(item.name, 0) for item in phase) <= limits.limit_bytes


@given(pods(), st.none() | cards)
@example(pod(container(**{BY_CLASS: "1"})), GIB)
def test_no_pod_ends_up_without_limit(manifest: dict[str, Any], card: int | None) -> None:
    """
    A pod that asks for GPU memory has positive limits, or says what is unreadable; never zero. Only
    devices that are still to be allocated leave its limit open on a card of known size.
    """
    limits = _read(read_pod(manifest), card)
    if isinstance(limits, Limits):
        known = [part.limit_bytes for part in limits.parts if part.limit_bytes is not None]
        assert limits.parts
        assert all(amount >= 1 for amount in known)
        assert limits.limit_bytes is None or limits.limit_bytes >= 1
        assert card is None or limits.dialect == CLAIMS.name or limits.limit_bytes is not None
    elif isinstance(limits, Unreadable):
        assert limits.problem.sentence


@given(readable_pods(), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(manifest: dict[str, Any], random: Any) -> None:
    """A pod's limit does not depend on the order in which its keys were written."""
    shuffled = _shuffled(manifest, random)

    assert _read(read_pod(manifest)) == _read(read_pod(shuffled))


@given(readable_pods(), ceilings)
def test_an_annotation_never_raises_what_resources_declare(
    manifest: dict[str, Any], ceiling: int | None
) -> None:
    """With annotations of the pod's own, an explicit amount only ever gets smaller."""
    plain = {**manifest, "metadata": {"annotations": {}}}
    said, tightened = _read(read_pod(plain)), _read(read_pod(manifest), ceiling=ceiling)
    if (
        isinstance(said, Limits)
        and isinstance(tightened, Limits)
        and said.dialect == tightened.dialect
        and "units of" in said.basis
    ):
        assert (tightened.limit_bytes or 0) <= (said.limit_bytes or 0)


@given(json_values)
def test_noise_is_no_pod_and_says_so(value: object) -> None:
    """Whatever is handed in as a pod is read or refused as invalid; nothing else escapes."""
    manifest = value if isinstance(value, dict) else {"spec": value, "metadata": value}
    try:
        _read(read_pod(manifest))
    except InvalidError as error:
        assert error.problem.field


@given(st.dictionaries(noise | st.sampled_from(["gpufence.io/memory.", "gpufence.io/"]), noise))
def test_noise_in_annotations_is_kept_as_problems(annotations: dict[str, str]) -> None:
    """Arbitrary annotations on pods and namespaces never raise."""
    options = read_pod_options(annotations, frozenset({"main"}))
    read_namespace_options(annotations)

    assert {} == defaults_from({}, annotations, frozenset({"main"}))
    assert all(problem.remedy for problem in (*options.unreadable, *options.notes))


def _shuffled(value: Any, random: Any) -> Any:
    if isinstance(value, dict):
        items = [(key, _shuffled(item, random)) for key, item in value.items()]
        random.shuffle(items)
        return dict(items)
    return [_shuffled(item, random) for item in value] if isinstance(value, list) else value
