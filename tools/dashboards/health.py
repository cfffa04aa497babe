"""Health of webhook and agents: whether they do what they are there for."""

from tools.dashboards.cards import NODE, evictions
from tools.dashboards.panels import (
    BAD,
    DOUBTFUL,
    GOOD,
    RANGE,
    RATE,
    Dashboard,
    Kind,
    Panel,
    Query,
    Section,
    figure,
    growth,
    growth_from_nothing,
    many,
    quantile,
    rate,
    since,
)

_OF_NODE = NODE.selector
_DAY = 86400.0
_FAILED = growth_from_nothing("gpufence_webhook_requests_total", 'result="failed"', RANGE)
_DURATION = "gpufence_webhook_request_duration_seconds"
_TICK = "gpufence_agent_tick_duration_seconds"
_NONE_BELOW_ONE = ((0, BAD), (1, GOOD))


def _age(title: str, about: str, event: str, doubtful: float | None = None) -> Panel:
    """Show for how long something has not happened on each node."""
    steps = () if doubtful is None else ((doubtful, DOUBTFUL),)
    queries = (Query(since(event, _OF_NODE, "node"), "{{node}}"),)
    return Panel(title, about, queries, unit="s", steps=steps)


_NOW = Section(
    "Now",
    (
        figure(
            "Webhooks ready",
            "Replicas that answer. With none, pods are made without their caps.",
            "sum(gpufence_webhook_ready)",
            "short",
            *_NONE_BELOW_ONE,
        ),
        figure(
            "Certificate ends in",
            "Renewed a month before its end.",
            "min(gpufence_webhook_certificate_expiry_timestamp_seconds) - time()",
            "s",
            (0, BAD),
            (14 * _DAY, GOOD),
        ),
        figure(
            "Failed admissions",
            "Errors of the webhook itself in the time that is shown. Such pods have no caps.",
            f"sum({_FAILED}) or 0 * sum(gpufence_webhook_ready)",
            "short",
            (1, BAD),
        ),
        figure(
            "Agents running",
            "Agents that show their figures.",
            f'count(gpufence_build_info{{program="agent", {_OF_NODE}}})',
        ),
        figure(
            "Agents without fresh pods",
            "Agents that do not know their pods well enough to evict any.",
            f"sum(1 - gpufence_cluster_fresh{{{_OF_NODE}}})",
            "short",
            (1, BAD),
        ),
        figure(
            "Nodes with a brake",
            "Nodes on which a brake stops evictions.",
            f"sum(max by (node) (gpufence_brake{{{_OF_NODE}}}))",
            "short",
            (1, DOUBTFUL),
        ),
    ),
)
_WEBHOOK = Section(
    "Webhook",
    (
        Panel(
            "Admissions",
            "What became of requests, in each second.",
            (
                Query(
                    rate("gpufence_webhook_requests_total", "", "hook, result"),
                    "{{hook}} {{result}}",
                ),
            ),
            unit="reqps",
        ),
        Panel(
            "Admission latency",
            "From the whole body to the answer: half of the requests, all but one in a hundred.",
            (
                Query(quantile(0.5, _DURATION, "", "hook"), "{{hook}} half"),
                Query(quantile(0.99, _DURATION, "", "hook"), "{{hook}} 99 %"),
            ),
            unit="s",
        ),
        Panel(
            "Warnings to creators of pods",
            "Warnings that the creators of pods were shown, in each second.",
            (Query(rate("gpufence_webhook_warnings_total", "", "hook"), "{{hook}}"),),
            unit="cps",
        ),
        Panel(
            "Time since the webhook heard the API server",
            "Since a watch heard anything; bookmarks come every minute.",
            (
                Query(
                    since("gpufence_webhook_cluster_last_contact", "", "pod, source"),
                    "{{pod}} {{source}}",
                ),
            ),
            unit="s",
            steps=((600, BAD),),
        ),
        Panel(
            "Objects known to the webhook",
            "GPU nodes, fenced namespaces, and profiles whose targets are limits.",
            (
                Query("min(gpufence_webhook_gpu_nodes)", "GPU nodes"),
                Query("min(gpufence_webhook_namespaces)", "namespaces"),
                Query("min(gpufence_webhook_applied_profiles)", "profiles"),
            ),
        ),
        Panel(
            "Certificate loads",
            "Whether a certificate that came into the folder went live, since the point before.",
            (
                Query(
                    growth("gpufence_webhook_certificate_loads_total", "", "pod, result"),
                    "{{pod}} {{result}}",
                ),
            ),
        ),
    ),
)
_MEASURING = Section(
    "Agents: measuring",
    (
        _age(
            "Time since the last sample",
            "Time since any card of the node could last be read.",
            "gpufence_last_sample",
            60,
        ),
        _age(
            "Time since the oldest process list",
            "Lists of processes are made every ten seconds, or when memory moves.",
            "gpufence_card_last_list",
        ),
        Panel(
            "Cards not identified",
            "Such cards are not shown anywhere else.",
            (Query(many("gpufence_cards_unidentified", _OF_NODE, "node"), "{{node}}"),),
        ),
        Panel(
            "Tick duration, 99th percentile",
            "From the look at the cards to all that follows: all but one in a hundred.",
            (Query(quantile(0.99, _TICK, _OF_NODE, "node"), "{{node}}"),),
            unit="s",
        ),
        Panel(
            "Ticks skipped or failed",
            "Left out since the one before took too long, or ended in a bug of ours, since the "
            "point before.",
            (
                Query(
                    growth("gpufence_agent_ticks_skipped_total", _OF_NODE, "node"),
                    "{{node}} left out",
                ),
                Query(
                    growth("gpufence_agent_ticks_failed_total", _OF_NODE, "node"),
                    "{{node}} failed",
                ),
            ),
        ),
        Panel(
            "Restarts of the measuring process",
            "The process that speaks with the driver hung or died, since the point before.",
            (Query(growth("gpufence_nvml_restarts_total", _OF_NODE, "node"), "{{node}}"),),
        ),
    ),
)
_ACTING = Section(
    "Agents: acting",
    (
        Panel(
            "Evictions",
            "How pods were made to go, or why they did not, since the point before.",
            (
                Query(
                    growth("gpufence_evictions_total", f'{_OF_NODE}, result="accepted"', "action"),
                    "{{action}}",
                ),
                Query(
                    growth("gpufence_evictions_total", f'{_OF_NODE}, result!="accepted"', "result"),
                    "not: {{result}}",
                ),
            ),
        ),
        Panel(
            "Nodes by brake on evictions",
            "Nodes on which one stops evictions: start, stale_pods (the API server is out of "
            "reach), suspended (most pods of one unit are over at once).",
            (Query(many("gpufence_brake", _OF_NODE, "reason", "sum"), "{{reason}}"),),
        ),
        Panel(
            "Agents by kill switch and account",
            "Agents by what the switch allows at most, and as whom they act.",
            (
                Query(
                    many("gpufence_cluster_info", _OF_NODE, "highest, identity", "sum"),
                    "{{highest}} as {{identity}}",
                ),
            ),
            Kind.STACK,
        ),
        _age(
            "Time since agents heard the API server",
            "The longest time that any watch of an agent has heard nothing.",
            "gpufence_cluster_last_contact",
            300,
        ),
        Panel(
            "Events written and dropped",
            "Written, and not written by why, since the point before.",
            (
                Query(
                    f"sum(increase(gpufence_events_written_total{{{_OF_NODE}}}[$__rate_interval]))",
                    "written",
                ),
                Query(
                    growth("gpufence_events_dropped_total", _OF_NODE, "reason"),
                    "not written: {{reason}}",
                ),
            ),
        ),
        Panel(
            "Agents by version",
            "Two during an upgrade.",
            (
                Query(
                    many("gpufence_build_info", f'program="agent", {_OF_NODE}', "version", "sum"),
                    "{{version}}",
                ),
            ),
            Kind.STACK,
        ),
        Panel(
            "Limits read back from the driver",
            "Containers whose limit the driver holds as it was written, or not (absent), or of "
            "which nothing is known; and nodes on which containers with a limit fail.",
            (
                Query(many("gpufence_driver_limits", _OF_NODE, "state", "sum"), "{{state}}"),
                Query(f"sum(gpufence_driver_limits_unsupported{{{_OF_NODE}}})", "nodes failing"),
            ),
            missing="none",
            width=24,
        ),
    ),
)
_BUILD = "on (job, instance) group_left (program) gpufence_build_info"
_PROGRAMS = Section(
    "Programs",
    (
        Panel(
            "Memory by program",
            "Resident memory of the largest replica or agent, without children that measure.",
            (Query(f"max by (program) (process_resident_memory_bytes * {_BUILD})", "{{program}}"),),
            unit="bytes",
        ),
        Panel(
            "CPU by program",
            "Of the busiest replica or agent, in cores.",
            (
                Query(
                    f"max by (program) (rate(process_cpu_seconds_total[{RATE}]) * {_BUILD})",
                    "{{program}}",
                ),
            ),
        ),
        Panel(
            "Open files by program",
            "Share of what the process may open, of the replica or agent with most.",
            (
                Query(
                    f"max by (program) (process_open_fds / process_max_fds * {_BUILD})",
                    "{{program}}",
                ),
            ),
            unit="percentunit",
        ),
    ),
)
HEALTH = Dashboard(
    "health",
    "gpufence: webhook and agents",
    "Whether webhook and agents do what they are there for, and what holds them back.",
    (NODE,),
    (_NOW, _WEBHOOK, _MEASURING, _ACTING, _PROGRAMS),
    (evictions(_OF_NODE),),
)
