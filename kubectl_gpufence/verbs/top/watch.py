"""
`top --watch`: in place on a terminal, where keys sort and filter; one table after the other
everywhere else.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from gpufence.errors import GpufenceError
from gpufence.text import printable
from kube import ForbiddenError
from kube.repeating import Repeating
from kubectl_gpufence.live import LiveLooks, objects_in_view
from kubectl_gpufence.output import advice
from kubectl_gpufence.terminal import KeyTerminal
from kubectl_gpufence.verbs.top.screen import (
    ScreenSize,
    Shown,
    WatchView,
    keys_of,
    page_of,
    pressed,
    screen,
    titles_of,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from kubectl_gpufence.cluster_view import ClusterAnswers, SeenObjects
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

_LEAST_SECONDS: Final = 0.2


def watch(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Look until somebody quits.

    Raises:
        KubeError: the first look fails; later ones are only noted.
    """
    live = LiveLooks(reader, lambda asker: _objects(asker, call))
    looks = Looker(live, max(call.interval, _LEAST_SECONDS))
    if output.keys is None:
        raise AssertionError("watch() is for terminals")
    view = WatchView(what=call.what, wide=call.output == "wide")
    with KeyTerminal(output.keys, output.out) as terminal:
        looks.start(terminal.wake)
        try:
            _show(view, call.namespace, looks, terminal, output)
        finally:
            looks.stop()
    return 0


def _objects(reader: ClusterReader, call: argparse.Namespace) -> SeenObjects:
    """
    Read pods and nodes together, since a key leads from one to the other. Who asks for nodes or
    cards need not be allowed to list pods.
    """
    if call.what == "pods":
        return objects_in_view(reader, call.namespace, call.node)
    objects = reader.objects_of_nodes(call.node)
    try:
        pods, wrong = reader.pods(call.namespace, call.node, objects.nodes)
    except ForbiddenError:
        return objects
    return objects._replace(pods=tuple(pods), notes=(*objects.notes, *wrong))


def _show(
    view: WatchView, namespace: str, looks: Looker, terminal: KeyTerminal, output: Output
) -> None:
    """Draw after each key and each look, until a key ends it."""
    shown = Shown(looks.cluster, namespace, looks.at)
    while True:
        if not view.paused:
            shown = Shown(looks.cluster, namespace, looks.at, looks.trouble)
        size = ScreenSize(*terminal.size)
        lines, view = screen(view, shown, size, output.display)
        terminal.draw(lines)
        for key in keys_of(terminal.read(None)):
            if key == "ctrl-l":
                terminal.redraw()
            elif key in ("r", "f5") and not view.typing:
                looks.hurry()
            else:
                changed = pressed(view, key, titles_of(view.what, namespace), page_of(size))
                if changed is None:
                    return
                view = changed


class Looker:
    """
    Takes looks on a thread of its own, so that keys never wait for an agent; the first one is taken
    at once by whoever makes it.
    """

    def __init__(self, live: LiveLooks, interval: float) -> None:
        self._live = live
        self._interval = interval
        self._repeating = Repeating("looks", self._turn, jitter=0.0)
        self._told: Callable[[], None] = lambda: None
        self.trouble = ""
        self.cluster: ClusterAnswers = live.look()
        self.at = _clock()

    def start(self, told: Callable[[], None]) -> None:
        """Go on looking; `told` is called after each look."""
        self._told = told
        self._repeating.start(self._interval)

    def hurry(self) -> None:
        self._repeating.wake()

    def stop(self) -> None:
        """End after the look that is being taken, and do not wait for that."""
        self._repeating.end()
        self._live.stop()

    def _turn(self) -> float:
        try:
            self.cluster, self.at, self.trouble = self._live.look(), _clock(), ""
        except GpufenceError as error:
            self.trouble = f"this is an old look: {advice(error)}"
        except Exception as error:  # noqa: BLE001 - one bad look must not be the last
            self.trouble = f"this is an old look: {printable(repr(error), 200)}"
        if not self._repeating.stopped:
            self._told()
        return self._interval


def _clock() -> str:
    return time.strftime("%H:%M:%S")
