"""Which way to a cluster is taken, and what is said when there is none."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kube import AccessError, ClientSettings, connect, read_client_settings
from kube.access import find_access

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
