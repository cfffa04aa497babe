"""Every page of metrics keeps to the conventions of Prometheus."""

import subprocess

import pytest

from service.exposition import Distribution, Family, Histogram, Metric, write_page
from service.itself import Itself
from service.renamed import Renamed, age, left, with_old_names
from tests.support.metric_names import pages
from tests.support.metric_rules import problems
from tests.support.running import program

HEAD = "# HELP gpufence_a_bytes One\n# TYPE gpufence_a_bytes gauge\n"


@pytest.mark.parametrize(
    "broken",
    [
        "gpufence_a_bytes 1",
        "# HELP gpufence_a_bytes One\n# TYPE gpufence_b_bytes gauge\n",
        "# HELP gpufence_a_bytes one\n",
        "# HELP gpufence_a_bytes One.\n",
        "# HELP other_bytes One\n# TYPE other_bytes gauge\n",
        "# HELP gpufence_a One\n# TYPE gpufence_a gauge\n",
        "# HELP gpufence_age_seconds One\n# TYPE gpufence_age_seconds gauge\n",
        "# HELP gpufence_a Deprecated, use gpufence_b\n# TYPE gpufence_a gauge\n",
        "# HELP gpufence_a_bytes One\n# TYPE gpufence_a_bytes counter\n",
        f"{HEAD}gpufence_a_bytes one\n",
        f"{HEAD}gpufence_a_bytes 1\ngpufence_a_bytes 1\n",
        f'{HEAD}gpufence_a_bytes{{outcome="not renewed"}} 1\n',
        'gpufence_a_bytes{x="a"b"} 1\n',
    ],
)
def test_the_lint_finds_what_it_is_for(broken: str) -> None:
    """Each mistake that the lint exists for is found."""
    assert [] != list(problems(broken))


@pytest.mark.parametrize("name", pages())
def test_a_page_keeps_to_the_conventions(name: str) -> None:
    """Help, type, unit, words as values of labels, and no line twice."""
    assert [] == list(problems(pages()[name]))


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("name", pages())
def test_promtool_finds_nothing(name: str) -> None:
    """Prometheus' own lint has nothing to say of a page."""
    done = subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=pages()[name],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stdout + done.stderr)


def test_a_program_says_what_it_takes() -> None:
    """The figures of a process are those that the kernel has of it."""
    found = {family.name: family.values[0] for family in Itself("agent").families()}
    labels, always = found["gpufence_build_info"]

    assert ("agent", 1.0) == (labels["program"], always)
    assert (found["process_resident_memory_bytes"][1] or 0) > 1 << 20
    assert (found["process_open_fds"][1] or 0) >= 3


def test_old_names_have_their_old_figures() -> None:
    """An age, a time that is left and a word with blanks are what they were, beside the new."""
    new: list[Metric] = [
        Family("a", "gauge", "A", (({}, 990.0),)),
        Family("b", "gauge", "B", (({}, 1010.0), ({"x": "1"}, None))),
        Family("c", "gauge", "C", (({"outcome": "not_renewed"}, 2.0),)),
        Histogram("d", "D", (({}, Distribution((1.0,))),)),
    ]
    rows = [Renamed("o", "a", age), Renamed("p", "b", left), Renamed("q", "c", blanks=True)]
    lines = write_page(with_old_names(new, rows, 1000.0)).splitlines()

    assert "# HELP o Deprecated, use a" in lines
    assert ["o 10", "p 10", 'q{outcome="not renewed"} 2'] == [
        line for line in lines if line[0] in "opq"
    ]


def test_all_lines_may_share_labels() -> None:
    """What every line has comes behind what it has of its own."""
    family = Family("a", "gauge", "A", (({}, 1.0), ({"x": "1"}, 2.0)))

    expected = ['a{node="n1"} 1', 'a{x="1",node="n1"} 2']
    assert expected == write_page([family], {"node": "n1"}).splitlines()[2:]
