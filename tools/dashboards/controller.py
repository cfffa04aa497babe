"""The controller of component idle-release: what it may release, and what it released."""

from tools.dashboards.panels import (
    BAD,
    DOUBTFUL,
    GOOD,
    Dashboard,
    Kind,
    Panel,
    Query,
    Section,
    Variable,
    figure,
    growth_from_nothing,
    many,
)

_NAMESPACE = Variable("namespace", "gpufence_controller_owners")
_P = "gpufence_controller_"
_ACTS = growth_from_nothing(f"{_P}acts_total", "")
_BY_STATE = f"max by (state) (sum by (state, instance) ({_P}owners{{{_NAMESPACE.selector}}}))"


def _since(title: str, about: str, *metrics: tuple[str, str]) -> Panel:
    """Show counters without labels, of all replicas together."""
    queries = tuple(
        Query(f"sum(increase({_P}{metric}[$__rate_interval]))", legend)
        for metric, legend in metrics
    )
    return Panel(title, f"{about}, since the point before.", queries)


_NOW = Section(
    "Now",
    (
        figure(
            "Leaders",
            "Replicas that hold the Lease: one. Without, no owner is released or brought back.",
            f"sum({_P}leader)",
            "short",
            (0, BAD),
            (1, GOOD),
            (2, BAD),
        ),
        figure(
            "Replicas with a fresh view",
            "Replicas whose view of the cluster is fresh enough to act on.",
            f"sum({_P}fresh)",
            "short",
            (0, BAD),
            (1, GOOD),
        ),
        figure(
            "Releases held back",
            "Whether a brake stops all releases.",
            f"max({_P}brake)",
            "short",
            (1, DOUBTFUL),
        ),
        figure(
            "Idle owners a pod waits for",
            "Owners whose GPUs a pending pod waits for.",
            f"max({_P}owners_contended)",
        ),
        figure("Watched pods", "On GPU nodes, or asking for GPUs.", f"max({_P}pods)"),
        figure("Watched GPU nodes", "Nodes with GPUs.", f"max({_P}nodes)"),
    ),
)
_OWNERS = Section(
    "Owners",
    (
        Panel(
            "Owners by state",
            "Owners of GPU pods in fenced namespaces, by what they do.",
            (Query(_BY_STATE, "{{state}}"),),
            Kind.STACK,
        ),
        Panel(
            "Idle owners by namespace",
            "Owners all of whose pods are idle.",
            (
                Query(
                    many(f"{_P}owners", f'{_NAMESPACE.selector}, state="idle"', "namespace"),
                    "{{namespace}}",
                ),
            ),
            Kind.STACK,
            missing="none",
        ),
        Panel(
            "Acts on owners",
            "What was done and what became of it, since the point before.",
            (Query(f"sum by (step, outcome) ({_ACTS})", "{{step}} {{outcome}}"),),
            missing="none",
        ),
    ),
)
_PROGRAM = Section(
    "The program",
    (
        Panel(
            "Duration of the last pass",
            "How long the last look at all owners took.",
            (Query(many(f"{_P}pass_seconds", "", "pod"), "{{pod}}"),),
            unit="s",
        ),
        _since(
            "Questions to agents",
            "Questions before an act, and those without a good answer, which call the act off",
            ("agents_asked_total", "asked"),
            ("agents_silent_total", "silent"),
        ),
        _since(
            "Failed passes and dropped Events",
            "Passes that ended in a bug of gpufence, and Events that were not written",
            ("passes_failed_total", "passes failed"),
            ("events_dropped_total", "Events dropped"),
        ),
        _since("Events written", "Written", ("events_written_total", "written"))._replace(width=12),
        Panel(
            "Needs and profiles",
            "Nodes whose agents remember what models need, and GPUMemoryProfiles (component need).",
            (
                Query(f"max({_P}needs)", "nodes that remember"),
                Query(f"max({_P}profiles)", "profiles"),
            ),
            width=12,
        ),
    ),
)
CONTROLLER = Dashboard(
    "controller",
    "gpufence: controller",
    "Whether the controller of component idle-release acts, and what it does about idle owners.",
    (_NAMESPACE,),
    (_NOW, _OWNERS, _PROGRAM),
)
