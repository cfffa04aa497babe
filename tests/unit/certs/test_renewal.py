"""What is kept and what is renewed, reason by reason."""

import pytest

from certs.material import DAY, BadMaterial, Facts, ServiceNames, Stored
from certs.renewal import Keep, Reason, RenewCA, RenewLeaf, days_left, decide, decide_leaf, due_at
from tests.support.certs import NAMES, NOW, facts

CA = facts(not_after=NOW + 3649 * DAY, names=frozenset())
DAMAGES = [
    (None, Reason.MISSING),
    (BadMaterial("tls.crt is no certificate"), Reason.UNREADABLE),
    (facts(key_matches=False), Reason.KEY),
    (facts(fit=False), Reason.UNFIT),
    (facts(signed=False), Reason.SIGNATURE),
    (facts(complete=False), Reason.INCOMPLETE),
    (facts(not_before=NOW + 601, not_after=NOW + 90 * DAY), Reason.CLOCK),
    (facts(not_before=NOW - 90 * DAY, not_after=NOW), Reason.EXPIRED),
    (facts(not_before=NOW - 60 * DAY, not_after=NOW + 30 * DAY), Reason.DUE),
]


def test_a_whole_pair_is_kept_until_the_first_is_due() -> None:
    """Two pairs that are well are kept, and the decision says until when."""
    leaf = facts()

    assert Keep(until=due_at(leaf)) == decide(Stored(CA, leaf), NAMES.all, NOW)


@pytest.mark.parametrize(("found", "reason"), DAMAGES, ids=lambda item: getattr(item, "name", ""))
def test_a_leaf_is_renewed_for_every_reason(
    found: Facts | BadMaterial | None, reason: Reason
) -> None:
    """Whatever is wrong with the leaf renews the leaf alone, and is named."""
    assert RenewLeaf(reason) == decide(Stored(CA, found), NAMES.all, NOW)


@pytest.mark.parametrize(("found", "reason"), DAMAGES, ids=lambda item: getattr(item, "name", ""))
def test_a_ca_is_renewed_for_every_reason(
    found: Facts | BadMaterial | None, reason: Reason
) -> None:
    """Whatever is wrong with the CA renews the CA, however well the leaf is."""
    assert RenewCA(reason) == decide(Stored(found, facts()), NAMES.all, NOW)


def test_a_missing_name_renews_the_leaf() -> None:
    """A leaf that lacks one of the wanted names is renewed."""
    wanted = ServiceNames(NAMES.service, NAMES.namespace, ("10.0.0.7",)).all

    assert RenewLeaf(Reason.NAMES) == decide(Stored(CA, facts()), wanted, NOW)


def test_a_name_too_many_is_no_reason() -> None:
    """A leaf that answers to more names than wanted is kept."""
    leaf = facts(names=NAMES.all | {"10.0.0.7"})

    assert isinstance(decide(Stored(CA, leaf), NAMES.all, NOW), Keep)


def test_a_clock_slightly_behind_is_no_reason() -> None:
    """A certificate that begins within the tolerated skew ahead of this clock is kept."""
    leaf = facts(not_before=NOW + 600, not_after=NOW + 90 * DAY)

    assert isinstance(decide(Stored(CA, leaf), NAMES.all, NOW), Keep)


def test_a_pair_is_due_after_two_thirds_of_its_life() -> None:
    """A leaf of ninety days is due sixty days after it begins."""
    assert NOW + 60 * DAY == due_at(facts(not_before=NOW, not_after=NOW + 90 * DAY))


def test_days_left_counts_down_below_zero() -> None:
    """What has expired has a negative number of days left."""
    assert -1.0 == days_left(facts(not_after=NOW - DAY), NOW)


@pytest.mark.parametrize(("found", "reason"), DAMAGES, ids=lambda item: getattr(item, "name", ""))
def test_without_the_right_to_replace_it_a_ca_that_is_due_still_signs(
    found: Facts | BadMaterial | None, reason: Reason
) -> None:
    """A run for the leaf alone keeps to a CA that is merely due, and to no other that is amiss."""
    expected = (
        Keep(until=due_at(found))
        if reason is Reason.DUE and isinstance(found, Facts)
        else RenewCA(reason)
    )

    assert expected == decide_leaf(Stored(found, facts()), NAMES.all, NOW)


@pytest.mark.parametrize(("found", "reason"), DAMAGES, ids=lambda item: getattr(item, "name", ""))
def test_without_that_right_a_leaf_is_renewed_for_the_same_reasons(
    found: Facts | BadMaterial | None, reason: Reason
) -> None:
    """A run for the leaf alone finds the same reasons to renew it."""
    assert RenewLeaf(reason) == decide_leaf(Stored(CA, found), NAMES.all, NOW)
