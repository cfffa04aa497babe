"""Whatever a server answers becomes an object or one of our errors, never anything else."""

import json

import pytest

from kube.errors import BadReplyError, GoneError, KubeError, ServerError
from kube.replies import RawReply, read_reply
from kube.watch import read_change


def test_nesting_without_end_is_a_bad_reply() -> None:
    """Nor does a body that is nested beyond what the parser bears."""
    deep = b'{"a":' * 100_000

    with pytest.raises(BadReplyError):
        read_reply("GET /x", RawReply(200, {}, deep))
    with pytest.raises(BadReplyError):
        read_change("GET /x", deep)


@pytest.mark.parametrize(
    ("code", "expected"), [(410, GoneError), (None, ServerError), (200, ServerError)]
)
def test_error_lines_keep_their_code(code: int | None, expected: type[KubeError]) -> None:
    """An ERROR line means its Status' code, and trouble of the server where that makes no sense."""
    line = json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": code}}).encode()

    with pytest.raises(expected):
        read_change("GET /x", line)


def test_a_status_that_nobody_knows_is_an_error_all_the_same() -> None:
    """A number that HTTP does not know is told as it came."""
    with pytest.raises(KubeError, match="599 Unknown"):
        read_reply("GET /x", RawReply(599, {}, b""))
