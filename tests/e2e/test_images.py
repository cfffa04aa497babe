"""The images as they run: whose they are, what they hold, and what they cannot do."""

import pytest

from tests.e2e.site import SYSTEM, RealSite
from tests.support.site import AGENT, WEBHOOK

pytestmark = pytest.mark.e2e

PYTHON = "/opt/gpufence/bin/python"
FIND = "import importlib.util, sys; print(*filter(importlib.util.find_spec, sys.argv[1:]))"
FOREIGN = {
    WEBHOOK: ("pynvml", "agent", "certs", "simulator", "pip", "setuptools"),
    AGENT: ("fastapi", "uvicorn", "webhook", "certs", "simulator", "pip", "setuptools"),
}


@pytest.mark.parametrize("program", [WEBHOOK, AGENT])
def test_programs_run_as_nobody(site: RealSite, program: str) -> None:
    """The process has the user of the manifest and no capability."""
    pod = site.pods(SYSTEM[1], program)[0]
    status = site.execute(pod, PYTHON, "-c", "print(open('/proc/self/status').read())")
    said = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)

    assert ["65532"] * 4 == said["Uid"].split()
    assert 0 == int(said["CapEff"], 16)


@pytest.mark.parametrize("program", [WEBHOOK, AGENT])
def test_the_root_is_read_only(site: RealSite, program: str) -> None:
    """Not even a temporary file can be made."""
    pod = site.pods(SYSTEM[1], program)[0]
    attempt = "import os; print([path for path in ('/', '/tmp', '/opt') if os.access(path, 2)])"

    assert "[]" == site.execute(pod, PYTHON, "-c", attempt).strip()


@pytest.mark.parametrize("program", [WEBHOOK, AGENT])
def test_an_image_is_for_one_program(site: RealSite, program: str) -> None:
    """Neither other programs, nor their libraries, nor installers are in it."""
    pod = site.pods(SYSTEM[1], program)[0]

    assert "" == site.execute(pod, PYTHON, "-I", "-c", FIND, *FOREIGN[program]).strip()
