"""The way to an API server: address, credentials, proxies."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kube import AccessError, ClientSettings, connect, read_client_settings
from kube.access import Proxies, choose_proxy, find_access, read_proxies
from kube.credentials import CommandedToken, TokenFile

NOWHERE = ClientSettings(default_kubeconfig="/nonexistent/config")


def test_no_way_names_every_place_that_was_looked_at() -> None:
    """Who starts a program outside of any cluster learns what it looked for."""
    with pytest.raises(AccessError) as caught:
        connect(NOWHERE)

    expected = (
        "no way to a Kubernetes cluster: no kubeconfig was named (KUBECONFIG is not set), this is "
        "no pod of a cluster (KUBERNETES_SERVICE_HOST is not set) and /nonexistent/config does not "
        "exist; set KUBECONFIG to a kubeconfig file"
    )
    assert expected == str(caught.value)


def test_a_pod_without_service_account_is_told_how_to_get_one(tmp_path: Path) -> None:
    """A pod without the mounted token learns of automountServiceAccountToken."""
    with pytest.raises(AccessError, match="automountServiceAccountToken: true"):
        connect(replace(NOWHERE, service_host="10.0.0.1", service_account=tmp_path))


@pytest.mark.parametrize("in_pod", [False, True], ids=["a home folder", "a service account"])
def test_a_folder_that_is_closed_to_us_is_named(tmp_path: Path, in_pod: bool) -> None:  # noqa: FBT001
    """Who may not look into a folder reads which file was looked for there, and what helps."""
    folder = tmp_path / "home"
    folder.mkdir()
    settings = (
        ClientSettings(service_host="10.0.0.1", service_account=folder)
        if in_pod
        else ClientSettings(default_kubeconfig=f"{folder}/config")
    )
    folder.chmod(0)
    user = os.geteuid()
    try:
        if user == 0:  # whom no mode keeps out
            os.seteuid(65534)
        with pytest.raises(AccessError, match="cannot be looked for: Permission denied") as caught:
            find_access(settings)
    finally:
        os.seteuid(user)
        folder.chmod(0o700)

    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("server", ["10.0.0.1:6443", "ftp://h", "https://", ""])
def test_a_server_that_is_no_address_is_refused(server: str) -> None:
    """An address without scheme or host is shown with an example of a good one."""
    with pytest.raises(AccessError, match=r"write it like https://10\.0\.0\.1:6443"):
        connect(replace(NOWHERE, server=server))


def test_socks_proxies_are_refused() -> None:
    """A proxy that we cannot speak to is named before anything is sent."""
    settings = read_client_settings({"all_proxy": "socks5://p:1080"}, user_agent="t")

    with pytest.raises(AccessError, match="proxy scheme 'socks5' is not supported"):
        connect(replace(settings, server="http://api.example"))


def test_an_ipv6_service_is_put_in_brackets(tmp_path: Path) -> None:
    """Clusters on IPv6 have an address that can be dialled."""
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("")
    settings = replace(NOWHERE, service_host="fd00::1", service_account=tmp_path)

    with pytest.raises(AccessError, match=r"ca\.crt cannot be used"):
        find_access(settings)


def test_settings_are_read_from_what_kubernetes_gives() -> None:
    """The variables of a pod and of kubectl's users fill the settings."""
    environ = {
        "KUBECONFIG": "a:b",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "6443",
        "NO_PROXY": "x",
    }
    settings = read_client_settings(environ, user_agent="gpufence-agent/1")

    assert ("a:b", "10.0.0.1", "6443", "x", "gpufence-agent/1") == (
        settings.kubeconfig,
        settings.service_host,
        settings.service_port,
        settings.proxies.bypass,
        settings.user_agent,
    )


def test_an_empty_environment_means_the_defaults() -> None:
    """Empty variables count as unset."""
    environ = {"KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""}

    assert ClientSettings(user_agent="t") == read_client_settings(environ, user_agent="t")


def test_a_program_without_the_kubernetes_package_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Images leave the package out; a kubeconfig there is refused with the reason."""
    monkeypatch.setitem(sys.modules, "kube.kubeconfig", None)

    with pytest.raises(AccessError, match="/x cannot be read by a program without the package"):
        find_access(ClientSettings(kubeconfig="/x"))


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
