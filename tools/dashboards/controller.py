"""The controller, which component idle-release installs: whom it may release, and whom it did."""

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
    many,
)

_NAMESPACE = Variable("namespace", "gpufence_controller_owners")
_P = "gpufence_controller_"
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
            "Who acts",
            "Replicas that hold the Lease: one. With none nobody is released or brought back.",
            f"sum({_P}leader)",
            "short",
            (0, BAD),
            (1, GOOD),
            (2, BAD),
        ),
        figure(
            "Ground",
            "Replicas whose knowledge of the cluster may be acted on.",
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
            "Idle owners in somebody's way",
            "For whose GPUs somebody waits.",
            f"max({_P}owners_contended)",
        ),
        figure("Pods in view", "On GPU nodes, or asking for GPUs.", f"max({_P}pods)"),
        figure("GPU nodes", "In view.", f"max({_P}nodes)"),
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
            "Idle owners",
            "By namespace.",
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
            "Acts",
            "What was done and what became of it, since the replicas began.",
            (Query(many(f"{_P}acts_total", "", "step, outcome", "sum"), "{{step}} {{outcome}}"),),
            missing="none",
        ),
    ),
)
_PROGRAM = Section(
    "The program",
    (
        Panel(
            "Time of a pass",
            "How long the last look at all owners took.",
            (Query(many(f"{_P}pass_seconds", "", "pod"), "{{pod}}"),),
            unit="s",
        ),
        _since(
            "Agents that were asked",
            "Questions before an act, and those without a good answer, which call the act off",
            ("agents_asked_total", "asked"),
            ("agents_silent_total", "silent"),
        ),
        _since(
            "Trouble",
            "Passes that ended in a bug of ours, and Events that nobody took",
            ("passes_failed_total", "passes failed"),
            ("events_dropped_total", "Events dropped"),
        ),
        _since("Events", "Written", ("events_written_total", "written"))._replace(width=12),
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
