"""The webhook's settings: how it serves, and what holds for pods."""

from pathlib import Path

import pytest

from gpufence import names
from gpufence.errors import SettingsError
from gpufence.quantity import GIB, MIB
from gpufence.settings import read_settings, shown_settings, unknown_settings
from webhook.policy import WebhookPolicy, toleration
from webhook.settings import PodSettings, ServerSettings, WebhookSettings

WRONG = {
    "GPUFENCE_LISTEN": "8443",
    "GPUFENCE_STATUS_LISTEN": "localhost",
    "GPUFENCE_CLUSTER": "some",
    "GPUFENCE_LOG_LEVEL": "loud",
    "GPUFENCE_DRAIN_SECONDS": "-1",
    "GPUFENCE_API_DEADLINE_SECONDS": "soon",
    "GPUFENCE_SCHEDULER_KAI": "Not A Name",
}


def test_every_setting_is_read() -> None:
    """Each variable reaches its field."""
    variables = {
        "GPUFENCE_LISTEN": "127.0.0.1:0",
        "GPUFENCE_STATUS_LISTEN": "[::1]:9000",
        "GPUFENCE_TLS_DIR": "/certificates",
        "GPUFENCE_TLS_POLL_SECONDS": "0.1",
        "GPUFENCE_CLUSTER": "none",
        "GPUFENCE_LOG_LEVEL": "debug",
        "GPUFENCE_DRAIN_SECONDS": "0.5",
        "GPUFENCE_API_DEADLINE_SECONDS": "0.1",
    }

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
        == read_settings(WebhookSettings, variables).server
    )


def test_every_mistake_is_named_at_once() -> None:
    """Whoever made seven mistakes learns of seven."""
    with pytest.raises(SettingsError) as caught:
        read_settings(WebhookSettings, WRONG)

    assert sorted(WRONG) == sorted(problem.field for problem in caught.value.problems)


def test_a_setting_for_each_dialect_is_known() -> None:
    """A dialect's scheduler is a setting, that of an unknown dialect is none."""
    variables = {"GPUFENCE_SCHEDULER_HAMI": "x", "GPUFENCE_SCHEDULER_SLURM": "x"}

    assert ("GPUFENCE_SCHEDULER_SLURM",) == unknown_settings(WebhookSettings, variables)


def read(**variables: str) -> WebhookPolicy:
    return read_settings(PodSettings, variables).policy()


def test_without_settings_the_defaults_hold() -> None:
    """An empty environment reads as the policy's own defaults."""
    assert WebhookPolicy() == read()


def test_units_and_card_are_read() -> None:
    """Unit, factor, card and compute capability stand in where no node tells."""
    policy = read(
        GPUFENCE_GPUSHARE_UNIT="MiB",
        GPUFENCE_VOLCANO_FACTOR="10",
        GPUFENCE_DEFAULT_CARD="15360Mi",
        GPUFENCE_DEFAULT_COMPUTE_CAPABILITY="7.5",
        GPUFENCE_RESERVE="300Mi",
    )

    assert (MIB, 10) == (policy.default.units.gpushare_bytes, policy.default.units.volcano_factor)
    assert (15 * GIB, (7, 5)) == (policy.default.memory_bytes, policy.default.compute_capability)
    assert 300 * MIB == policy.reserve_override


@pytest.mark.parametrize(
    ("text", "every", "measured"),
    [
        ("Tesla T4=300Mi", None, (("Tesla T4", 300 * MIB),)),
        (
            "Tesla T4=300Mi, 700Mi,NVIDIA A100-SXM4-40GB MIG 1g.5gb = 0.5Gi,",
            700 * MIB,
            (("Tesla T4", 300 * MIB), ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 512 * MIB)),
        ),
    ],
)
def test_reserves_are_set_by_card(
    text: str, every: int | None, measured: tuple[tuple[str, int], ...]
) -> None:
    """An amount for all cards, one for each model, or both; the log says the same again."""
    policy = read(GPUFENCE_RESERVE=text)
    settings = read_settings(PodSettings, {"GPUFENCE_RESERVE": text})
    again = read(GPUFENCE_RESERVE=str(shown_settings(settings)["reserves"]))

    assert (every, measured) == (policy.reserve_override, policy.measured)
    assert policy == again


def test_a_dialects_scheduler_can_be_set_and_unset() -> None:
    """A setting names a dialect's scheduler; default-scheduler leaves its pods alone."""
    policy = read(GPUFENCE_SCHEDULER_GPUSHARE="mine", GPUFENCE_SCHEDULER_KAI="default-scheduler")

    assert "mine" == policy.scheduler_names["gpushare"]
    assert "kai" not in policy.scheduler_names


def test_tolerations_are_read() -> None:
    """Tolerations are written as taints are, value and effect only where wanted."""
    policy = read(GPUFENCE_TOLERATIONS="team=ml:NoSchedule, example.com/spot, slow:NoExecute,")

    assert (
        toleration("team", "ml", "NoSchedule"),
        toleration("example.com/spot"),
        toleration("slow", effect="NoExecute"),
    ) == policy.tolerations


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        (names.TOLERATIONS, "team=ml:Never", "key=value:Effect"),
        (names.TOLERATIONS, "=x", "key=value:Effect"),
        (names.DEFAULT_CAPABILITY, "seven", "major.minor"),
        (names.SCHEDULER_PREFIX + "KAI", "Not A Name", "write a schedulerName"),
        (names.DEFAULT_CARD, "15GB", "such as 6Gi"),
        (names.GPUSHARE_UNIT, "MB", "GiB, MiB"),
        (names.RESERVE, "=300Mi", "such as Tesla T4=300Mi"),
        (names.RESERVE, "Tesla T4=300Mi,tesla-t4=400Mi", "name each card once"),
        (names.RESERVE, "300Mi,700Mi", "at most one amount for all others"),
        (names.RESERVE, "Tesla T4=lots", "GPUFENCE_RESERVE[Tesla T4]"),
        (names.RESERVE, "Tesla T4", "such as 6Gi"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(name: str, value: str, remedy: str) -> None:
    """What cannot be read is refused with variable, value and remedy."""
    with pytest.raises(SettingsError) as caught:
        read(**{name: value})

    assert name in str(caught.value)
    assert remedy in str(caught.value)
