"""Every metric that the programs show, from their own pages."""

import re
from functools import cache

from agent import metrics as agent_metrics
from controller import pages as controller_pages
from controller.cluster.cluster import WatchTrust
from controller.keepers.profiles.keeper import families as profile_families
from controller.loop import LastPass
from controller.model import ClusterState, ReleaseDecision, ReleaseMemory
from service.exposition import Family, write_page
from tests.support.agent.node import ABOUT, ConcernedNode, busy_state
from webhook import metrics as webhook_metrics

_FAMILY = re.compile(r"^# TYPE (\S+) (\w+)$", re.MULTILINE)
_PARTS_OF_HISTOGRAMS = ("_bucket", "_sum", "_count")
_WEBHOOK = "gpufence_webhook_"
_SPOKEN_OF = re.compile(r"\bgpufence_[a-z_]+")


@cache
def metric_names() -> frozenset[str]:
    """Return the name of every line on the pages of webhook, agent and controller."""
    node = ConcernedNode()
    state = busy_state(node)
    more = node.concerns.families(state.last, state.at)
    pages = (
        agent_metrics.page(state, ABOUT, state.at, more),
        write_page(_of_controller()),
        webhook_metrics.Metrics(("cap",)).page(),
    )
    # The webhook's gauges belong to its program, which only real ones have; their names are apart.
    texts = [value for value in vars(webhook_metrics).values() if isinstance(value, str)]
    kinds = {text: "gauge" for text in texts if text.startswith(_WEBHOOK)}
    kinds |= dict(_FAMILY.findall("".join(pages)))
    return frozenset(
        f"{name}{suffix}"
        for name, kind in kinds.items()
        for suffix in (_PARTS_OF_HISTOGRAMS if kind == "histogram" else ("",))
    )


def metrics_in(promql: str) -> set[str]:
    return set(_SPOKEN_OF.findall(promql))


def _of_controller() -> list[Family]:
    trust = WatchTrust(fresh=True, trouble="")
    core = controller_pages.families(_nothing(), trust, 0.0, _COUNTS)
    return [*core, *profile_families(0, 0, {})]


def _nothing() -> LastPass:
    state = ClusterState(0.0, fresh=True, owners={}, pods=(), nodes={})
    return LastPass(state, ReleaseDecision({}, (), ReleaseMemory()), leads=False, seconds=0.0)


_COUNTS = controller_pages.ControllerCounts({}, 0, 0, 0, 0, 0)
