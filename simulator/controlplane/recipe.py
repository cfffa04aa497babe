"""
What to build, from which sources.

The sources are pinned in `go/go.mod` and, by checksum, in `go/go.sum`; the versions named there are
read from there, so that raising one is a change in one place. The digest names everything that
decides the result, and thereby the cache folder: an outdated program is never taken for a new one.
"""

import hashlib
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from simulator.controlplane.errors import BuildError

SOURCES = Path(__file__).resolve().parent / "go"

Version = tuple[int, int, int]


@dataclass(frozen=True)
class Component:
    """One program and the Go package it is made of."""

    name: str
    package: str


# In the order of building: etcd takes seconds and shows early whether building works at all, and
# each of the others finds most of its packages already compiled by the API server.
COMPONENTS = (
    Component("etcd", "go.etcd.io/etcd/server/v3"),
    Component("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Component("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    Component("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Component("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Component("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
)

# CGO_ENABLED=0: no C compiler is needed, and the programs run in any image.
# GOTOOLCHAIN=local: the Go that was chosen is the Go that builds, it fetches no other.
# GOFLAGS must not be empty: an empty variable would let the person's `go env -w` file speak.
BUILD_ENVIRONMENT = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class GoModule:
    """The folder in which the compiler runs, and what the linker is to write into the programs."""

    folder: Path
    linker_flags: str
    module_file: Path | None = None  # where it is not the folder's own go.mod
    cgo: bool = False  # a program that calls C: then a C compiler is needed


@dataclass(frozen=True)
class Recipe:
    sources: Path
    kubernetes: str
    go: Version
    digest: str

    @property
    def module(self) -> GoModule:
        return GoModule(self.sources, linker_flags(self.kubernetes))

    def cache_folder(self, cache: Path) -> Path:
        return cache / f"kubernetes-{self.kubernetes}-{platform_name()}" / self.digest


def read_recipe(sources: Path = SOURCES) -> Recipe:
    module = (sources / "go.mod").read_bytes()
    content = hashlib.sha256()
    for part in (module, (sources / "go.sum").read_bytes(), repr(BUILD_ENVIRONMENT).encode()):
        content.update(len(part).to_bytes(8, "big") + part)
    text = module.decode()
    return Recipe(
        sources=sources,
        kubernetes=_found(r"^\s*k8s\.io/kubernetes (v\d+\.\d+\.\d+)\b", text, sources),
        go=parse_version(_found(r"^go (\d\S*)$", text, sources)),
        digest=content.hexdigest()[:12],
    )


def linker_flags(kubernetes: str) -> str:
    """Name the Kubernetes version in the programs; without these they call themselves v0.0.0."""
    major, minor, _ = kubernetes.removeprefix("v").split(".")
    version = "k8s.io/component-base/version"
    return (
        f"-s -w -X {version}.gitVersion={kubernetes}"
        f" -X {version}.gitMajor={major} -X {version}.gitMinor={minor}"
    )


def component(name: str) -> Component:
    for one in COMPONENTS:
        if one.name == name:
            return one
    names = ", ".join(one.name for one in COMPONENTS)
    raise BuildError(f"no component {name!r}; there are {names}")


def parse_version(text: str) -> Version:
    """
    Read `1.26`, `1.26.8` or `1.26rc1` as three numbers; what follows them is of no interest here.
    """
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    if match is None:
        raise BuildError(f"{text!r} is not a version; expected something like 1.26.8")
    major, minor, patch = match.groups(default="0")
    return int(major), int(minor), int(patch)


def platform_name() -> str:
    """Name this machine as Go does, `linux-amd64`."""
    system, machine = platform.system().lower(), platform.machine().lower()
    if system != "linux":
        raise BuildError(
            f"the control plane runs on Linux, this is {platform.system()}; use a Linux machine,"
            " virtual machine or container"
        )
    return f"{system}-{_MACHINES.get(machine, machine)}"


def _found(pattern: str, text: str, sources: Path) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise BuildError(f"{sources / 'go.mod'} has no line that matches {pattern}")
    return match.group(1)
