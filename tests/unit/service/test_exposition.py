"""The text format of Prometheus."""

from service.exposition import Distribution, Family, Histogram, write_page


def test_values_have_a_line_for_each_combination_of_labels() -> None:
    """A family has its help, its type, and a line for each value."""
    family = Family("a_total", "counter", "Things.", (({"x": "1", "y": "2"}, 3.0), ({}, 1.5)))

    expected = (
        '# HELP a_total Things.\n# TYPE a_total counter\na_total{x="1",y="2"} 3\na_total 1.5\n'
    )
    assert expected == write_page([family])


def test_unknown_values_have_no_line() -> None:
    """None is left out, never written as zero."""
    family = Family("a", "gauge", "One.", (({"x": "1"}, None), ({"x": "2"}, 0.0)))

    assert ['a{x="2"} 0'] == write_page([family]).splitlines()[2:]


def test_labels_are_escaped() -> None:
    """Quotes, backslashes and line ends cannot break a line."""
    family = Family("a", "gauge", "One.", (({"x": 'a"b\\c\nd'}, 1.0),))

    assert 'a{x="a\\"b\\\\c\\nd"} 1' == write_page([family]).splitlines()[2]


def test_a_distribution_counts_up_to_its_bounds() -> None:
    """Values count under every bound they do not exceed, and under infinity."""
    values = Distribution((0.1, 1.0)).observed(0.1).observed(0.5).observed(7.0)
    lines = write_page([Histogram("a_seconds", "How long.", (({}, values),))]).splitlines()

    expected = [
        "# HELP a_seconds How long.",
        "# TYPE a_seconds histogram",
        'a_seconds_bucket{le="0.1"} 1',
        'a_seconds_bucket{le="1"} 2',
        'a_seconds_bucket{le="+Inf"} 3',
        "a_seconds_sum 7.6",
        "a_seconds_count 3",
    ]
    assert expected == lines


def test_an_empty_distribution_is_shown_at_zero() -> None:
    """A rate needs the time before the first value, too."""
    metric = Histogram("a", "How long.", (({}, Distribution((1.0,))),))
    lines = write_page([metric]).splitlines()[2:]

    assert ['a_bucket{le="1"} 0', 'a_bucket{le="+Inf"} 0', "a_sum 0", "a_count 0"] == lines
