"""Whose time counts where two clocks disagree."""

import time

import pytest

from certs.__main__ import ServerClock
from certs.material import DAY


class Server:
    """Says what time it is, off by some seconds."""

    def __init__(self, off: float | None) -> None:
        self.off = off
        self.asked = 0

    def date(self) -> float | None:
        self.asked += 1
        return None if self.off is None else time.time() + self.off


@pytest.mark.parametrize(
    ("off", "said"),
    [
        (0.0, []),
        (500.0, []),
        (3 * DAY + 5, ["the clock of this machine is 3d behind the API server's, which counts"]),
        (
            5 - 3 * DAY,
            ["the clock of this machine is 2d23h ahead of the API server's, which counts"],
        ),
    ],
)
def test_the_api_servers_time_counts(off: float, said: list[str]) -> None:
    """The time is the API server's, and a machine whose own is far off is told so, once."""
    heard: list[str] = []
    server = Server(off)
    clock = ServerClock(server, heard.append)

    assert time.time() + off == pytest.approx(clock.now(), abs=2)
    assert time.time() + off == pytest.approx(clock.now(), abs=2)
    assert said == heard
    assert 1 == server.asked


def test_time_goes_on_while_a_run_waits() -> None:
    """What a run sleeps has passed on its clock."""
    clock = ServerClock(Server(DAY), lambda _text: None)
    before = clock.now()
    clock.sleep(0.01)

    assert 0.01 <= clock.now() - before
    assert 0 <= clock.chance() < 1


def test_a_server_without_a_date_is_said() -> None:
    """Where an answer has no date, the machine's own clock counts, and the run says so."""
    heard: list[str] = []

    assert time.time() == pytest.approx(ServerClock(Server(None), heard.append).now(), abs=2)
    assert ["the API server does not say what time it is: this machine's clock counts"] == heard
