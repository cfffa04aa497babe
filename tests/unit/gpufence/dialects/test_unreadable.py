"""Declarations that nobody can act on: what is wrong, and whose fault it is."""

from typing import Any

import pytest

from gpufence.dialects import Undeclared, Units
from tests.support.builders import container, gpushare, pod
from tests.unit.gpufence.dialects.declared import said, unreadable

CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
DOUBTFUL = Units(gpushare_bytes=None)
KAI_MEMORY = (
    "is no usable number of bare MiB, and KAI ignores such without a word; "
    'write the MiB alone, such as "4096"'
)


def kai(**annotations: str) -> dict[str, Any]:
    return pod(annotations={key.replace("_", "-"): text for key, text in annotations.items()})


OTHER_UNIT = "write GiB, or where nodes count MiB set GPUFENCE_GPUSHARE_UNIT=MiB for the webhook"


@pytest.mark.parametrize(
    ("raw", "units", "sentence"),
    [
        (
            pod(gpushare()),
            DOUBTFUL,
            (
                'aliyun.com/gpu-mem: "3" has no certain unit: the node\'s figures fit neither GiB '
                "nor MiB; compare its allocatable aliyun.com/gpu-mem and aliyun.com/gpu-count with "
                "its cards"
            ),
        ),
        (
            kai(gpu_fraction="0.5", gpu_memory="4096"),
            Units(),
            (
                'metadata.annotations[gpu-memory]: "4096" stands beside gpu-fraction, and KAI '
                "takes only one of them; remove one of the two annotations"
            ),
        ),
        (
            kai(gpu_fraction="0.5", gpu_fraction_num_devices="0"),
            Units(),
            (
                'metadata.annotations[gpu-fraction-num-devices]: "0" is not a usable whole number; '
                "write a number from 1 to 1024"
            ),
        ),
        (
            kai(gpu_fraction="0.5", gpu_fraction_container_name="other"),
            Units(),
            (
                'metadata.annotations[gpu-fraction-container-name]: "other" names no container of '
                "the pod; write one of main"
            ),
        ),
        (
            pod(container(**{"nvidia.com/gpu": "1"}), nodeSelector={CLIENTS: "many"}),
            Units(),
            (
                f'nodeSelector[{CLIENTS}]: "many" is not a usable whole number; '
                "write a number from 1 to 2147483648"
            ),
        ),
        (
            pod(container(**{"nvidia.com/mig-1g.5gb": "1", "nvidia.com/mig-2g.10gb": "1"})),
            Units(),
            (
                'resources.limits: "nvidia.com/mig-1g.5gb, nvidia.com/mig-2g.10gb" are MIG slices '
                "of several sizes in one pod; ask for one profile in each pod"
            ),
        ),
        (
            pod(
                container("a", **{"nvidia.com/mig-1g.5gb": "1"}),
                container("b", **{"nvidia.com/gpu": "1"}),
            ),
            Units(),
            (
                'resources.limits: "nvidia (whole cards), mig (MIG instances of 1g.5gb)" are two '
                "ways to declare GPU memory in one pod; keep the one whose scheduler runs the pod"
            ),
        ),
    ],
)
def test_a_mistake_is_named(raw: dict[str, Any], units: Units, sentence: str) -> None:
    """A person who reads the sentence knows where the mistake is and what to write instead."""
    found = unreadable(raw, units)

    assert sentence == found.problem.sentence
    assert (units is not DOUBTFUL) == found.own_words


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        *(
            (kai(gpu_memory=text), f'metadata.annotations[gpu-memory]: "{text}" {KAI_MEMORY}')
            for text in ("2000mb", "8000Mi", "", "0", "-1", "1.5", "4194305")
        ),
        *(
            (
                kai(gpu_fraction=text),
                (
                    f'metadata.annotations[gpu-fraction]: "{text}" is not a share between 0 and 1; '
                    'write a decimal such as "0.25"'
                ),
            )
            for text in ("0", "0.0", "1", "1.0", "25%", "", "-0.5", "0.5 ")
        ),
        *(
            (
                pod(container(**{resource: "101"})),
                (
                    f'spec.containers[0].resources.limits[{resource}]: "101" is more than a whole '
                    "card; write a percentage from 1 to 100"
                ),
            )
            for resource in ("volcano.sh/vgpu-memory-percentage", "nvidia.com/gpumem-percentage")
        ),
        *(
            (
                pod(gpushare(units=text)),
                (
                    f'spec.containers[0].resources.limits[aliyun.com/gpu-mem]: "{text}" is {units} '
                    f"units of 1073741824 bytes, more than any card holds; {remedy}"
                ),
            )
            for text, units, remedy in (
                ("10G", 10**10, "write the plain number of units, without a suffix"),
                ("9e18", 9 * 10**18, "write the plain number of units, without a suffix"),
                ("4097", 4097, OTHER_UNIT),
            )
        ),
    ],
)
def test_what_no_node_can_serve_is_named(raw: dict[str, Any], sentence: str) -> None:
    """
    A pod that its own scheduler cannot place, or ignores, waits for ever unless somebody says so.
    """
    found = unreadable(raw)

    assert sentence == found.problem.sentence
    assert found.own_words


def test_a_number_of_devices_alone_declares_nothing() -> None:
    """Without memory or fraction KAI has no amount."""
    assert isinstance(said(kai(gpu_fraction_num_devices="2")), Undeclared)
