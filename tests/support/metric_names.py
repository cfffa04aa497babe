"""Every metric that the programs show, from their own pages."""

import re
from dataclasses import replace
from functools import cache

from agent import metrics as agent_metrics
from agent.model.state import AgentState
from controller import pages as controller_pages
from controller.cluster.cluster import WatchTrust
from controller.keepers.profiles.keeper import families as profile_families
from controller.loop import LastPass
from controller.model import ClusterState, ReleaseDecision, ReleaseMemory
from service.exposition import Family, write_page
from service.itself import Itself
from tests.support.agent.node import ABOUT, ConcernedNode, busy_state
from webhook import metrics as webhook_metrics
from webhook.checks.quota import QuotaMemory
from webhook.policy import WebhookPolicy

_FAMILY = re.compile(r"^# TYPE (\S+) (\w+)$", re.MULTILINE)
_OLD = re.compile(r"^# HELP (\S+) Deprecated", re.MULTILINE)
_PARTS_OF_HISTOGRAMS = ("_bucket", "_sum", "_count")
_WEBHOOK = "gpufence_webhook_"
_SPOKEN_OF = re.compile(r"\bgpufence_[a-z_]+")


@cache
def pages() -> dict[str, str]:
    """Return the page of each program, as full as it can be without the program."""
    node = ConcernedNode()
    state = busy_state(node)
    more = node.concerns.families(state.last, state.at)
    first = AgentState(10.0, 10.0)
    agent = agent_metrics.page(state, ABOUT, state.at, more)
    return {
        "agent": agent + write_page(Itself("agent").families(), {"node": ABOUT.node}),
        "agent at its start": agent_metrics.page(first, replace(ABOUT, cluster=None), 11.0),
        "controller": write_page([*_of_controller(), *Itself("controller").families()]),
        "webhook": _of_webhook().page(),
    }


@cache
def metric_names() -> frozenset[str]:
    """Return the name of every line on the pages of all programs, but for those that end soon."""
    text = "".join(pages().values())
    old = set(_OLD.findall(text))
    kinds = {name: kind for name, kind in _FAMILY.findall(text) if name not in old}
    return frozenset(
        f"{name}{suffix}"
        for name, kind in kinds.items()
        for suffix in (_PARTS_OF_HISTOGRAMS if kind == "histogram" else ("",))
    )


def metrics_in(promql: str) -> set[str]:
    return set(_SPOKEN_OF.findall(promql))


def _of_webhook() -> webhook_metrics.Metrics:
    """Return its page, with gauges by every name: they belong to a program that runs."""
    metrics = webhook_metrics.Metrics(("cap",))
    names = [value for value in vars(webhook_metrics).values() if isinstance(value, str)]
    known = dict(_FAMILY.findall(metrics.page()))
    metrics.add_gauges(
        *(
            webhook_metrics.Gauge(name, "A number", lambda: 1.0)
            for name in names
            if name.startswith(_WEBHOOK) and name not in known
        )
    )
    metrics.add_source(Itself("webhook").families)
    metrics.add_source(QuotaMemory(WebhookPolicy()).families)
    return metrics


def _of_controller() -> list[Family]:
    trust = WatchTrust(fresh=True, trouble="")
    core = controller_pages.families(_nothing(), trust, 0.0, _COUNTS)
    return [*core, *profile_families(0, 0, {})]


def _nothing() -> LastPass:
    state = ClusterState(0.0, fresh=True, owners={}, pods=(), nodes={})
    return LastPass(state, ReleaseDecision({}, (), ReleaseMemory()), leads=False, seconds=0.0)


_COUNTS = controller_pages.ControllerCounts({}, 0, 0, 0, 0, 0)
