"""The command lines of a control plane, of today's Kubernetes and of older ones."""

import json
import stat
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.controlplane import Assets, BuildError, identities, programs
from simulator.controlplane import recipe as recipes
from simulator.controlplane.errors import StartError
from simulator.controlplane.folders import PREFIX, given_folder, sweep
from simulator.controlplane.identities import (
    write_secret,
)
from simulator.controlplane.modules import ModulePin
from simulator.controlplane.older import Release, ensure, read_releases
from simulator.progress import Progress
from tests.unit.simulator.test_commands import go_that_fetches


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose name leaves room for sockets below it, which pytest's own may not."""
    with tempfile.TemporaryDirectory(prefix="gf-", dir="/tmp") as name:
        yield Path(name)


def test_sweep_removes_the_abandoned(tmp_path: Path) -> None:
    """A folder that nobody holds any more is removed."""
    abandoned = tmp_path / f"{PREFIX}abandoned"
    abandoned.mkdir()
    (abandoned / "file").touch()

    assert [abandoned] == sweep(tmp_path)
    assert not abandoned.exists()


def test_named_folder_must_be_empty(short_path: Path) -> None:
    """Somebody else's files are not mixed with ours."""
    (short_path / "file").touch()

    with pytest.raises(StartError, match="is not empty; name a new one or empty it"):
        given_folder(short_path)


def test_named_folder_serves_one(short_path: Path) -> None:
    """Two control planes cannot share a folder."""
    folder = given_folder(short_path)
    try:
        with pytest.raises(StartError, match="is used by another control plane"):
            given_folder(short_path)
    finally:
        folder.leave()


SERVER = identities.ServerIdentity("https://127.0.0.1:6443", b"authority")


FOLDER = Path("/folder")


def site(options: programs.PlaneOptions | None = None) -> programs.PlaneLayout:
    """Lay out a control plane that is never started."""
    names = (
        programs.ETCD,
        programs.API_SERVER,
        programs.CONTROLLER_MANAGER,
        programs.SCHEDULER,
    )
    return programs.PlaneLayout(
        binaries=defaultdict(lambda: Path("/bin/program")),
        folder=FOLDER,
        ports={name: 20000 + number for number, name in enumerate(names)},
        options=options or programs.PlaneOptions(),
    )


COMMANDS = {
    programs.API_SERVER: programs.api_server(site()),
    programs.CONTROLLER_MANAGER: programs.controller_manager(site(), FOLDER / "config"),
    programs.SCHEDULER: programs.scheduler(site(), FOLDER / "config"),
}


def test_etcd_opens_no_port() -> None:
    """All addresses of etcd are sockets in the folder."""
    addresses = [
        word.partition("=")[2].removeprefix("default=")
        for word in programs.etcd(site())
        if "-urls=" in word or "-cluster=" in word
    ]

    assert 5 == len(addresses)
    assert all(address.startswith("unix:///folder/") for address in addresses)


OWN = """module k8s.io/kubernetes

require (
\tk8s.io/api v0.0.0
\tk8s.io/klog/v2 v2.120.1
\tk8s.io/sample-apiserver v0.0.0
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/sample-apiserver => ./staging/src/k8s.io/sample-apiserver
)
"""
BUILT = """module k8s.io/kubernetes

require (
\tk8s.io/api v0.30.14
\tk8s.io/klog/v2 v2.120.1
)

replace (
\tk8s.io/api => k8s.io/api v0.30.14
)
"""
PROGRAMS = ("kube-apiserver", "kube-scheduler")


def release(checksum: str = "h1:a=") -> Release:
    return Release(
        ModulePin("k8s.io/kubernetes", "v1.30.14", checksum),
        ("k8s.io/api v0.30.14 h1:b=", "k8s.io/api v0.30.14/go.mod h1:c="),
    )


def test_every_minor_is_pinned() -> None:
    """From the oldest that manifests are for to the one before the newest there is one of each."""
    assert [f"1.{minor}" for minor in range(30, 37)] == list(read_releases())


def test_staging_modules_are_of_the_same_release() -> None:
    """Whatever is pinned below a Kubernetes carries its minor and patch."""
    for one in read_releases().values():
        released = one.pin.version.replace("v1.", "v0.")

        assert {released} == {line.split()[1].removesuffix("/go.mod") for line in one.staging}


def test_releases_take_the_place_of_the_staging_folder() -> None:
    """What is pinned is required and replaced by its release, what is not is left out."""
    assert BUILT == release().go_mod(OWN)


def assets_with(tmp_path: Path, path: str = "") -> Assets:
    environment = {"PATH": path, "HOME": str(tmp_path)}
    return Assets(recipes.read_recipe(), tmp_path / "cache", None, environment, ())


def test_unknown_minor_is_told(tmp_path: Path) -> None:
    """The error says which ones there are."""
    with pytest.raises(BuildError, match=r"no Kubernetes 1\.29; there are 1\.30, 1\.31, "):
        ensure(assets_with(tmp_path), "1.29", Progress())


def test_forged_sources_are_not_built(tmp_path: Path) -> None:
    """Sources with another checksum than the pinned one end the build before it begins."""
    fetched = {"Dir": "/somewhere", "Sum": "h1:forged="}
    path = f"{go_that_fetches(tmp_path, fetched)}:/usr/bin:/bin"

    with pytest.raises(BuildError, match=r"has the checksum h1:forged=, not h1:.* versions\.sum"):
        ensure(assets_with(tmp_path, path), "1.31", Progress())


FAKE_GO = """#!/bin/sh
[ "$1" = version ] && echo go version go1.99.0 linux/amd64 && exit
[ "$1" = mod ] && cat {answer} && exit
for word in "$@"; do case $word in -modfile=*) file=${{word#-modfile=}};; esac; done
while [ "$1" != -o ]; do shift; done
cat "$file" "$(dirname "$file")/go.sum" > "$2"
echo "cache of its own: $(basename "$(dirname "$GOCACHE")")" | cut -c1-25 >> "$2"
"""


def test_the_modules_own_sums_and_ours_are_what_is_built_from(tmp_path: Path) -> None:
    """Go gets both files beside each other, and nothing but the program stays."""
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "go.mod").write_text(OWN)
    (sources / "go.sum").write_text("theirs\n")
    pinned = read_releases()["1.30"]
    (tmp_path / "answer").write_text(json.dumps({"Dir": str(sources), "Sum": pinned.pin.sum}))
    (tmp_path / "go").write_text(FAKE_GO.format(answer=tmp_path / "answer"))
    (tmp_path / "go").chmod(0o755)
    folder = ensure(assets_with(tmp_path, f"{tmp_path}:/usr/bin:/bin"), "1.30", Progress())
    built = (folder / "kube-apiserver").read_text()

    assert {".lock", *PROGRAMS} == {path.name for path in folder.iterdir()}
    assert built.startswith("module k8s.io/kubernetes\n")
    assert "theirs\nk8s.io/api v0.30.14 h1:" in built
    assert built.endswith("cache of its own: .build-\n")


def test_sweep_spares_what_is_not_ours(tmp_path: Path) -> None:
    """Other names, and links that carry our name to elsewhere, are left alone."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)

    assert [] == sweep(tmp_path)
    assert elsewhere.exists()


def test_secret_is_for_its_owner_only(tmp_path: Path) -> None:
    """A file with a key can be read by nobody else."""
    path = write_secret(tmp_path / "key", b"secret")

    assert (0o600, b"secret") == (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
