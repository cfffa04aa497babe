"""Which of Debian's packages are fetched, and how what was unpacked is started."""

from pathlib import Path

import pytest

from simulator import debian
from simulator.debian import CHROMIUM, PROMETHEUS, Archive

URIS = """\
'http://mirror.example/libc6_2.36-9%2bdeb12_amd64.deb' libc6_2.36-9+deb12_amd64.deb 2757 MD5Sum:a
'http://mirror.example/libopus0_1.3.1-3_amd64.deb' libopus0_1.3.1-3_amd64.deb 195192 MD5Sum:b2
'http://mirror.example/chromium_156.0_amd64.deb' chromium_156.0_amd64.deb 81157036\x20
"""
OPUS = Archive("libopus0_1.3.1-3_amd64.deb", 195192)
BROWSER = Archive("chromium_156.0_amd64.deb", 81157036)


def test_apts_plan_is_read() -> None:
    """Each line is a file and its size, with or without a checksum."""
    plan = debian.planned(f"Reading package lists...\n{URIS}")

    assert (OPUS, BROWSER) == plan[1:]
    assert "libc6" == plan[0].package


def test_the_c_library_stays_the_machines() -> None:
    """A newer C library is not started from the cache: the machine's loader would not take it."""
    assert (OPUS, BROWSER) == debian.unpacked(debian.planned(URIS))


def test_a_waiting_person_hears_how_much_it_is() -> None:
    """The step names the package, how many others come with it, and their size."""
    said = debian.described("chromium", (OPUS, BROWSER))

    assert "fetching Debian's chromium and 1 packages that it needs, 77 MiB" == said


def test_apt_writes_into_its_folder_alone() -> None:
    """Lists, archives and caches are below the folder; what is installed is the machine's."""
    lines = debian.settings(Path("/cache/one")).splitlines()
    folders = {line.split('"')[1] for line in lines if line.startswith("Dir::")}

    assert {
        "/var/lib/dpkg/status",
        *(f"/cache/one/{name}" for name in ("state", "cache", "cache/archives")),
    } == folders


def test_a_program_finds_its_own_libraries() -> None:
    """The launcher puts the unpacked folders first, and leaves its process to the program."""
    text = debian.launcher(CHROMIUM.programs[0], ["usr/lib/a", "usr/lib/b"])

    assert '"$here/root/usr/lib/a:$here/root/usr/lib/b${LD_LIBRARY_PATH' in text
    assert text.endswith('exec "$here/root/usr/lib/chromium/chromium" "$@"\n')


@pytest.mark.parametrize(
    ("released", "name"),
    [
        ({"ID": "debian", "VERSION_ID": "12"}, "debian-12-x86_64"),
        ({"ID": "debian"}, "debian-0-x86_64"),  # testing and sid have no number
        ({}, "linux-0-x86_64"),
    ],
)
def test_a_system_has_its_own_folder(released: dict[str, str], name: str) -> None:
    """What was unpacked for one release is not started on another."""
    assert name == debian.system_name(released, "x86_64")


def test_what_the_machine_has_is_taken(tmp_path: Path) -> None:
    """A program on the search path comes before one in the cache, by any of its names."""
    (tmp_path / "google-chrome").touch(mode=0o755)
    told = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    own = debian.folder_of(PROMETHEUS, told) / "bin" / "promtool"
    own.parent.mkdir(parents=True)
    own.touch()

    assert {"chromium": tmp_path / "google-chrome"} == debian.find(CHROMIUM, told)
    assert {"promtool": own} == debian.find(PROMETHEUS, told)
