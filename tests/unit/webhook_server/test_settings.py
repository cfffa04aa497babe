"""
The server's settings.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufence.dialects import Dialect
from gpufence.errors import SettingsError
from gpufence.names import SCHEDULER_PREFIX
from gpufence.settings import Reader
from webhook.policy import read_policy, scheduler_setting
from webhook.settings import HELP, POLICY_HELP, ServerSettings, read_server_settings

WRONG = {
    "GPUFENCE_LISTEN": "8443",
    "GPUFENCE_STATUS_LISTEN": "localhost",
    "GPUFENCE_CLUSTER": "some",
    "GPUFENCE_LOG_LEVEL": "loud",
    "GPUFENCE_DRAIN_SECONDS": "-1",
    "GPUFENCE_API_DEADLINE_SECONDS": "soon",
}


def test_nothing_set_means_the_documented_defaults() -> None:
    """
    An empty environment gives the defaults that the dataclass documents.
    """
    reader = Reader({})

    assert ServerSettings() == read_server_settings(reader)


def test_every_setting_is_read() -> None:
    """
    Each variable reaches its field.
    """
    reader = Reader(
        {
            "GPUFENCE_LISTEN": "127.0.0.1:0",
            "GPUFENCE_STATUS_LISTEN": "[::1]:9000",
            "GPUFENCE_TLS_DIR": "/certificates",
            "GPUFENCE_TLS_POLL_SECONDS": "0.1",
            "GPUFENCE_CLUSTER": "none",
            "GPUFENCE_LOG_LEVEL": "debug",
            "GPUFENCE_DRAIN_SECONDS": "0.5",
            "GPUFENCE_API_DEADLINE_SECONDS": "0.1",
        }
    )
    settings = read_server_settings(reader)
    reader.check()

    assert (
        ServerSettings(
            listen=("127.0.0.1", 0),
            status_listen=("::1", 9000),
            tls_dir=Path("/certificates"),
            tls_poll_seconds=0.1,
            cluster="none",
            log_level="debug",
            drain_seconds=0.5,
            api_deadline_seconds=0.1,
        )
        == settings
    )


def test_every_mistake_is_named_at_once() -> None:
    """
    Whoever made six mistakes learns of six.
    """
    reader = Reader(WRONG)
    read_server_settings(reader)
    with pytest.raises(SettingsError) as caught:
        reader.check()

    assert sorted(WRONG) == sorted(problem.field for problem in caught.value.problems)


def test_the_help_lists_every_setting() -> None:
    """
    What is read is documented, and nothing else is.
    """
    schedulers = {scheduler_setting(dialect): "x" for dialect in Dialect}
    pattern = f"{SCHEDULER_PREFIX}<DIALECT>"
    reader = Reader(dict.fromkeys(HELP.keys() | POLICY_HELP.keys() - {pattern}, "x") | schedulers)
    read_server_settings(reader)
    read_policy(reader)

    assert () == reader.unknown("GPUFENCE_")
    assert all(dialect.name in POLICY_HELP[pattern] for dialect in Dialect)


def test_settings_are_shown_as_a_person_writes_them() -> None:
    """
    The log shows addresses as host and port.
    """
    shown = ServerSettings(status_listen=("::1", 9000)).shown()

    assert [":8443", "[::1]:9000", "/tls"] == [
        shown[name] for name in ("listen", "status_listen", "tls_dir")
    ]
