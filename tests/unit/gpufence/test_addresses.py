"""
Where agents are, as somebody wrote it.
"""

import pytest

from gpufence.addresses import read_agents, read_url
from gpufence.errors import InvalidError


def test_agents_by_node() -> None:
    """
    Each item names a node and where its agent is, with blanks around it or a slash behind it.
    """
    items = ["gpu-1=http://10.0.0.7:8080/", " gpu-2=https://agent.example.com"]

    expected = {"gpu-1": "http://10.0.0.7:8080", "gpu-2": "https://agent.example.com"}

    assert expected == read_agents(items, "--agents")


@pytest.mark.parametrize(
    "text", ["", "gpu-1", "=http://a:1", "gpu-1=a:8080", "gpu-1=http://[", "a="]
)
def test_an_address_that_cannot_be_read_is_named(text: str) -> None:
    """
    The error says where it stands and what one looks like.
    """
    with pytest.raises(InvalidError, match=r"--agents.*http://10"):
        read_agents([text], "--agents")


def test_a_way_that_the_reader_cannot_go() -> None:
    """
    Who asks by plain HTTP alone takes no other address.
    """
    with pytest.raises(InvalidError, match="is no address"):
        read_url("https://10.0.0.7", "GPUFENCE_AGENTS", {"http"})
