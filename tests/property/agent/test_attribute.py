"""Whose a process is, by its cgroup and by lists."""

import re
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from agent.attribute import attribute
from agent.model.pod import pods_on_node
from agent.model.sample import Sample
from agent.model.use import MPS_SERVER, Owner
from agent.procfs.parse import parse_cgroup, parse_stat
from gpufence.quantity import GIB
from tests.support.agent.builders import card_sample, occupant, pod, process_of

PODS = [pod("a", "main", "aside"), pod("b")]
PEOPLE = [
    process_of(PODS[0], 1),
    process_of(PODS[0], 2, "aside"),
    process_of(PODS[1], 3),
    process_of(PODS[0], 1, command=MPS_SERVER),
    process_of(PODS[1], 1, started=-1.0),
    process_of(PODS[1], 2, started=5.0),
    occupant(4, None, None, command=MPS_SERVER),
]
Look: TypeAlias = tuple[dict[int, int | None] | None, list[int], bool, frozenset[int]]

lists = st.dictionaries(st.integers(1, 4), st.sampled_from([None, 1, GIB]), max_size=4)
looks = st.lists(
    st.tuples(
        st.none() | lists,
        st.lists(st.integers(0, len(PEOPLE) - 1), max_size=3),
        st.booleans(),
        st.just(frozenset[int]()) | st.frozensets(st.integers(1, 4)),
    ),
    max_size=12,
)


@given(looks)
def test_what_is_handed_on_is_what_would_be_found_anew(history: list[Look]) -> None:
    """
    While the index of pods stays, attribution hands on what has not changed: the outcome is that of
    an index that is made anew for every look.
    """
    kept = pods_on_node(PODS)
    quick = slow = None
    sample = card_sample(0, {})
    for at, (held, people, renewed, mps) in enumerate(history):
        if renewed:
            sample = card_sample(0, held, at=at, mps=mps)
        living = {PEOPLE[number].pid: PEOPLE[number] for number in people}
        seen = Sample(at, (sample,))
        quick = attribute(seen, living, kept, quick)
        slow = attribute(seen, living, pods_on_node(PODS), slow)

        assert slow.cards == quick.cards


uids = st.uuids().map(str) | st.text("0123456789abcdef", min_size=32, max_size=32)
ids = st.text("0123456789abcdef", min_size=64, max_size=64)
shapes = st.sampled_from(
    [
        "/kubepods/burstable/pod{uid}/{id}",
        "/kubepods.slice/kubepods-pod{under}.slice/cri-containerd-{id}.scope",
        "/kubelet.slice/kubelet-kubepods-pod{under}.slice/crio-{id}.scope/container",
        "/system.slice/containerd.service/kubepods-pod{under}.slice:cri-containerd:{id}",
        "/../../kubepods-besteffort-pod{under}.slice/docker-{id}.scope",
    ]
)
pieces = st.sampled_from(
    ["/", ":", "0::", "\n", "pod", "..", ".slice", ".scope", "kubepods", "-", "_", " (deleted)"]
)
noise = st.lists(pieces | uids | ids | st.text(max_size=9), max_size=24).map("".join)


@given(noise)
def test_any_text_is_survived(text: str) -> None:
    """
    Whatever stands in the file, the answer is nobody, or exactly what a kubelet could have written.
    """
    found = parse_cgroup(text)
    if found is not None:
        uid, container = found

        assert uid is None or re.fullmatch(r"[0-9a-f]{32}|[0-9a-f-]{36}", uid)
        assert container is None or re.fullmatch(r"[0-9a-f]{64}", container)
        assert (uid, container) != (None, None)


@given(shapes, uids, ids, noise.map(lambda text: text.replace("\n", "")))
def test_nothing_below_a_container_changes_whose_it_is(
    shape: str, uid: str, container: str, below: str
) -> None:
    """
    Whatever folders a container makes below its own, the outer pod and container are the answer.
    """
    path = shape.format(uid=uid, under=uid.replace("-", "_"), id=container)

    assert Owner(uid, container) == parse_cgroup(f"0::{path}\n")
    assert Owner(uid, container) == parse_cgroup(f"0::{path}/{below}\n")


@given(st.text())
def test_any_line_of_stat_is_survived(text: str) -> None:
    """Whatever stands in /proc/PID/stat, reading it raises nothing."""
    found = parse_stat(text)

    assert found is None or found.started_ticks >= 0
