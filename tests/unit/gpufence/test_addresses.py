"""Where agents are, as somebody wrote it."""

import pytest

from gpufence.addresses import read_agents, read_url
from gpufence.errors import InvalidError


def test_agents_by_node() -> None:
    """Each item names a node and where its agent is, with blanks around it or a slash behind it."""
    items = ["gpu-1=http://10.0.0.7:8080/", " gpu-2=https://agent.example.com"]

    expected = {"gpu-1": "http://10.0.0.7:8080", "gpu-2": "https://agent.example.com"}

    assert expected == read_agents(items, "--agents")


@pytest.mark.parametrize(
    "text",
    [
        *("", "gpu-1", "=http://a:1", "gpu-1=a:8080", "gpu-1=http://[", "a="),
        *("gpu 1=http://a:1", "GPU=http://a:1", "a=http://a:99999", "a=http://a:http"),
        *("a=http://a:1,b=http://b:1", "a=http://a b:1", "a=http://a\n:1", "a=http://a:1/\x1b[31m"),
        *("a=http://a:1?", "a=http://a:1/#part", "a=http://me:secret@a:1"),
    ],
)
def test_an_address_that_cannot_be_read_is_named(text: str) -> None:
    """The error says where it stands and what one looks like."""
    with pytest.raises(InvalidError, match=r"--agents.*http://10"):
        read_agents([text], "--agents")


def test_a_node_has_one_agent() -> None:
    """Which of two addresses would be asked is nobody's guess."""
    with pytest.raises(InvalidError, match='--agents: "b" is named twice; name each node once'):
        read_agents(["b=http://10.0.0.7:8080", "b=http://10.0.0.8:8080"], "--agents")


def test_a_secret_in_an_address_is_not_repeated() -> None:
    """What somebody wrote before an @ may be a password, and errors are logged."""
    with pytest.raises(InvalidError, match=r'"http://\.\.\.@a:1" is no address') as caught:
        read_url("http://me:secret@a:1", "--controller")

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["http://[fd00::7]:8080", "http://gpu-1.example.com:8080/agent"])
def test_addresses_of_all_kinds(text: str) -> None:
    """IPv6, and a path behind which the agent's pages are."""
    assert text == read_url(f"{text}/", "--agents")


def test_a_way_that_the_reader_cannot_go() -> None:
    """Who asks by plain HTTP alone takes no other address."""
    with pytest.raises(InvalidError, match="is no address"):
        read_url("https://10.0.0.7", "GPUFENCE_AGENTS", {"http"})
