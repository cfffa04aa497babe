"""The images are what the manifests start: one program, for nobody, from locked packages."""

import ast
import importlib.util
import re
import tomllib
from collections.abc import Callable

import pytest

from tests.support.tree import PACKAGES, found, pod_spec, tree_of
from tools import ROOT
from tools.manifests import BASE, COMPONENTS, DEPLOY

IMAGES = DEPLOY / "images"
WORKLOADS = {
    "webhook": ("Deployment", "gpufence-webhook", BASE),
    "agent": ("DaemonSet", "gpufence-agent", BASE),
    "certs": ("CronJob", "gpufence-certs", BASE),
    "controller": ("Deployment", "gpufence-controller", COMPONENTS / "idle-release"),
}
DOCKERFILE = (IMAGES / "Dockerfile").read_text(encoding="utf-8")
INSTALL = (IMAGES / "install").read_text(encoding="utf-8")
OURS: dict[str, str] = dict(re.findall(r"^(\S+)\) ours=\"(.*)\" ;;$", INSTALL, re.MULTILINE))


def packages(program: str) -> set[str]:
    said = OURS[program if program in OURS else "*"]
    return set(said.replace("$program", program).split())


def imported(package: str) -> set[str]:
    """Return the packages of ours that a package imports."""
    names = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition(".")[0])
    return names & set(PACKAGES)


def superfluous() -> Callable[[str, dict[str, list[str]]], list[str]]:
    """Load the script's function; it runs inside images and belongs to no package."""
    spec = importlib.util.spec_from_file_location("slim", IMAGES / "slim.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    chosen: Callable[[str, dict[str, list[str]]], list[str]] = module.superfluous
    return chosen


def locked(program: str) -> set[str]:
    lines = (ROOT / "requirements" / f"{program}.txt").read_text(encoding="utf-8").splitlines()
    return {line.partition("==")[0] for line in lines if "==" in line and not line.startswith(" ")}


@pytest.mark.parametrize("program", WORKLOADS)
def test_an_image_starts_as_the_user_of_its_manifest(program: str) -> None:
    """USER is what the pod's security context says."""
    security = pod_spec(found(*WORKLOADS[program]))["securityContext"]

    assert f"USER {security['runAsUser']}:{security['runAsGroup']}\n" in DOCKERFILE


@pytest.mark.parametrize("program", WORKLOADS)
def test_an_image_is_a_target_that_starts_its_program(program: str) -> None:
    """Whoever runs it without a word gets the program, by the name that its manifest calls."""
    (container,) = pod_spec(found(*WORKLOADS[program]))["containers"]
    target = DOCKERFILE.partition(f"FROM program AS {program}\n")[2].partition("\nFROM ")[0]

    assert f'CMD ["{container["command"][0]}"' in target


@pytest.mark.parametrize("program", WORKLOADS)
def test_an_image_holds_the_packages_that_its_program_imports(program: str) -> None:
    """Of our packages those are kept that the program reaches, with the jobs also the plugin's."""
    reached = {program, "kubectl_gpufence"} if program == "certs" else {program}
    while (more := set().union(*(imported(package) for package in reached)) | reached) != reached:
        reached = more

    assert reached == packages(program)


def test_the_base_can_be_chosen_and_is_debians() -> None:
    """Both stages stand on the same base, by default one with glibc."""
    assert 2 == DOCKERFILE.count("FROM ${BASE}")
    assert "ARG BASE=docker.io/library/python:3.13-slim-bookworm\n" in DOCKERFILE


@pytest.mark.parametrize("program", WORKLOADS)
def test_every_package_is_locked_by_hash(program: str) -> None:
    """Nothing is installed that is not in the program's locked list, or the builder's."""
    installing = [
        line for line in INSTALL.splitlines() if " install " in line or line.startswith("$to")
    ]
    unlocked = [line for line in installing if "--require-hashes" not in line]

    assert locked(program)
    assert all("--no-index" in line or "to=" in line or line.startswith("#") for line in unlocked)


def test_the_wheels_builder_is_locked() -> None:
    """The build stage finds the one tool that makes our wheel in the locked list."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")

    assert "uv_build" == project["build-system"]["build-backend"]
    assert re.search(r"^uv-build==[\d.]+ \\\n(    --hash=.*\n)+    # via", listed, re.MULTILINE)


@pytest.mark.parametrize(
    ("program", "never"),
    [
        ("agent", {"fastapi", "starlette", "uvicorn", "cryptography"}),
        ("webhook", {"nvidia-ml-py"}),
        ("certs", {"fastapi", "starlette", "uvicorn", "nvidia-ml-py"}),
        ("controller", {"fastapi", "starlette", "uvicorn", "nvidia-ml-py", "cryptography"}),
    ],
)
def test_no_program_brings_anothers_trade(program: str, never: set[str]) -> None:
    """The agent has no web framework, the webhook no NVML."""
    assert set() == locked(program) & never


def test_what_only_kubeconfigs_need_is_left_out() -> None:
    """What only `kubernetes` requires goes with it; what others require stays."""
    requires = {
        "gpufence": [
            'kubernetes>=37; extra == "agent"',
            'nvidia-ml-py>=13; extra == "agent"',
            'urllib3>=2.3; extra == "agent"',
            'fastapi>=0.115; extra == "webhook"',
        ],
        "kubernetes": ["urllib3>=1.24", "pyyaml>=5", "requests"],
        "requests": ["urllib3", "PySocks!=1.5.7; extra == 'socks'"],
        "nvidia-ml-py": [],
        "pyyaml": [],
        "urllib3": [],
    }

    assert ["kubernetes", "pyyaml", "requests"] == superfluous()("agent", requires)


def test_names_are_compared_as_installers_do() -> None:
    """Spelling with dots, dashes and capitals makes no other package."""
    requires = {
        "gpufence": ["Jsonpatch>=1; extra == 'webhook'", "kubernetes; extra == 'webhook'"],
        "jsonpatch": ["json_pointer.x (>=1)"],
        "json-pointer-x": [],
        "kubernetes": [],
    }

    assert ["kubernetes"] == superfluous()("webhook", requires)
