"""The ladder observe, cap, evict and its kill switch."""

import pytest

from gpufence.errors import InvalidError
from gpufence.mode import MODES, Mode, effective_mode, highest_mode, namespace_mode, read_mode


def test_the_rungs_are_in_order() -> None:
    """Each mode does all that those below it do."""
    assert Mode.OBSERVE < Mode.CAP < Mode.EVICT
    assert ("observe", "cap", "evict") == MODES


@pytest.mark.parametrize("mode", list(Mode))
def test_a_mode_is_written_and_read(mode: Mode) -> None:
    """What stands in a label reads back as the same mode."""
    assert mode is read_mode(str(mode), "field")


@pytest.mark.parametrize("text", ["", "Evict", "EVICT", "off", "evict "])
def test_a_text_that_is_no_mode_is_refused(text: str) -> None:
    """Only the three words exactly are modes."""
    with pytest.raises(InvalidError, match="is no mode; write one of observe, cap, evict"):
        read_mode(text, "field")


@pytest.mark.parametrize(
    ("labels", "mode"),
    [
        ({}, None),
        ({"gpufence.io/mode": "observe"}, Mode.OBSERVE),
        ({"gpufence.io/mode": "cap"}, Mode.CAP),
        ({"gpufence.io/mode": "evict"}, Mode.EVICT),
        ({"gpufence.io/mode": "evcit"}, None),
    ],
)
def test_a_namespace_opts_in_by_its_label(labels: dict[str, str], mode: Mode | None) -> None:
    """No label, or one that cannot be read, leaves a namespace alone."""
    assert mode is namespace_mode(labels)


@pytest.mark.parametrize(
    ("data", "mode"),
    [
        (None, Mode.CAP),
        ({}, Mode.EVICT),
        ({"max-mode": "evict"}, Mode.EVICT),
        ({"max-mode": "cap"}, Mode.CAP),
        ({"max-mode": "observe"}, Mode.OBSERVE),
        ({"max-mode": "nonsense"}, Mode.CAP),
        ({"default-max-mode": "observe"}, Mode.OBSERVE),
        ({"default-max-mode": "nonsense"}, Mode.CAP),
        ({"default-max-mode": "observe", "max-mode": "evict"}, Mode.OBSERVE),
        ({"default-max-mode": "observe", "max-mode": "nonsense"}, Mode.OBSERVE),
        ({"default-max-mode": "nonsense", "max-mode": "observe"}, Mode.OBSERVE),
        ({"default-max-mode": "evict", "max-mode": "cap"}, Mode.CAP),
        ({"default-max-mode": "evict", "max-mode": "nonsense"}, Mode.CAP),
    ],
)
def test_the_kill_switch_fails_towards_no_eviction(data: dict[str, str] | None, mode: Mode) -> None:
    """
    A ConfigMap that is absent or unreadable evicts nobody; one without the key holds nobody back.
    """
    assert mode is highest_mode(data)


@pytest.mark.parametrize(
    ("namespace", "highest", "mode"),
    [
        (None, Mode.EVICT, None),
        (Mode.EVICT, Mode.CAP, Mode.CAP),
        (Mode.OBSERVE, Mode.EVICT, Mode.OBSERVE),
    ],
)
def test_the_lower_of_both_counts(namespace: Mode | None, highest: Mode, mode: Mode | None) -> None:
    """Neither the namespace nor the kill switch can raise what the other allows."""
    assert mode is effective_mode(namespace, highest)
