"""Amounts, limits and shares of them."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpufence import names
from gpufence.annotations import (
    Headroom,
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
from gpufence.quantity import (
    GIB,
    LARGEST,
    MIB,
    NANO,
    read_bytes,
    read_nano,
    write_bytes,
    write_mebibytes,
)
from gpufence.share import (
    LEAST_ALLOWANCE,
    ShareTerms,
    allowance,
    smallest_limit,
    write_fraction,
)
from tests.property.strategies import amounts, cards, json_values, noise, pods, readable_pods
from tests.support.builders import container, phases, pod
from tests.support.running import examples

_SCALES = {
    **{suffix: Fraction(2**bits) for suffix, bits in [("Ki", 10), ("Mi", 20), ("Gi", 30)]},
    **{suffix: Fraction(10) ** power for suffix, power in [("n", -9), ("u", -6), ("m", -3)]},
    **{suffix: Fraction(10) ** power for suffix, power in [("", 0), ("k", 3), ("M", 6), ("G", 9)]},
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
}


@given(st.integers(0, LARGEST))
def test_bytes_survive_the_round_trip(amount: int) -> None:
    """Bytes written as a quantity read back as the same bytes."""
    assert amount == read_bytes(write_bytes(amount), "field")


@given(st.integers(0, LARGEST))
def test_whole_mebibytes_never_say_more_than_there_is(amount: int) -> None:
    """The rendering for people is rounded down."""
    shown = read_bytes(write_mebibytes(amount), "field")

    assert shown <= amount < shown + 2**20


@given(st.integers(0, 10**9), st.text("0123456789", max_size=6), st.sampled_from(sorted(_SCALES)))
def test_any_spelling_means_its_exact_value(whole: int, part: str, suffix: str) -> None:
    """A number with a suffix means what arithmetic says, rounded up to a billionth."""
    exact = Fraction(f"{whole}.{part or 0}") * _SCALES[suffix] * NANO

    assert -(-exact.numerator // exact.denominator) == read_nano(f"{whole}.{part}{suffix}", "f")


@given(json_values | noise)
def test_noise_is_a_quantity_or_an_error_that_names_the_field(value: object) -> None:
    """Whatever stands in a quantity's place is read exactly or refused by name."""
    try:
        read_bytes(value, "spec.somewhere")
    except InvalidError as error:
        assert "spec.somewhere" == error.problem.field
        assert error.problem.remedy


@pytest.mark.parametrize("text", ["1e999999999", "9" * 10_000, "1" + "0" * 63 + "Ei"])
def test_monstrous_numbers_are_refused_at_once(text: str) -> None:
    """A number beyond anything Kubernetes counts is refused without computing it."""
    with pytest.raises(InvalidError):
        read_bytes(text, "field")


terms = st.builds(
    ShareTerms,
    reserve_bytes=st.integers(0, 3000).map(lambda value: value * MIB),
    processes=st.integers(1, 64),
    headroom=st.sampled_from(Headroom),
)


def _fraction(limit: int, card: int, term: ShareTerms) -> Fraction:
    may = allowance(limit, card, term)
    return Fraction(write_fraction(may.numerator, may.denominator * card))


@examples(100)
@given(amounts, cards, terms)
def test_an_allowance_is_within_the_limit_and_never_zero(
    limit: int, card: int, term: ShareTerms
) -> None:
    """
    A fraction of zero would read as no cap; it is never above limit or card, nor are all processes
    together. Headroom auto gives a framework at least what the factor gives it.
    """
    may, fraction = allowance(limit, card, term), _fraction(limit, card, term)
    factor, auto = (
        ShareTerms(term.reserve_bytes, term.processes, headroom)
        for headroom in (Headroom.FACTOR, Headroom.AUTO)
    )

    assert 0 < fraction <= Fraction(min(limit, card), card)
    assert may.bytes * term.processes <= max(limit, term.processes)
    assert may.starved or term.processes * (may.bytes + term.reserve_bytes) <= min(limit, card)
    assert allowance(limit, card, factor).bytes <= allowance(limit, card, auto).bytes


@given(amounts, amounts, cards, terms)
def test_a_larger_limit_never_means_less(
    first: int, second: int, card: int, term: ShareTerms
) -> None:
    """The fraction is monotonic in the limit, but where a starved limit gets the least there is."""
    low, high = sorted((first, second))
    if not allowance(low, card, term).starved:
        assert _fraction(low, card, term) <= _fraction(high, card, term)


@given(amounts, cards, cards, terms)
def test_a_larger_card_never_means_a_larger_fraction(
    limit: int, first: int, second: int, term: ShareTerms
) -> None:
    """The fraction is antitone in the card, for limits that both cards hold."""
    small, large = sorted((first, second))
    if limit <= small:
        assert _fraction(limit, small, term) >= _fraction(limit, large, term)


@given(amounts, cards, terms, st.integers(1, 64))
def test_more_processes_never_mean_more_for_each(
    limit: int, card: int, term: ShareTerms, more: int
) -> None:
    """The fraction is antitone in the number of processes, as long as nobody is starved."""
    crowded = ShareTerms(term.reserve_bytes, term.processes + more, term.headroom)
    if not allowance(limit, card, crowded).starved:
        assert _fraction(limit, card, crowded) <= _fraction(limit, card, term)


@given(terms)
def test_the_smallest_limit_is_the_smallest(term: ShareTerms) -> None:
    """The limit a warning names is enough, while one MiB less is not."""
    limit = smallest_limit(term)
    card = limit * 2

    assert allowance(limit, card, term).bytes >= LEAST_ALLOWANCE
    assert allowance(limit - MIB, card, term).starved


BY_CLASS = f"{names.DRA_CLASS_PREFIX}{names.DRA_CLASSES[0]}"
ceilings = st.none() | st.integers(MIB, 20 * GIB)
bursts = (
    st.just("card")
    | st.integers(100, 2000).map("{}%".format)
    | st.integers(1, 20_000).map("{}Mi".format)
)


def _read(
    pod: Pod, card: int | None = 15 * GIB, ceiling: int | None = None, most: str | None = None
) -> Limits | Undeclared | Unreadable:
    options = read_pod_options(pod.annotations, frozenset(item.name for item in pod.containers))
    said = {} if most is None else {names.MAX_BURST: most}
    namespace = read_namespace_options({names.IMPLIED_LIMITS: "enabled", **said})
    namespace = namespace._replace(max_memory_bytes=ceiling)
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


@given(readable_pods(), cards, ceilings, bursts, st.none() | bursts)
def test_a_burst_stands_between_the_request_and_every_ceiling(
    manifest: dict[str, Any], card: int, ceiling: int | None, burst: str, most: str | None
) -> None:
    """
    The request is what the limit was without a burst; the limit is no less, and where it is more
    it is within card and ceilings. Of both the parts that run together are within theirs.
    """
    pod = read_pod(manifest)
    plain = _read(pod, card, ceiling)
    found = _read(_bursting(pod, burst), card, ceiling, most)
    if not isinstance(found, Limits) or found.limit_bytes is None:
        assert plain == found
        return
    request, limit = found.request_bytes or 0, found.limit_bytes
    assert isinstance(plain, Limits)
    assert plain.request_bytes == request <= limit
    assert plain.parts == tuple(
        part._replace(limit_bytes=part.request_bytes) for part in found.parts
    )
    if limit > request:
        assert limit <= min(card, ceiling or card, _most(most, request, card))
    parts = {
        part.container: (part.request_bytes or 0, part.limit_bytes or 0) for part in found.parts
    }
    for phase in phases(pod):
        together = [parts[item.name] for item in phase if item.name in parts]
        assert sum(each[0] for each in together) <= request
        assert sum(each[1] for each in together) <= limit


def _bursting(pod: Pod, burst: str) -> Pod:
    return pod._replace(annotations={**pod.annotations, names.BURST: burst})


def _most(text: str | None, request: int, card: int) -> int:
    """Reckon a ceiling of the bursts apart from the code."""
    if text is None or text == "card":
        return card
    if text.endswith("%"):
        return int(request * Fraction(text.removesuffix("%")) / 100)
    return read_bytes(text, "ceiling")


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
