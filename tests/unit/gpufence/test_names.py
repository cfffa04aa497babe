"""Names that other programs rely on."""

import re

from gpufence import names

LABEL = re.compile(
    r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


def constants() -> dict[str, object]:
    return {key: value for key, value in vars(names).items() if key.isupper()}


def test_no_name_is_spelled_twice() -> None:
    """One meaning, one constant."""
    texts = [value for value in constants().values() if isinstance(value, str)]
    repeated = {text for text in texts if texts.count(text) > 1}

    assert set() == repeated


def test_keys_are_what_kubernetes_accepts() -> None:
    """Every key that users or gpufence write is a valid qualified name."""
    keys = (*names.USER_KEYS, *names.WRITTEN_KEYS, names.CARDS, names.MAX_MEMORY, names.MODE)

    assert [] == [key for key in keys if not LABEL.fullmatch(key)]


def test_keys_of_ours_share_a_prefix() -> None:
    """One policy can freeze them all."""
    keys = (*names.USER_KEYS, *names.WRITTEN_KEYS, names.CARDS, names.MAX_MEMORY, names.MODE)

    assert [] == [key for key in keys if not key.startswith(names.PREFIX)]


def test_what_users_set_and_what_gpufence_writes_are_apart() -> None:
    """Dropping forged values at create never drops an option."""
    assert set() == set(names.USER_KEYS) & set(names.WRITTEN_KEYS)


def test_the_configuration_sorts_before_kais() -> None:
    """The API server calls webhooks by name, and KAI skips pods whose scheduler is set too late."""
    assert names.WEBHOOK_CONFIGURATION < "mutating-kai-admission"


def test_event_reasons_are_one_camel_case_word() -> None:
    """An event's reason is what people filter by."""
    reasons = [
        value
        for value in constants().values()
        if isinstance(value, str) and value.startswith(("GPUMemory", "NVML"))
    ]

    assert 15 == len(reasons)
    assert [] == [reason for reason in reasons if not re.fullmatch(r"[A-Z][A-Za-z]+", reason)]
