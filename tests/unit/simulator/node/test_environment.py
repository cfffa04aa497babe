"""
The variables of a container, resolved as a kubelet does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from simulator.node.environment import (
    CONFIG_MAP,
    SECRET,
    Reference,
    Sources,
    command_line,
    references,
    resolve,
)
from simulator.node.errors import NotYetError
from tests.unit.simulator.node.builders import NODE, container, env, field, pod

if TYPE_CHECKING:
    from simulator.node.pod import Container

DATA = {
    Reference(CONFIG_MAP, "settings"): {"a": "map a", "b": "map b"},
    Reference(SECRET, "keys"): {"a": "secret a", "token": "t0p"},
}
SOURCES = Sources(NODE, DATA)


def resolved(*entries: tuple[str, Any], **fields: Any) -> dict[str, str]:
    found = pod(
        container(env=env(*entries), **fields),
        annotations={"gpufence.io/x": "0.25", "raw": "$(A)"},
    )
    return resolve(found.containers[0], found, SOURCES)


def key(kind: str, name: str, of: str, *, optional: bool | None = None) -> dict[str, Any]:
    source: dict[str, Any] = {"name": name, "key": of}
    return {kind: source if optional is None else {**source, "optional": optional}}


def test_literals_are_taken_in_their_order() -> None:
    """
    Literal variables keep the order in which they are written.
    """
    assert [("B", "2"), ("A", "1")] == list(resolved(("B", "2"), ("A", "1")).items())


def test_the_last_of_two_equal_names_counts() -> None:
    """
    A name that is given twice has its later value.
    """
    assert {"A": "2"} == resolved(("A", "1"), ("A", "2"))


def test_earlier_variables_are_expanded() -> None:
    """
    A value may refer to what stands before it, fields included.
    """
    found = resolved(("F", field("metadata.annotations['gpufence.io/x']")), ("A", "use=$(F)"))

    assert "use=0.25" == found["A"]


def test_later_variables_are_not_expanded() -> None:
    """
    A reference to what stands behind it stays as it is written.
    """
    assert {"A": "$(B)", "B": "2"} == resolved(("A", "$(B)"), ("B", "2"))


def test_a_doubled_sign_escapes() -> None:
    """
    `$$(A)` is the text `$(A)`.
    """
    assert "$(A)" == resolved(("A", "1"), ("B", "$$(A)"))["B"]


def test_values_from_a_source_are_not_expanded() -> None:
    """
    What an annotation holds is taken as it is, even if it looks like a reference.
    """
    assert "$(A)" == resolved(("A", "1"), ("B", field("metadata.annotations['raw']")))["B"]


def test_a_missing_annotation_is_empty() -> None:
    """
    A field reference to an annotation that is not there gives an empty variable, not an error.
    """
    assert {"A": ""} == resolved(("A", field("metadata.annotations['none']")))


def test_an_empty_literal_is_an_empty_variable() -> None:
    """
    An empty value without a source still sets the variable.
    """
    assert {"A": ""} == resolved(("A", ""))


def test_keys_of_objects_are_read() -> None:
    """
    ConfigMaps and Secrets give single values.
    """
    found = resolved(
        ("M", key("configMapKeyRef", "settings", "a")), ("S", key("secretKeyRef", "keys", "token"))
    )

    assert {"M": "map a", "S": "t0p"} == found


def test_resources_are_told() -> None:
    """
    A resource field gives the container's own limit in units of its divisor.
    """
    wish = {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}
    found = resolved(("M", wish), resources={"limits": {"memory": "2Gi"}})

    assert {"M": "2048"} == found


def test_a_resource_without_a_divisor_is_counted_in_ones() -> None:
    """
    Without a divisor a resource field counts bytes or whole cores.
    """
    wish = {"resourceFieldRef": {"resource": "limits.cpu"}}

    assert {"C": "3"} == resolved(("C", wish), resources={"limits": {"cpu": "2500m"}})


@pytest.mark.parametrize(
    "source",
    [
        key("configMapKeyRef", "none", "a", optional=True),
        key("configMapKeyRef", "settings", "none", optional=True),
        key("secretKeyRef", "none", "a", optional=True),
        key("secretKeyRef", "keys", "none", optional=True),
    ],
)
def test_what_is_optional_may_be_missing(source: dict[str, Any]) -> None:
    """
    An optional key that is not there leaves the variable as it was before.
    """
    assert {"A": "before"} == resolved(("A", "before"), ("A", source))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            key("configMapKeyRef", "none", "a"),
            'configmap "none" not found in namespace team-a',
        ),
        (
            key("configMapKeyRef", "settings", "none", optional=False),
            "couldn't find key none in ConfigMap team-a/settings",
        ),
        (
            key("secretKeyRef", "keys", "none"),
            "couldn't find key none in Secret team-a/keys",
        ),
        (
            {"fileKeyRef": {"path": "x"}},
            "valueFrom: fileKeyRef is not simulated; use a fieldRef",
        ),
    ],
)
def test_what_is_missing_keeps_the_container_waiting(source: dict[str, Any], message: str) -> None:
    """
    A source that is needed and not there is an error that names it.
    """
    with pytest.raises(NotYetError) as caught:
        resolved(("A", source))

    assert message == str(caught.value)


def test_whole_objects_become_variables_with_a_prefix() -> None:
    """
    `envFrom` takes every key of an object, later objects over earlier ones.
    """
    found = resolved(
        envFrom=[
            {"configMapRef": {"name": "settings"}},
            {"secretRef": {"name": "keys"}},
            {"prefix": "P_", "secretRef": {"name": "keys"}},
        ]
    )

    assert {
        "a": "secret a",
        "b": "map b",
        "token": "t0p",
        "P_a": "secret a",
        "P_token": "t0p",
    } == found


def test_env_stands_above_env_from() -> None:
    """
    A variable in `env` replaces one of `envFrom`, and may refer to the others.
    """
    found = resolved(
        ("a", "mine"), ("c", "$(b)!"), envFrom=[{"configMapRef": {"name": "settings"}}]
    )

    assert {"a": "mine", "b": "map b", "c": "map b!"} == found


def test_an_optional_object_may_be_missing() -> None:
    """
    `envFrom` with an optional object that is not there adds nothing.
    """
    assert {} == resolved(envFrom=[{"configMapRef": {"name": "none", "optional": True}}])


def test_a_needed_object_must_be_there() -> None:
    """
    `envFrom` with an object that is not there keeps the container waiting.
    """
    with pytest.raises(NotYetError, match='secret "none" not found'):
        resolved(envFrom=[{"secretRef": {"name": "none"}}])


def of(**fields: Any) -> Container:
    return pod(container(**fields)).containers[0]


def test_all_references_are_found() -> None:
    """
    Every ConfigMap and Secret that `env` and `envFrom` name is to be read, once.
    """
    found = of(
        env=env(
            ("A", key("configMapKeyRef", "one", "a")),
            ("B", key("configMapKeyRef", "one", "b")),
            ("C", key("secretKeyRef", "two", "c")),
            ("D", "literal"),
        ),
        envFrom=[{"configMapRef": {"name": "three"}}, {"secretRef": {"name": "four"}}],
    )

    assert {
        Reference(CONFIG_MAP, "one"),
        Reference(SECRET, "two"),
        Reference(CONFIG_MAP, "three"),
        Reference(SECRET, "four"),
    } == references(found)


def test_command_and_arguments_are_expanded() -> None:
    """
    Command and arguments see all variables, the device plugin's included.
    """
    found = of(command=["run", "$(A)"], args=["--card=$(NVIDIA_VISIBLE_DEVICES)", "$$(A)"])
    variables = {"A": "1", "NVIDIA_VISIBLE_DEVICES": "GPU-0"}

    assert (("run", "1"), ("--card=GPU-0", "$(A)")) == command_line(found, variables)
