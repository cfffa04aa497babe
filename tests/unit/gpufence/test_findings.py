"""What a check says."""

from gpufence.findings import Finding, Level, look, ok, unknown, wrong


def test_what_is_well_needs_no_remedy() -> None:
    """A finding that is no trouble is one sentence alone."""
    assert Finding(Level.OK, "NVML", "driver 580") == ok("NVML", "driver 580")


def test_all_that_is_not_well_has_a_remedy() -> None:
    """From worth a look to wrong, each says what to do."""
    made = [make("NVML", "no answer", "wait") for make in (look, wrong, unknown)]

    assert [Level.LOOK, Level.WRONG, Level.UNKNOWN] == [item.level for item in made]
    assert {"wait"} == {item.remedy for item in made}
