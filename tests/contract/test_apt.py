"""The real apt, asked for packages of a repository that is a folder, and without any right."""

import subprocess
from pathlib import Path

import pytest

from simulator import debian
from simulator.controlplane import BuildError
from simulator.debian import Packaged, Program
from simulator.progress import Progress

pytestmark = pytest.mark.needs("apt-get")

GREETER = Packaged("greeter", (Program("usr/lib/greeter/greet", ("greet",)),))
GREET = '#!/bin/sh\necho "$1 $LD_LIBRARY_PATH"\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two packages, of which the greeter needs the other, and their list."""
    folder = tmp_path / "repository"
    folder.mkdir()
    files = {
        "greeter": ("Depends: libgreeting1", "usr/lib/greeter/greet", GREET),
        "libgreeting1": ("", "usr/lib/somewhere/libgreeting.so.1", ""),
    }
    (folder / "Packages").write_text(
        "\n".join(packed(folder, name, *content) for name, content in files.items())
    )
    return folder


@pytest.fixture
def surroundings(repository: Path, tmp_path: Path) -> dict[str, str]:
    """What a person's shell would say, with this repository for apt's only one."""
    sources = tmp_path / "sources.list"
    sources.write_text(f"deb [trusted=yes] copy:{repository} ./\n")
    told = tmp_path / "apt.conf"
    told.write_text(f'Dir::Etc::SourceList "{sources}";\nDir::Etc::SourceParts "-";\n')
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "APT_CONFIG": str(told)}


def packed(folder: Path, name: str, needs: str, path: str, content: str) -> str:
    """Make a package of one file, and return its paragraph of the list."""
    tree = folder / name
    (tree / path).parent.mkdir(parents=True)
    (tree / path).write_text(content)
    (tree / path).chmod(0o755)
    (tree / "DEBIAN").mkdir()
    about = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example>\n"
    about += f"{needs}\n" if needs else ""
    (tree / "DEBIAN" / "control").write_text(f"{about}Description: {name}\n")
    archive = folder / f"{name}_1_all.deb"
    subprocess.run(["dpkg-deb", "--build", str(tree), str(archive)], check=True, stdout=-3)
    checked = subprocess.run(["sha256sum", archive], check=True, capture_output=True, text=True)
    size, digest = archive.stat().st_size, checked.stdout.split()[0]
    return f"{about}Filename: ./{archive.name}\nSize: {size}\nSHA256: {digest}\n"


def test_a_package_starts_with_what_it_needs(surroundings: dict[str, str]) -> None:
    """The program runs from the cache folder, with the libraries of the package that it needs."""
    program = debian.ensure(GREETER, surroundings, Progress())["greet"]
    said = subprocess.run([program, "hello"], capture_output=True, text=True, check=True).stdout

    assert program.is_relative_to(Path(surroundings["HOME"]) / ".cache" / "gpufence")
    assert said.startswith("hello ")
    assert "/root/usr/lib/somewhere" in said


def test_it_is_fetched_once(surroundings: dict[str, str], repository: Path) -> None:
    """What is in the cache is taken as it is, and nothing but the result stays there."""
    program = debian.ensure(GREETER, surroundings, Progress())["greet"]
    repository.rename(repository.with_name("gone"))

    assert program == debian.ensure(GREETER, surroundings, Progress())["greet"]
    assert {".lock", program.parents[1].name} == {
        path.name for path in program.parents[2].iterdir()
    }


def test_a_package_without_the_program_is_no_help(surroundings: dict[str, str]) -> None:
    """A system whose package of that name is another one says so, and nothing is kept."""
    other = Packaged("libgreeting1", GREETER.programs)

    with pytest.raises(BuildError, match="package libgreeting1 has no usr/lib/greeter/greet"):
        debian.ensure(other, surroundings, Progress())

    assert {} == debian.find(other, surroundings)


def test_apts_own_words_are_passed_on(surroundings: dict[str, str]) -> None:
    """What cannot be fetched says why."""
    with pytest.raises(BuildError, match="Unable to locate package stranger"):
        debian.ensure(Packaged("stranger", GREETER.programs), surroundings, Progress())


def test_a_changed_archive_is_refused(surroundings: dict[str, str], repository: Path) -> None:
    """Apt compares what it fetched with the list."""
    archive = repository / "greeter_1_all.deb"
    archive.write_bytes(archive.read_bytes()[:-1] + b"?")

    with pytest.raises(BuildError, match="apt-get ended with 100"):
        debian.ensure(GREETER, surroundings, Progress())


def test_without_apt_it_says_where_it_works(tmp_path: Path) -> None:
    """On another system nothing is tried."""
    told = {"PATH": str(tmp_path), "HOME": str(tmp_path)}

    with pytest.raises(BuildError, match="on Debian alone: there is no apt-get here"):
        debian.ensure(GREETER, told, Progress())
