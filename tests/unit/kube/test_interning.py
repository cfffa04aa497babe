"""Equal values held once."""

from typing import NamedTuple

from kube.informers.interning import Interner, SharedTexts, digest


class One(NamedTuple):
    number: int


class Other(NamedTuple):
    number: int


def test_equal_values_become_the_same() -> None:
    """The first of them is the one that is held."""
    interner = Interner()
    first, second = One(1000), One(1000)

    assert first is interner.value(first) is interner.value(second)
    assert interner.json({"a": [1]}) is interner.json({"a": [1]})
    assert interner.same("a", ["a"]) is interner.same("a", ["a"])


def test_values_of_two_types_stay_two() -> None:
    """Equal tuples may mean different things."""
    interner = Interner()

    assert isinstance(interner.value(One(1)), One)
    assert isinstance(interner.value(Other(1)), Other)


def test_what_is_remembered_has_a_bound() -> None:
    """However many different values come, few are held, and the next equal ones are shared."""
    interner = Interner(most=10)
    first = interner.value(One(0))
    later = [interner.value(One(number)) for number in range(1, 99)]

    assert later[-1] is interner.value(One(98))
    assert first is not interner.value(One(0))


def test_texts_read_like_a_dict() -> None:
    """Keys, values, absence and length are those of the dict."""
    texts = Interner().texts({"b": "2", "a": "1"})

    assert {"a": "1", "b": "2"} == dict(texts)
    assert ("2", None, 2) == (texts["b"], texts.get("c"), len(texts))
    assert "SharedTexts({'a': '1', 'b': '2'})" == repr(texts)


def test_texts_differ_by_keys_and_by_values() -> None:
    """Equality looks at both, also beside a dict."""
    texts = Interner().texts({"a": "1"})

    assert texts == Interner().texts({"a": "1"}) == {"a": "1"}
    assert texts != Interner().texts({"b": "1"})
    assert texts != Interner().texts({"a": "2"})
    assert 1 == len({texts, Interner().texts({"a": "1"})})


def test_texts_share_their_keys() -> None:
    """Thousands of nodes repeat the same keys, which are held once."""
    interner = Interner()
    one, other = (interner.texts({f"{part}-key": name for part in "ab"}) for name in ("n1", "n2"))

    assert isinstance(one, SharedTexts)
    assert next(iter(one)) is next(iter(other))


def test_a_digest_does_not_mind_order() -> None:
    """What JSON says is the same however its members are ordered."""
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
