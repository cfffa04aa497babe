"""What becomes the message of a container that fails."""

import pytest

from gpufence import names
from gpufence.mode import Mode
from tests.support.builders import gpushare, pod
from tests.support.rewriting import decide, rewritten
from webhook.rewrite import Unchanged

WISH = {names.OOM_MESSAGE: "enabled"}
FILLED_IN = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("said", [{}, FILLED_IN])
def test_a_failing_container_keeps_its_last_lines(mode: Mode, said: dict[str, str]) -> None:
    """
    By a wish of its pod or namespace a GPU container's last lines become its message, in any mode;
    a second pass changes nothing, and no other container is touched.
    """
    asked = pod(gpushare() | said, {"name": "proxy"})
    result, _ = rewritten(asked, mode, namespace=WISH)
    first, second = result["spec"]["containers"]

    assert "FallbackToLogsOnError" == first["terminationMessagePolicy"]
    assert {"name": "proxy"} == second
    assert isinstance(decide(result, mode, namespace=WISH), Unchanged)


@pytest.mark.parametrize(
    ("said", "annotations"),
    [
        ({**FILLED_IN, "terminationMessagePath": "/tmp/why"}, WISH),
        ({}, {**WISH, names.INJECT: "disabled"}),
        ({}, {}),
    ],
)
def test_whose_message_stays(said: dict[str, str], annotations: dict[str, str]) -> None:
    """A container that writes a message of its own, or is to be left alone, keeps what it says."""
    result, _ = rewritten(pod(gpushare() | said, annotations=annotations))

    assert said.get("terminationMessagePolicy") == (
        result["spec"]["containers"][0].get("terminationMessagePolicy")
    )
