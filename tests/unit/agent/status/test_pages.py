"""
What is answered to whom.
"""

from __future__ import annotations

from http import HTTPStatus

import pytest

from agent.status.pages import Page, answer, health_page
from agent.status.request import Request, said
from tests.support.agent.node import Clock

PAGES = {"/healthz": lambda: said(HTTPStatus.OK, "ok"), "/metrics": health_page(lambda: "stuck")}


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/healthz", 200),
        ("HEAD", "/healthz", 200),
        ("POST", "/healthz", 405),
        ("GET", "/metrics", 503),
        ("GET", "/healthz/", 404),
        ("GET", "/../etc/passwd", 404),
        ("DELETE", "/", 404),
    ],
)
def test_paths_and_methods(method: str, path: str, expected: int) -> None:
    """
    Only our paths, and only reading them, is answered.
    """
    assert expected == answer(Request(method, path), PAGES).status


def test_a_page_is_made_at_most_a_few_times_a_second() -> None:
    """
    Whoever asks again at once gets the same page; a moment later it is made anew.
    """
    clock, made = Clock(), []

    def make() -> str:
        made.append(1)
        return str(len(made))

    page = Page("text/plain", make, clock)
    replies = [page().body, page().body]
    clock.now += 1
    replies.append(page().body)

    assert [b"1", b"1", b"2"] == replies


def test_health_says_what_is_wrong() -> None:
    """
    A healthy agent says ok, one that hangs says why.
    """
    assert b"ok\n" == health_page(lambda: "")().body
    assert b"it hangs\n" == health_page(lambda: "it hangs")().body
