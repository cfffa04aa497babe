"""What holds for a cgroup file whatever is in it."""

import re

from hypothesis import given
from hypothesis import strategies as st

from agent.model.use import Owner
from agent.procfs.parse import parse_cgroup, parse_stat

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
