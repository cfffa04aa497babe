"""What the labels and annotations of namespaces and pods say."""

import pytest

from gpufence import names
from gpufence.annotations import (
    Headroom,
    HookCarrier,
    NamespaceOptions,
    PodOptions,
    defaults_from,
    read_namespace_options,
    read_pod_options,
)
from gpufence.errors import InvalidError
from gpufence.mode import MODES, Mode, effective_mode, highest_mode, namespace_mode, read_mode
from gpufence.quantity import GIB, MIB

MAIN = frozenset({"main"})


def test_every_wish_is_read() -> None:
    """All annotations that a user may set become typed values."""
    options = read_pod_options(
        {
            names.MEMORY: "6Gi",
            "gpufence.io/memory.main": "2Gi",
            names.PROCESSES_PER_CARD: "3",
            names.HEADROOM: "auto",
            names.PYTHON_HOOK: "enabled",
            names.ARGS: "enabled",
            names.GROWTH: "enabled",
            names.OOM_MESSAGE: "enabled",
            names.INJECT: "disabled",
            names.FRAMEWORK: "vllm",
        },
        MAIN,
    )

    assert (
        PodOptions(
            memory_bytes=6 * GIB,
            memory_of={"main": 2 * GIB},
            processes=3,
            headroom=Headroom.AUTO,
            python_hook=HookCarrier.SITE,
            args=True,
            growth=True,
            oom_message=True,
            inject=False,
            framework="vllm",
        )
        == options
    )


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        (
            names.MEMORY,
            "6GB",
            "is not a Kubernetes quantity; write a number with an optional suffix",
        ),
        (names.MEMORY, "6", "is under 1 MiB; write an amount with its unit, such as 6Gi"),
        (names.MEMORY, "1023Ki", "is under 1 MiB; write an amount with its unit, such as 6Gi"),
        ("gpufence.io/memory.main", "-1Gi", "is negative; write an amount above zero"),
        (
            names.PROCESSES_PER_CARD,
            "0",
            "is not a usable whole number; write a number from 1 to 1024",
        ),
        (names.PROCESSES_PER_CARD, "1025", "is not a usable whole number; write a number from"),
        (names.HEADROOM, "none", "is not a choice; write one of factor, auto"),
        (names.ARGS, "true", "is not a choice; write one of enabled, disabled"),
    ],
)
def test_an_unreadable_option_is_kept_as_a_problem(key: str, text: str, sentence: str) -> None:
    """A mistake is told with its key, value and remedy, and the default stands in its place."""
    options = read_pod_options({key: text}, MAIN)

    (problem,) = options.unreadable
    assert key == problem.key
    assert PodOptions(unreadable=(problem,)) == options
    assert problem.sentence.startswith(f'metadata.annotations[{key}]: "{text}" {sentence}')


def test_an_amount_for_a_container_that_is_not_there_is_noted() -> None:
    """A misspelt container does nothing, and its owner is told which ones there are."""
    options = read_pod_options({"gpufence.io/memory.mian": "2Gi"}, frozenset({"main", "log"}))

    assert {} == options.memory_of
    assert [
        (
            'gpufence.io/memory.mian: "2Gi" is for a container the pod does not have; '
            "end the key with one of log, main"
        )
    ] == [note.sentence for note in options.notes]


@pytest.mark.parametrize(
    "key",
    ["gpufence.io/memroy", "gpufence.io/max-memory", "gpufence.io/mode", "gpufence.io/memory."],
)
def test_a_key_that_does_nothing_on_a_pod_is_noted(key: str) -> None:
    """A misspelt key, or one that belongs on the namespace, is told with those that work."""
    (note,) = read_pod_options({key: "x"}, MAIN).notes

    assert note.sentence.startswith(
        f'{key}: "x" is for a key that does nothing on a pod; those that do: gpufence.io/memory, '
    )


def test_keys_that_gpufence_writes_are_not_noted() -> None:
    """A second pass over our own work finds nothing to complain about."""
    written = dict.fromkeys((*names.WRITTEN_KEYS, f"{names.ENV_PREFIX}s0"), "x")

    assert () == read_pod_options(written, MAIN).notes


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"team": "a"}, PodOptions()),
        ({names.MEMORY: "1Mi"}, PodOptions(memory_bytes=MIB)),
        ({names.INJECT: "enabled"}, PodOptions()),
        ({names.INJECT: ""}, PodOptions()),
    ],
)
def test_what_is_not_said_has_its_default(
    annotations: dict[str, str], expected: PodOptions
) -> None:
    """
    Leaving containers alone needs the very word; a pod that the API server has yet to refuse for
    its nameless container is read all the same.
    """
    assert expected == read_pod_options(annotations, MAIN)
    assert expected == read_pod_options(annotations, frozenset({""}))
    assert {} == defaults_from({"team": "a"}, annotations, frozenset({""}))


def test_a_namespace_has_options_of_its_own() -> None:
    """Ceiling and implied limits are the namespace's to say, and its mistakes are said too."""
    said = {names.MAX_MEMORY: "8Gi", names.IMPLIED_LIMITS: "enabled", "team": "a"}
    wrong = read_namespace_options({names.MAX_MEMORY: "lots", names.IMPLIED_LIMITS: "yes"})

    assert NamespaceOptions(
        max_memory_bytes=8 * GIB, implied_limits=True
    ) == read_namespace_options(said)
    assert [names.MAX_MEMORY, names.IMPLIED_LIMITS] == [each.key for each in wrong.unreadable]


def test_a_namespaces_options_are_defaults_of_its_pods() -> None:
    """What the pod does not say and a pod may say, the namespace says; nothing else is copied."""
    namespace = {
        names.MEMORY: "6Gi",
        names.HEADROOM: "auto",
        names.ARGS: "enabled",
        "gpufence.io/memory.main": "4Gi",
        "gpufence.io/memory.other": "1Gi",
        names.MAX_MEMORY: "8Gi",
        names.PLAN: "{}",
        "team": "a",
    }

    assert {
        names.MEMORY: "6Gi",
        names.ARGS: "enabled",
        "gpufence.io/memory.main": "4Gi",
    } == defaults_from(namespace, {names.HEADROOM: "factor"}, MAIN)


@pytest.mark.parametrize("own", [names.MEMORY, "gpufence.io/memory.main"])
def test_a_pod_with_an_amount_of_its_own_takes_none_of_the_namespaces(own: str) -> None:
    """Amounts of a pod and of its namespace never mix."""
    namespace = {names.MEMORY: "6Gi", "gpufence.io/memory.main": "4Gi", names.ARGS: "enabled"}

    assert {names.ARGS: "enabled"} == defaults_from(namespace, {own: "1Gi"}, MAIN)


def test_the_rungs_are_in_order() -> None:
    """Each mode does all that those below it do, and reads back as it is written."""
    assert Mode.OBSERVE < Mode.CAP < Mode.EVICT
    assert ("observe", "cap", "evict") == MODES
    assert list(Mode) == [read_mode(str(mode), "field") for mode in Mode]


@pytest.mark.parametrize("text", ["", "Evict", "EVICT", "off", "evict "])
def test_a_text_that_is_no_mode_is_refused(text: str) -> None:
    """Only the three words exactly are modes."""
    with pytest.raises(InvalidError, match="is no mode; write one of observe, cap, evict"):
        read_mode(text, "field")


@pytest.mark.parametrize(
    ("labels", "mode"),
    [
        ({}, None),
        ({"gpufence.io/mode": "observe"}, Mode.OBSERVE),
        ({"gpufence.io/mode": "cap"}, Mode.CAP),
        ({"gpufence.io/mode": "evict"}, Mode.EVICT),
        ({"gpufence.io/mode": "evcit"}, None),
    ],
)
def test_a_namespace_opts_in_by_its_label(labels: dict[str, str], mode: Mode | None) -> None:
    """No label, or one that cannot be read, leaves a namespace alone."""
    assert mode is namespace_mode(labels)


@pytest.mark.parametrize(
    ("data", "mode"),
    [
        (None, Mode.CAP),
        ({}, Mode.EVICT),
        ({"max-mode": "evict"}, Mode.EVICT),
        ({"max-mode": "cap"}, Mode.CAP),
        ({"max-mode": "observe"}, Mode.OBSERVE),
        ({"max-mode": "nonsense"}, Mode.CAP),
        ({"default-max-mode": "observe"}, Mode.OBSERVE),
        ({"default-max-mode": "nonsense"}, Mode.CAP),
        ({"default-max-mode": "observe", "max-mode": "evict"}, Mode.OBSERVE),
        ({"default-max-mode": "observe", "max-mode": "nonsense"}, Mode.OBSERVE),
        ({"default-max-mode": "nonsense", "max-mode": "observe"}, Mode.OBSERVE),
        ({"default-max-mode": "evict", "max-mode": "cap"}, Mode.CAP),
        ({"default-max-mode": "evict", "max-mode": "nonsense"}, Mode.CAP),
    ],
)
def test_the_kill_switch_fails_towards_no_eviction(data: dict[str, str] | None, mode: Mode) -> None:
    """
    A ConfigMap that is absent or unreadable evicts nobody; one without the key holds nobody back.
    """
    assert mode is highest_mode(data)


@pytest.mark.parametrize(
    ("namespace", "highest", "mode"),
    [
        (None, Mode.EVICT, None),
        (Mode.EVICT, Mode.CAP, Mode.CAP),
        (Mode.OBSERVE, Mode.EVICT, Mode.OBSERVE),
    ],
)
def test_the_lower_of_both_counts(namespace: Mode | None, highest: Mode, mode: Mode | None) -> None:
    """Neither the namespace nor the kill switch can raise what the other allows."""
    assert mode is effective_mode(namespace, highest)
