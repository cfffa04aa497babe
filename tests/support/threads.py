"""What goes on beside a test, in threads, for as long as a block lasts."""

import threading
from abc import ABC, abstractmethod
from socketserver import BaseServer
from typing import Self

_SHUTDOWN_SECONDS = 0.01


class Beside(ABC):
    """Runs while its block does; `over` is set at the block's end, and every thread waited for."""

    def __init__(self, threads: int = 1) -> None:
        self.over = threading.Event()
        self._threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()

    @abstractmethod
    def run(self) -> None:
        """Go on until it is over."""


class Serving(Beside):
    """Serves beside the test; handlers that hang on purpose wait for `over`."""

    def __init__(self, server: BaseServer) -> None:
        super().__init__()
        self._serving = server

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._serving.shutdown()
        super().__exit__()
        self._serving.server_close()

    def run(self) -> None:
        self._serving.serve_forever(_SHUTDOWN_SECONDS)
