"""Which servers are reached through a proxy, and which directly."""

import pytest

from kube.proxies import Proxies, choose_proxy, read_proxies

PROXY = "http://proxy:3128"


def behind(bypass: str) -> Proxies:
    return Proxies(by_scheme=(("https", PROXY),), bypass=bypass)


@pytest.mark.parametrize(
    ("server", "bypass"),
    [
        ("https://localhost:6443", ""),
        ("https://127.0.0.1:6443", ""),
        ("https://127.8.8.8", ""),
        ("https://[::1]:6443", ""),
        ("https://10.0.0.1", "*"),
        ("https://10.0.0.1", "10.0.0.1"),
        ("https://10.0.0.1", "a, 10.0.0.0/8 ,b"),
        ("https://10.0.0.1:6443", "10.0.0.1:6443"),
        ("https://[fd00::1]:6443", "fd00::/8"),
        ("https://[fd00::1]:6443", "[fd00::1]:6443"),
        ("https://api.example.com", "example.com"),
        ("https://api.example.com", ".example.com"),
        ("https://api.example.com", "*.example.com"),
        ("https://API.example.com", "api.Example.com"),
        ("https://api.example.com:6443", "example.com:6443"),
    ],
)
def test_servers_reached_directly(server: str, bypass: str) -> None:
    """The machine itself and whatever NO_PROXY names are not reached through a proxy."""
    assert choose_proxy(server, behind(bypass)) is None


@pytest.mark.parametrize(
    ("server", "bypass"),
    [
        ("https://10.0.0.1", ""),
        ("https://10.0.0.1", " , ,."),
        ("https://10.0.0.1", "10.0.0.2"),
        ("https://10.0.0.1", "10.1.0.0/16"),
        ("https://10.0.0.1:443", "10.0.0.1:6443"),
        ("https://api.example.com", "pi.example.com"),
        ("https://api.example.com", "api.example"),
        ("https://api.example.com", "example.com:6443"),
    ],
)
def test_servers_reached_through_the_proxy(server: str, bypass: str) -> None:
    """Everything else goes through it."""
    assert PROXY == choose_proxy(server, behind(bypass))


def test_the_scheme_chooses_the_proxy() -> None:
    """A proxy for one scheme serves no other; ALL_PROXY serves both."""
    found = Proxies(by_scheme=(("https", "http://a"), ("all", "http://b")))

    assert "http://a" == choose_proxy("https://h", found)
    assert "http://b" == choose_proxy("http://h", found)
    assert choose_proxy("http://h", behind("")) is None


def test_a_proxy_without_scheme_speaks_http() -> None:
    """The short form of the variable is understood."""
    found = Proxies(by_scheme=(("https", "proxy:3128"),))

    assert PROXY == choose_proxy("https://h", found)


def test_lower_case_variables_win() -> None:
    """Where both spellings are set, the lower one counts; empty ones count as unset."""
    environ = {
        "https_proxy": "a",
        "HTTPS_PROXY": "b",
        "http_proxy": "",
        "HTTP_PROXY": "c",
        "NO_PROXY": "x",
    }

    assert Proxies((("http", "c"), ("https", "a")), "x") == read_proxies(environ)


def test_passwords_are_not_shown() -> None:
    """A proxy's login stays out of every log."""
    found = read_proxies({"https_proxy": "http://me:secret@proxy", "no_proxy": "x"})

    assert "Proxies(for https, bypass='x')" == repr(found)
