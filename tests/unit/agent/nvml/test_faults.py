"""What return codes mean, and how they are said."""

import pytest

from agent.nvml.faults import Code, ends_session, lasts, trouble_of
from agent.nvml.protocol import NvmlFailure

ENDING = {1, 9, 12, 18}
LASTING = {3, 4, 13}


@pytest.mark.parametrize("code", [*range(1, 31), 999])
def test_few_codes_end_the_session(code: int) -> None:
    """Only what concerns driver or library as a whole calls for a new process."""
    assert (code in ENDING) == ends_session(NvmlFailure(code, "call"))
    assert (code in LASTING) == lasts(NvmlFailure(code, "call"))


def test_what_is_no_code_of_nvml_concerns_one_card() -> None:
    """A surprise within a question neither ends the session nor forbids to ask again."""
    failure = NvmlFailure(None, "nvmlDeviceGetUUID", "text that is not UTF-8")

    assert not ends_session(failure)
    assert not lasts(failure)


@pytest.mark.parametrize("code", list(Code))
def test_every_known_code_has_a_reason_and_a_remedy(code: Code) -> None:
    """The sentence names the call and the code, and what to do after a semicolon."""
    said = trouble_of(NvmlFailure(code, "nvmlCall")).text

    assert f"(nvmlCall: code {int(code)}); " in said
    assert "\n" not in said
    assert not said.startswith("the driver fails") or code is Code.ARGUMENT_VERSION_MISMATCH


def test_other_codes_are_told_by_number() -> None:
    """A code that nobody has heard of is shown as it is."""
    said = trouble_of(NvmlFailure(4242, "nvmlCall")).text

    assert said.startswith("the driver fails (nvmlCall: code 4242)")


def test_a_failure_without_a_code_tells_its_text() -> None:
    """What went wrong outside NVML is quoted."""
    said = trouble_of(NvmlFailure(None, "nvmlDeviceGetUUID", "text that is not UTF-8")).text

    assert said.startswith('nvmlDeviceGetUUID: "text that is not UTF-8"; ')
