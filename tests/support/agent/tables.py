"""How much a program remembers: the sizes of all tables that hang on an object."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping

_OURS = ("agent.", "gpufence.", "kube.")


def sizes(*roots: object) -> Counter[str]:
    """Return how many entries each field of our classes holds, those of tables within included."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    waiting = [(type(root).__name__, root) for root in roots]
    while waiting:
        place, item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Mapping):
            found[place] += len(item)
            waiting += [(f"{place}[]", each) for pair in item.items() for each in pair]
        elif isinstance(item, tuple | list | set | frozenset | deque):
            found[place] += len(item)
            waiting += [(f"{place}[]", each) for each in item]
        elif type(item).__module__.startswith(_OURS):
            waiting += [(f"{type(item).__name__}.{name}", each) for name, each in _fields(item)]
    return found


def _fields(item: object) -> Iterator[tuple[str, object]]:
    yield from getattr(item, "__dict__", {}).items()
    for kind in type(item).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(item, name):
                yield name, getattr(item, name)
