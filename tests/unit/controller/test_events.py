"""How many Events an owner costs that is released and woken all day, its pods' own among them."""

from collections.abc import Mapping

from controller.loop import HOUR_SECONDS, MOST_EVENTS, events_allowed

PASS_SECONDS = 60.0


def day_of(pods: int, step_seconds: float) -> tuple[list[float], list[int]]:
    """Return when Events were written, and how many each time, for a day of announcements."""
    said: Mapping[str, tuple[float, ...]] = {}
    times, counts = [], []
    for step in range(int(24 * HOUR_SECONDS / step_seconds)):
        now = step * step_seconds
        said, allowed = events_allowed(said, "uid", 1 + pods, now)
        times += [now] * allowed
        counts.append(allowed)
    return times, counts


def test_an_owner_that_goes_and_comes_all_day_is_written_of_twenty_times_an_hour() -> None:
    """However many pods it has, and however often something happens to it."""
    for pods in (0, 1, 200):
        times, _ = day_of(pods, PASS_SECONDS)

        assert MOST_EVENTS == max(sum(at <= x < at + HOUR_SECONDS for x in times) for at in times)


def test_the_owner_hears_of_everything_as_long_as_it_can() -> None:
    """Its first pods are written of as well, and later the owner alone."""
    _, counts = day_of(200, 5 * PASS_SECONDS)

    assert 7 == counts[0]
    assert {1} == set(counts[1:12])


def test_owners_do_not_share() -> None:
    """What one has used up takes nothing from another, and after an hour it is forgotten."""
    said, first = events_allowed({}, "a", 3, 0.0)
    said, other = events_allowed(said, "b", 3, 1.0)
    said, later = events_allowed(said, "b", 3, HOUR_SECONDS + 0.5)

    assert (3, 3) == (first, other)
    assert {"b"} == said.keys()
    assert 3 == later
