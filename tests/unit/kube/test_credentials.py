"""Tokens are read again in time, and a bad moment does not lose a good one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kube.credentials import CommandedToken, TokenFile
from kube.errors import AccessError


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_token_is_read_again_after_its_period(tmp_path: Path) -> None:
    """A fresh token is used a minute later at the latest."""
    path, time = tmp_path / "token", Time()
    path.write_text("one")
    token = TokenFile(path, 60, time)
    path.write_text("two")
    time.now = 59.9
    before = token.header()
    time.now = 60.0

    assert ("Bearer one", "Bearer two") == (before, token.header())


@pytest.mark.parametrize("content", [None, "", " \n", "\udcff"])
def test_a_bad_moment_keeps_the_last_token(tmp_path: Path, content: str | None) -> None:
    """A file that is missing, empty or broken for a moment changes nothing."""
    path, time = tmp_path / "token", Time()
    path.write_text("good")
    token = TokenFile(path, 60, time)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
    time.now = 61.0

    assert not token.renew()
    assert "Bearer good" == token.header()


def test_a_start_without_token_is_refused(tmp_path: Path) -> None:
    """Nothing starts as nobody by mistake."""
    with pytest.raises(AccessError, match="token is missing, empty or unreadable; check that"):
        TokenFile(tmp_path / "token", 60)


def test_a_token_is_not_part_of_its_repr(tmp_path: Path) -> None:
    """What is logged names the file."""
    path = tmp_path / "token"
    path.write_text("secret")

    assert f"TokenFile({path})" == repr(TokenFile(path, 60))


@pytest.mark.parametrize(("second", "expected"), [("new", True), ("old", False)])
def test_asking_again_makes_sense_only_with_something_new(second: str, *, expected: bool) -> None:
    """A login that gives the same credentials again is not worth another request."""
    headers = ["old", second]

    def load() -> Callable[[], str]:
        header = headers.pop(0)
        return lambda: header

    token = CommandedToken(load)

    assert expected == token.renew()
    assert second == token.header()
