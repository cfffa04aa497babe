"""What the driver answers about a container's cgroup, and what follows for pod and node."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.concerns.driver.model import (
    KEPT_READS,
    UNCOUNTED_READS,
    DriverPolicy,
)
from agent.model.pod import Cap, DriverLimit, PodLimit
from agent.model.sample import Trouble
from agent.nvml.faults import Code
from agent.nvml.protocol import Answer, NvmlFailure
from gpufence import names
from gpufence.cards import Instance
from gpufence.errors import Level
from gpufence.fences import Fence
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, occupant, pod
from tests.support.agent.driven import NOT_SET, DrivenNode, held, refused

HANGS = Trouble("the driver gave no answer for 2.5 s")
LOST = NvmlFailure(Code.GPU_IS_LOST, "nvmlDeviceGetMemoryLimits_v1")
UUID = CARDS[0].uuid
NO_LIMIT = 2**64 - 1
WORDS = 'exit status 1: failed to set memory limits for gpu "GPU-0": Not Supported'


@pytest.fixture
def node(tmp_path: Path) -> DrivenNode:
    return DrivenNode(tmp_path)


def messages(node: DrivenNode, reason: str) -> list[str]:
    return [item.notice.message for item in node.api.written if item.notice.reason == reason]


def test_what_its_own_cgroup_is_held_to_is_its_fence(node: DrivenNode) -> None:
    """A container whose cgroup has the limit that it asked for is fenced by the driver."""
    node.start(node.driven(), held())

    assert [Fence.DRIVER] == node.fences()
    assert {("held",): 1.0, ("absent",): 0.0, ("unknown",): 0.0} == node.page(
        "gpufence_driver_limits"
    )
    assert {("team-a", "a", UUID, "driver"): 1.0} == node.page("gpufence_pod_fence")
    assert [] == node.api.reasons


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (NvmlFailure(Code.FUNCTION_NOT_FOUND, "f"), "they begin with r615"),
        (NvmlFailure(Code.NOT_SUPPORTED, "f"), "RmMemacctMode=0"),
        (NOT_SET, "NVIDIA's hook did not run"),
        (NvmlFailure(Code.INVALID_ARGUMENT, "f"), "does not know its cgroup"),
        (NvmlFailure(Code.NO_PERMISSION, "f"), "refuses to tell"),
        (held(NO_LIMIT), "NVIDIA's hook did not run"),
        (held(LIMIT + MIB), "a larger one, 3073 MiB"),
        (held(LIMIT - MIB), "a smaller one, 3071 MiB"),
    ],
)
def test_the_pod_says_why_it_is_not_held(node: DrivenNode, answer: Answer, words: str) -> None:
    """After two reads the pod has one Event with the reason found, and the agent's fence."""
    node.start(node.driven(), answer)
    before = messages(node, names.LIMIT_ABSENT)
    node.turn()
    node.turn(3)

    (message,) = messages(node, names.LIMIT_ABSENT)
    assert [] == before
    assert "does not hold container main to its limit of 3072 MiB on card 0" in message
    assert words in message
    assert [Fence.AGENT] == node.fences()


def test_a_cgroup_that_is_not_there_is_a_reason(node: DrivenNode) -> None:
    """Without the node's own cgroups nothing is asked, and the Event says what to mount."""
    node.add(node.driven(), GIB, 1)
    node.turn(2)

    (message,) = messages(node, names.LIMIT_ABSENT)
    assert "mount the node's /sys/fs/cgroup" in message
    assert [] == node.nvml.asked


@pytest.mark.parametrize("parent", [held(), HANGS])
def test_a_limit_of_the_cgroup_above_is_not_its_own(
    node: DrivenNode, parent: Answer | Trouble
) -> None:
    """Where the parent gives the same answer, or none, the driver holds nothing for certain."""
    item = node.driven()
    node.nvml.answers[node.folder(item).rpartition("/")[0]] = parent
    node.start(item, held())

    assert [Fence.AGENT] == node.fences()


def test_the_parent_is_asked_once(node: DrivenNode) -> None:
    """A container costs one question each ten seconds, and one more when it is first seen."""
    folder = node.start(node.driven(), held())
    node.turn(3)
    node.turn(5, seconds=1.0)

    assert [folder, folder.rpartition("/")[0], folder, folder, folder] == [
        question.path for question in node.nvml.asked
    ]


@pytest.mark.parametrize("silence", [HANGS, LOST])
def test_without_an_answer_the_last_one_holds_for_a_while(
    node: DrivenNode, silence: Answer | Trouble
) -> None:
    """A driver that hangs takes the fence away after a minute, and gives no cause for an Event."""
    folder = node.start(node.driven(), held())
    node.nvml.answers[folder] = silence
    node.turn(KEPT_READS)
    lasting = node.fences()
    node.turn(2)

    assert ([Fence.DRIVER], [Fence.AGENT]) == (lasting, node.fences())
    assert 1.0 == node.page("gpufence_driver_limits")["unknown",]
    assert [] == node.api.reasons


def test_memory_that_is_not_counted_is_not_held(node: DrivenNode) -> None:
    """A stale limit that the container's memory does not count against ends as absent."""
    node.start(node.driven(), held(used=0), used=2 * GIB)
    fences = [node.fences()]
    for _ in range(UNCOUNTED_READS):
        node.turn()
        fences.append(node.fences())
    node.turn()

    assert [[Fence.DRIVER], [Fence.DRIVER], [Fence.AGENT], [Fence.AGENT]] == fences
    assert "the driver counts 0 MiB of the 2048 MiB" in messages(node, names.LIMIT_ABSENT)[0]


def test_a_container_that_starts_again_is_asked_for_anew(node: DrivenNode) -> None:
    """A new container has a cgroup of its own, and what was known of the old one is forgotten."""
    item = node.driven()
    folder = node.start(item, held())
    Path(folder).rmdir()
    again = replace(item, containers={"f" * 64: "main"})
    new = Path(folder).with_name(f"cri-containerd-{'f' * 64}.scope")
    new.mkdir()
    del node.cards.held[0][1]
    node.add(again, GIB, 2)
    node.processes.living[2] = occupant(2, item.uid, "f" * 64)
    node.turn()

    assert [Fence.AGENT] == node.fences()
    assert str(new) == node.nvml.asked[-1].path


def test_processes_in_a_group_below_the_containers_are_found(node: DrivenNode) -> None:
    """Where the runtime puts them one folder deeper, the driver is asked for that."""
    item = node.driven()
    inner = Path(node.folder(item), "container")
    inner.mkdir()
    node.start(item, NOT_SET)

    assert str(inner) == node.nvml.asked[0].path


def test_a_deleted_cgroup_is_looked_for_again(node: DrivenNode) -> None:
    """What was found once is not asked for when it is gone."""
    folder = node.start(node.driven(), held())
    Path(folder).rmdir()
    node.turn()

    assert [Fence.AGENT] == node.fences()


@pytest.mark.parametrize(("second", "expected"), [(GIB, Fence.DRIVER), (2 * GIB, Fence.AGENT)])
def test_limits_of_several_containers_are_added_up(
    node: DrivenNode, second: int, expected: Fence
) -> None:
    """A pod is the driver's if it holds all its containers, together within the pod's limit."""
    parts = {"main": 2 * GIB, "other": 2 * GIB}
    asks = {"main": DriverLimit(2 * GIB, ours=True), "other": DriverLimit(second, ours=True)}
    item = node.driven("a", "main", "other", driver=asks, limits={UUID: PodLimit(LIMIT, parts)})
    node.nvml.answers[node.folder(item, "other")] = held(second, 0)
    node.start(item, held(2 * GIB))
    node.processes.living[2] = node.processes.living[1]._replace(
        pid=2,
        owner=node.processes.living[1].owner._replace(container_id=[*item.containers][1]),  # type: ignore[union-attr]  # it has one
    )
    node.cards.held[0][2] = 64 * MIB
    node.turn(2)

    assert [expected] == node.fences()


KAI = {"driver": {}, "limits": {UUID: PodLimit(LIMIT, {"main": LIMIT}, fence=Fence.LIBRARY)}}


@pytest.mark.parametrize(
    ("more", "hard", "expected"),
    [
        ({"driver": {}}, 4 * GIB, Fence.AGENT),
        ({"driver": {"main": DriverLimit(4 * GIB)}}, 4 * GIB, Fence.AGENT),
        (KAI, LIMIT, Fence.DRIVER),
        (KAI, 5 * GIB, Fence.LIBRARY),
    ],
    ids=["no variable", "a tenant's own larger one", "KAI's, within the part", "KAI's, larger"],
)
def test_limits_that_others_have_set_count_within_the_part(
    node: DrivenNode, more: dict[str, Any], hard: int, expected: Fence
) -> None:
    """They are read back as well; one larger than the part is no fence, and no Event."""
    node.start(node.driven(**more), held(hard))
    node.turn(3)

    assert [expected] == node.fences()
    assert [] == node.api.reasons


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, Fence.AGENT),
        ({"caps": {"main": Cap(2 * GIB, 0)}}, Fence.FRAMEWORK),
        ({"caps": {"main": Cap(2 * GIB, 0, kept=False)}}, Fence.AGENT),
        ({"limits": {UUID: PodLimit(LIMIT, fence=Fence.MPS)}}, Fence.MPS),
        ({"limits": {}}, ""),
        ({"mode": None}, ""),
    ],
)
def test_pods_without_the_variable_have_the_fence_that_follows(
    node: DrivenNode, more: dict[str, Any], expected: str
) -> None:
    """Card, limits and plan tell what holds a pod; nobody is asked."""
    node.add(pod("a", **more), GIB, 1)
    node.turn()

    assert [expected] == node.fences()
    assert [] == node.nvml.asked


def test_a_mig_instance_is_the_strongest_fence(node: DrivenNode) -> None:
    """On an instance the hardware holds the pod, and there is no limit to ask for."""
    node.add(node.driven(), GIB, 1)
    node.tick()
    last = node.loop.state.last
    assert last is not None
    seen = last.observation
    card = CARDS[0]._replace(mig=Instance("GPU-parent", "1g.5gb"))
    cut = replace(seen, cards={UUID: replace(seen.cards[UUID], card=card)})
    node.driver.look(replace(last, observation=cut))
    node.driver.read()

    assert [Fence.MIG] == node.fences()
    assert [] == node.nvml.asked


def test_nothing_is_known_before_the_first_look(node: DrivenNode) -> None:
    """Without a look nothing is read, shown or said."""
    node.driver.read()

    assert [] == node.fences()
    assert {} == node.page("gpufence_pod_fence")
    assert {"limits_trouble": ""} == node.driver.node_row()


def test_a_node_without_limits_has_no_child_to_ask(node: DrivenNode) -> None:
    """A minute after the last limit was read the child that was asked ends."""
    item = node.driven()
    node.start(item, held())
    del node.cards.held[0][1]
    node.turn(5)
    before = node.nvml.rests
    node.turn(3)

    assert (0, True) == (before, node.nvml.rests > 0)


@pytest.mark.parametrize(
    ("words", "taken"),
    [(WORDS, True), (WORDS.replace("Not Supported", "Invalid Argument"), False)],
)
def test_a_container_that_cannot_start_with_its_limit_is_the_nodes_trouble(
    node: DrivenNode,
    words: str,
    taken: bool,  # noqa: FBT001 - a row of the table
) -> None:
    """The Node says so at once; a number that is wrong for one pod leaves the label alone."""
    node.claim(refused(node.driven(), words))
    node.turn(2)

    (message,) = messages(node, names.LIMIT_UNSUPPORTED)
    assert f"container main of pod team-a/a cannot start: {words}" in message
    assert words in str(node.driver.node_row()["limits_trouble"])
    assert {(): 1.0} == node.page("gpufence_driver_limits_unsupported")
    assert taken == bool(node.label.taken)


def test_of_several_that_cannot_start_the_certain_one_counts(node: DrivenNode) -> None:
    """A number that is wrong for one pod does not hide that no pod can start."""
    wrong = 'failed to set memory limits for gpu "GPU-0": Invalid Argument'
    for name, words in (("a", wrong), ("b", WORDS), ("c", wrong)):
        node.start(refused(node.driven(name), words), held())

    assert "Not Supported" in node.driver.trouble.why
    assert node.driver.trouble.certain


def test_what_tenants_write_themselves_is_no_trouble_of_the_node(node: DrivenNode) -> None:
    """A container that fails with variables that are not ours takes no label away."""
    own = {"main": DriverLimit(LIMIT, ours=False, refused=WORDS)}
    node.claim(node.driven(driver=own))
    node.turn(2)

    assert ([], []) == (node.api.reasons, node.label.taken)


def test_an_older_driver_under_a_label_is_found_before_a_pod_fails(node: DrivenNode) -> None:
    """A Node that has the label and an older driver loses it, not asked for more than once."""
    node.older("580.95.05")
    node.turn(2, seconds=1.0)

    assert ["GPUMemoryLimitUnsupported"] == node.api.reasons
    assert 1 == len(node.label.taken)
    assert "driver 580.95.05: the driver has no such limits" in node.label.taken[0]


def test_a_missing_function_is_certain(node: DrivenNode) -> None:
    """Where the driver lacks the function, pods with limits cannot start."""
    node.start(node.driven(), NvmlFailure(Code.FUNCTION_NOT_FOUND, "f"))
    node.turn()

    assert {node.driver.trouble.why} == set(node.label.taken)


@pytest.mark.parametrize(
    ("other", "expected"), [(NOT_SET, True), (held(), False), (held(LIMIT + MIB), False)]
)
def test_limits_that_are_gone_from_all_containers_are_the_nodes_trouble(
    node: DrivenNode,
    other: Answer,
    expected: bool,  # noqa: FBT001 - a row of the table
) -> None:
    """Where no container has the limit it asked for, the Node says so and keeps its label."""
    item = node.driven("b")
    node.nvml.answers[node.folder(item)] = other
    node.add(item, GIB, 2)
    node.start(node.driven(), NOT_SET)
    node.turn(2)

    assert expected == bool(messages(node, names.LIMIT_UNSUPPORTED))
    assert [] == node.label.taken


@pytest.mark.parametrize(
    ("driver", "answer", "level", "text"),
    [
        ("615.71.09", held(), Level.OK, "driver 615.71.09 holds containers to them: 1"),
        ("615.71.09", held(NO_LIMIT), Level.LOOK, "no container has one"),
        ("615.71.09", NOT_SET, Level.LOOK, "no container has one"),
        ("615.71.09", HANGS, Level.LOOK, "does not say: the driver gave no answer"),
        ("580.1", NvmlFailure(Code.FUNCTION_NOT_FOUND, "f"), Level.LOOK, "begin with r615"),
    ],
)
def test_only_what_was_read_back_is_called_good(
    node: DrivenNode, driver: str, answer: Answer | Trouble, level: Level, text: str
) -> None:
    """The check asks for every container there is, and believes neither version nor function."""
    node.nvml.answers[node.folder(node.driven())] = answer
    node.cards.driver = driver
    (found,) = node.driver.findings(
        DriverPolicy(cgroup_root=str(node.root)), node.cards.sample(frozenset()), node.nvml
    )

    assert (level, "driver limits") == (found.level, found.subject)
    assert text in found.text


def test_a_node_whose_cgroups_cannot_be_seen_is_not_called_good(node: DrivenNode) -> None:
    """Without containers below the root, or a root of version 2, or a card, there is no answer."""
    sample, policy = node.cards.sample(frozenset()), DriverPolicy(cgroup_root=str(node.root))
    empty = node.driver.findings(policy, sample, node.nvml)
    (node.root / "cgroup.subtree_control").unlink()
    older = node.driver.findings(policy, sample, node.nvml)
    none = node.driver.findings(policy, replace(sample, cards=()), node.nvml)

    assert [Level.LOOK] * 3 == [each.level for each in (*empty, *older, *none)]
    assert [
        f"{node.root} shows no container of a pod",
        f"{node.root} shows no cgroups of version 2",
        "no card here can have them: MIG instances cannot",
    ] == [each.text for each in (*empty, *older, *none)]
    assert [] == node.nvml.asked
