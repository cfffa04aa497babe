"""
The start-up hook in containers of a real container runtime, in whose images it finds its own way.
"""

import pytest

from gpufence import names
from tests.e2e.site import Json, RealSite, pod

pytestmark = pytest.mark.e2e

# The workload's image runs `python3 -m simulator`, which its own PYTHONPATH alone can find.
ASK = (
    "import os, sys; "
    "print('hook' if any(type(each).__name__ == 'Finder' for each in sys.meta_path) else 'bare',"
    " os.environ.get('PYTHONPATH'), os.getuid())"
)
OWN_PATH = "/opt/simulator"


def hooked(namespace: str, name: str, **container: object) -> Json:
    """Describe a pod that asks for the hook, in a container whose root cannot be written to."""
    made = pod(namespace, name, "hold 1Gi")
    made["metadata"]["annotations"] = {names.PYTHON_HOOK: "enabled"}
    made["spec"]["containers"][0] |= {
        "securityContext": {"readOnlyRootFilesystem": True, "runAsNonRoot": True},
        **container,
    }
    return made


def running(site: RealSite, made: Json) -> Json:
    site.apply(made)
    return site.pod_of(made["metadata"]["namespace"], made["metadata"]["name"])


def test_the_hook_hides_no_path_of_the_images_own(site: RealSite, team: str) -> None:
    """An image that lives by a PYTHONPATH of its own starts with it, and has the hook as well."""
    found = running(site, hooked(team, "own-path"))

    assert f"hook {OWN_PATH} 65532" == site.execute(found, "python3", "-c", ASK).strip()


@pytest.mark.parametrize("flags", ["-I", "-E", "-P"])
def test_the_hook_reaches_interpreters_that_listen_to_no_variable(
    site: RealSite, team: str, flags: str
) -> None:
    """Python's switches against surroundings do not leave the hook out, but -S does."""
    found = running(site, hooked(team, "isolated"))

    assert site.execute(found, "python3", flags, "-c", ASK).startswith("hook ")
    assert site.execute(found, "python3", "-S", "-c", ASK).startswith("bare ")


def test_the_hook_finds_a_virtual_environment(site: RealSite, team: str) -> None:
    """A virtual environment at one of the usual places has the hook; one anywhere else does not."""
    made = hooked(
        team,
        "venv",
        command=["sh", "-c", "python3 -m venv --without-pip /opt/venv && exec sleep infinity"],
        securityContext={"runAsUser": 0, "runAsNonRoot": False},
        args=[],
    )
    found = running(site, made)
    site.until(
        lambda: site.execute(found, "ls", "/opt/venv").split() != ["lib"], "the venv was made"
    )

    assert site.execute(found, "/opt/venv/bin/python", "-I", "-c", ASK).startswith("hook ")


def test_an_image_that_is_not_asked_has_no_hook(site: RealSite, team: str) -> None:
    """Without the annotation nothing is mounted."""
    site.apply(pod(team, "unasked", "hold 1Gi"))
    found = site.pod_of(team, "unasked")

    assert f"bare {OWN_PATH} 65532" == site.execute(found, "python3", "-c", ASK).strip()
