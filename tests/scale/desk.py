"""The plugin, as a person calls it who sees the whole cluster."""

from typing import Final

from simulator.progress import Progress
from tests.scale.programs import Call, plugin
from tests.scale.stage import Stage
from tests.support.figures import Figure, at_most

# By the most seconds and MiB each may take, where that is promised.
_CALLS: Final = (
    (("top", "nodes"), 6.0, 200.0),
    (("top", "-A"), 15.0, None),
    (("doctor",), None, None),
)


def measure_plugin(stage: Stage, progress: Progress) -> list[Figure]:
    """Call each verb once."""
    figures: list[Figure] = []
    for arguments, seconds, mib in _CALLS:
        what = " ".join(arguments)
        before = stage.server_cpu()
        with progress.step(f"kubectl gpufence {what}"):
            call = plugin(stage.plane.kubeconfig(), *arguments)
        figures += _figures(what, call, seconds, mib)
        servers = stage.server_cpu() - before
        figures.append(Figure("  CPU of API server and etcd meanwhile", servers, "s"))
    return figures


def _figures(what: str, call: Call, seconds: float | None, mib: float | None) -> list[Figure]:
    if call.lines < 10:
        raise RuntimeError(f"{what} said little: {call.notes}")
    return [
        _figure(what, call.seconds, "s", seconds),
        Figure("  CPU of the plugin", call.cpu_seconds, "s"),
        _figure("  memory", call.mib, "MiB", mib),
    ]


def _figure(what: str, value: float, unit: str, most: float | None) -> Figure:
    return Figure(what, value, unit) if most is None else at_most(what, value, unit, most)
