"""What a kubelet does for a mounted Secret: every change becomes a new folder behind `..data`."""

import base64
from collections.abc import Mapping
from pathlib import Path

from kube import Client
from tests.support.threads import Beside

PERIOD_SECONDS = 0.1


class Kubelet(Beside):
    """Projects one Secret into one folder until its block ends."""

    def __init__(self, client: Client, secret: str, folder: Path) -> None:
        super().__init__()
        self._client = client
        self._secret = secret
        self._folder = folder
        self._version = ""
        self._data: Mapping[str, str] = {}

    def run(self) -> None:
        while not self.over.wait(PERIOD_SECONDS):
            item = self._client.get(self._secret)
            data, version = item.get("data") or {}, str(item["metadata"]["resourceVersion"])
            if data != self._data:
                self._data, self._version = data, version
                self._project()

    def _project(self) -> None:
        generation = self._folder / f"..generation_{self._version}"
        generation.mkdir()
        for name, value in self._data.items():
            (generation / name).write_bytes(base64.b64decode(value))
            link = self._folder / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        fresh = self._folder / "..data_tmp"
        fresh.symlink_to(generation.name)
        fresh.rename(self._folder / "..data")
