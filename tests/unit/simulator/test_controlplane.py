"""The command lines of a control plane, of today's Kubernetes and of older ones."""

import base64
import json
import socket
import stat
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.controlplane import Assets, BuildError, PlaneOptions, identities, programs
from simulator.controlplane import recipe as recipes
from simulator.controlplane.build import main
from simulator.controlplane.errors import StartError
from simulator.controlplane.folders import PREFIX, given_folder, sweep, temporary_folder
from simulator.controlplane.identities import (
    PemPair,
    write_secret,
)
from simulator.controlplane.modules import ModulePin
from simulator.controlplane.older import Release, ensure, read_releases
from simulator.controlplane.processes import HeldPort
from simulator.controlplane.programs import LOOPBACK
from simulator.progress import Progress
from tests.unit.simulator.test_commands import go_that_fetches


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose name leaves room for sockets below it, which pytest's own may not."""
    with tempfile.TemporaryDirectory(prefix="gf-", dir="/tmp") as name:
        yield Path(name)


def test_temporary_folder_disappears(short_path: Path) -> None:
    """Leaving a temporary folder removes it with all that is in it."""
    folder = temporary_folder(short_path)
    (folder.path / "data").mkdir()
    (folder.path / "data" / "file").touch()
    folder.leave()

    assert [] == list(short_path.iterdir())


def test_sweep_removes_the_abandoned(tmp_path: Path) -> None:
    """A folder that nobody holds any more is removed."""
    abandoned = tmp_path / f"{PREFIX}abandoned"
    abandoned.mkdir()
    (abandoned / "file").touch()

    assert [abandoned] == sweep(tmp_path)
    assert not abandoned.exists()


def test_sweep_spares_what_is_not_ours(tmp_path: Path) -> None:
    """Other names, and links that carry our name to elsewhere, are left alone."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)

    assert [] == sweep(tmp_path)
    assert elsewhere.exists()


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


def test_long_name_leaves_no_room_for_sockets(tmp_path: Path) -> None:
    """A folder whose name is too long for sockets in it is refused."""
    with pytest.raises(StartError, match=r"longer than 92 bytes.*choose a shorter one"):
        given_folder(tmp_path / ("x" * 90))


SERVER = identities.ServerIdentity("https://127.0.0.1:6443", b"authority")


def test_secret_is_for_its_owner_only(tmp_path: Path) -> None:
    """A file with a key can be read by nobody else."""
    path = write_secret(tmp_path / "key", b"secret")

    assert (0o600, b"secret") == (stat.S_IMODE(path.stat().st_mode), path.read_bytes())


def test_certificate_file_is_complete() -> None:
    """A kubeconfig for a certificate holds server, authority, certificate and key."""
    document = json.loads(identities.with_certificate(SERVER, PemPair(b"certificate", b"key")))
    encoded = {
        name: base64.b64encode(name.encode()).decode()
        for name in ("authority", "certificate", "key")
    }

    assert {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "simulator",
                "cluster": {
                    "server": "https://127.0.0.1:6443",
                    "certificate-authority-data": encoded["authority"],
                },
            }
        ],
        "users": [
            {
                "name": "user",
                "user": {
                    "client-certificate-data": encoded["certificate"],
                    "client-key-data": encoded["key"],
                },
            }
        ],
        "contexts": [{"name": "simulator", "context": {"cluster": "simulator", "user": "user"}}],
        "current-context": "simulator",
    } == document


@pytest.fixture
def held() -> Iterator[HeldPort]:
    """A port that is ours."""
    port = HeldPort()
    yield port
    port.release()


def test_held_port_refuses_connections(held: HeldPort) -> None:
    """While nobody listens, clients are refused at once."""
    with socket.socket() as client, pytest.raises(ConnectionRefusedError):
        client.connect((LOOPBACK, held.number))


def test_held_port_is_kept_from_others(held: HeldPort) -> None:
    """A program that does not know about sharing cannot take the port."""
    with socket.socket() as thief, pytest.raises(OSError, match="in use"):
        thief.bind((LOOPBACK, held.number))


def test_sharing_program_gets_the_connections(held: HeldPort) -> None:
    """A program that shares the port and listens gets every connection."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind((LOOPBACK, held.number))
        server.listen()
        for _ in range(20):
            with socket.create_connection((LOOPBACK, held.number), timeout=5) as client:
                accepted, address = server.accept()
                accepted.close()

                assert client.getsockname() == address


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


@pytest.mark.parametrize("command", [*COMMANDS.values(), programs.etcd(site())])
def test_no_feature_gate_is_touched(command: list[str]) -> None:
    """Nothing alpha is switched on and no API is added."""
    assert [] == [word for word in command if "feature-gates" in word or "runtime-config" in word]


def test_etcd_opens_no_port() -> None:
    """All addresses of etcd are sockets in the folder."""
    addresses = [
        word.partition("=")[2].removeprefix("default=")
        for word in programs.etcd(site())
        if "-urls=" in word or "-cluster=" in word
    ]

    assert 5 == len(addresses)
    assert all(address.startswith("unix:///folder/") for address in addresses)


def test_servers_start_in_order() -> None:
    """What others depend on is started before them."""
    options = PlaneOptions(scheduler=True, controller_manager=True)

    assert [
        programs.ETCD,
        programs.API_SERVER,
        programs.CONTROLLER_MANAGER,
        programs.SCHEDULER,
    ] == options.servers


def test_groups_are_handed_on_only_where_that_is_asked_for() -> None:
    """The front proxy's certificate is used with aggregation, and not without."""
    options = PlaneOptions(aggregation=True)

    assert "--requestheader-allowed-names=front-proxy" in programs.api_server(site(options))
    assert not any("requestheader" in word for word in programs.api_server(site()))


def test_options_of_the_controller_manager_come_last() -> None:
    """What a caller wants of the controller manager overrides what it has anyway."""
    options = PlaneOptions(controller_options=("--leader-elect=true",))

    assert (
        "--leader-elect=true" == programs.controller_manager(site(options), FOLDER / "config")[-1]
    )


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


def test_another_checksum_has_another_folder(tmp_path: Path) -> None:
    """A program is never taken for one of other sources."""
    assert release().folder(tmp_path) != release("h1:other=").folder(tmp_path)


def assets_with(tmp_path: Path, path: str = "") -> Assets:
    environment = {"PATH": path, "HOME": str(tmp_path)}
    return Assets(recipes.read_recipe(), tmp_path / "cache", None, environment, ())


def test_what_is_there_is_not_built(tmp_path: Path) -> None:
    """An API server in the cache is found without Go."""
    assets = assets_with(tmp_path)
    folder = read_releases()["1.30"].folder(assets.cache)
    folder.mkdir(parents=True)
    for name in PROGRAMS:
        (folder / name).touch()

    assert folder == ensure(assets, "1.30", Progress())


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
    """
    Go gets both files beside each other, keeps its products there, and nothing but the program
    stays.
    """
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


def test_command_prints_the_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`build --kubernetes all` prints a folder for each minor and builds nothing else."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folders = [one.folder(tmp_path / "gpufence") for one in read_releases().values()]
    for folder in folders:
        folder.mkdir(parents=True)
        for name in PROGRAMS:
            (folder / name).touch()
    status = main(["--kubernetes", "all"])

    assert (0, [str(folder) for folder in folders]) == (status, capsys.readouterr().out.split())
