"""What the program can be told."""

import pytest

from certs.material import ServiceNames, WaitSettings
from certs.ports import Replica
from certs.settings import PREFIX, CertsSettings, read_endpoints
from gpufence.errors import SettingsError
from gpufence.settings import read_settings, unknown_settings


def test_nothing_set_means_the_manifests_names() -> None:
    """Without any variable the names are those of the manifests."""
    settings = read_settings(CertsSettings, {})

    assert ServiceNames("gpufence-webhook", "gpufence-system") == settings.names
    assert WaitSettings() == settings.patience


def test_everything_can_be_set() -> None:
    """Every variable is read by its type, addresses in their one normal spelling."""
    read = read_settings(
        CertsSettings,
        {
            "GPUFENCE_NAMESPACE": "fence",
            "GPUFENCE_WEBHOOK_SERVICE": "hook",
            "GPUFENCE_CERTS_ADDRESSES": "10.0.0.7, FD00:0:0::7",
            "GPUFENCE_CERTS_SETTLE_SECONDS": "0.5",
            "GPUFENCE_CERTS_WAIT_SECONDS": "0",
        },
    )

    assert ServiceNames("hook", "fence", ("10.0.0.7", "fd00::7")) == read.names
    assert WaitSettings(0.5, 0.0) == read.patience


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GPUFENCE_NAMESPACE", "a/b"),
        ("GPUFENCE_WEBHOOK_SERVICE", "Hook"),
        ("GPUFENCE_CERTS_ADDRESSES", "10.0.0"),
        ("GPUFENCE_CERTS_SETTLE_SECONDS", "soon"),
        ("GPUFENCE_CERTS_WAIT_SECONDS", "1e9"),
    ],
)
def test_mistakes_name_variable_and_value(name: str, value: str) -> None:
    """What cannot be read is refused with its name and its value."""
    with pytest.raises(SettingsError, match=f'{name}: "{value}"'):
        read_settings(CertsSettings, {name: value})


def test_misspelt_variables_are_found() -> None:
    """A variable that only looks like one of this program's is reported."""
    unknown = unknown_settings(CertsSettings, {"GPUFENCE_CERTS_WAIT": "1"}, PREFIX)

    assert ("GPUFENCE_CERTS_WAIT",) == unknown


def test_endpoints_are_read() -> None:
    """Endpoints are hosts with ports, IPv6 in brackets."""
    read = read_endpoints("10.0.0.7:8443, [fd00::7]:443", "--endpoints")

    assert (Replica("10.0.0.7", 8443), Replica("fd00::7", 443)) == read


@pytest.mark.parametrize("text", ["10.0.0.7", "10.0.0.7:https", "a:1,b"])
def test_an_endpoint_without_port_is_refused(text: str) -> None:
    """An endpoint that is no host and port is refused, with an example."""
    with pytest.raises(SettingsError, match=r"--endpoints: .* such as 10\.0\.0\.7:8443"):
        read_endpoints(text, "--endpoints")
