"""What a dashboard shows, as values: its sections, their panels, and what each asks Prometheus."""

from enum import Enum
from typing import NamedTuple

RATE, RANGE = "$__rate_interval", "$__range"
GOOD, DOUBTFUL, BAD = "green", "orange", "red"


class Kind(Enum):
    FIGURE = "one number, the last"
    LINES = "a line for each series"
    STACK = "areas that add up"
    TABLE = "a row for each set of labels, a column for each query"


class Query(NamedTuple):
    """
    `legend` names a series by its labels, in a table the column, which may have a unit of its own.
    """

    expr: str
    legend: str = ""
    unit: str = ""


class Link(NamedTuple):
    """Where more is said: a dashboard, and the labels that are its choices there."""

    title: str
    dashboard: str
    labels: tuple[str, ...]


class Annotation(NamedTuple):
    """A line across all panels, at each minute in which the query has series."""

    name: str
    expr: str
    text: str


class Panel(NamedTuple):
    """
    `steps` are colours from values on; below the first everything is well. `most` is where an axis
    ends. `missing` is what it says while there is nothing. `rows` are the labels of a table. `to`
    is the dashboard that a series or a row leads to, for the choices that it has labels for.
    """

    title: str
    about: str
    queries: tuple[Query, ...]
    kind: Kind = Kind.LINES
    unit: str = "short"
    width: int = 8
    steps: tuple[tuple[float, str], ...] = ()
    most: float | None = None
    missing: str = "unknown"
    rows: tuple[str, ...] = ()
    to: Link | None = None


class Section(NamedTuple):
    title: str
    panels: tuple[Panel, ...]


class Variable(NamedTuple):
    """A choice at the top of a dashboard: the values that a label has on a metric."""

    label: str
    metric: str

    @property
    def selector(self) -> str:
        return f'{self.label}=~"${self.label}"'


class Dashboard(NamedTuple):
    """A cluster may be chosen before its own `variables`, each of which depends on those before."""

    name: str
    title: str
    about: str
    variables: tuple[Variable, ...]
    sections: tuple[Section, ...]
    annotations: tuple[Annotation, ...] = ()


def figure(
    title: str, about: str, expr: str, unit: str = "short", *steps: tuple[float, str]
) -> Panel:
    """Describe one number, six of which fill a line."""
    return Panel(title, about, (Query(expr),), Kind.FIGURE, unit, 4, steps)


def many(metric: str, selector: str, by: str, function: str = "max") -> str:
    """Ask for a gauge by labels that outlive the pod which shows it."""
    return f"{function} by ({by}) ({metric}{{{selector}}})"


def since(event: str, selector: str, by: str) -> str:
    """Ask for how long something has not happened, by the metric of when it last did."""
    return f"time() - min by ({by}) ({event}_timestamp_seconds{{{selector}}})"


def rate(metric: str, selector: str, by: str) -> str:
    """Ask how much a counter grows in a second."""
    return f"sum by ({by}) (rate({metric}{{{selector}}}[{RATE}]))"


def growth(metric: str, selector: str, by: str) -> str:
    """Ask how much a counter that begins at zero has grown since the point before."""
    return f"sum by ({by}) (increase({metric}{{{selector}}}[{RATE}]))"


def growth_from_nothing(metric: str, selector: str, over: str = RATE) -> str:
    """Ask how much a counter has grown that begins with its first event, which is growth, too."""
    series = f"{metric}{{{selector}}}"
    return f"({series} unless {series} offset {over} or increase({series}[{over}]))"


def quantile(share: float, metric: str, selector: str, by: str) -> str:
    buckets = rate(f"{metric}_bucket", selector, f"le, {by}")
    return f"histogram_quantile({share:g}, {buckets})"
