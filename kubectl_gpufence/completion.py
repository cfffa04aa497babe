"""
`kubectl gpufence <TAB>`: kubectl runs `kubectl_complete-gpufence` with the words so far, the one
that is being typed last, and shows what that prints (https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/).
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from gpufence.errors import GpufenceError
from kubectl_gpufence import verbs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

NO_FILES: Final = ":4"  # cobra's directive: what is printed is all there is, no files
_SECONDS: Final = "2"
_PATHS: Final = {
    "NAMESPACE": "/api/v1/namespaces",
    "NODE": "/api/v1/nodes",
    "POD": "/api/v1/namespaces/{}/pods",
}


def main() -> int:
    for text in completions(sys.argv[1:], os.environ):
        sys.stdout.write(f"{text}\n")
    sys.stdout.write(f"{NO_FILES}\n")
    return 0


def completions(words: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return what the last word may become; nothing where only a silent cluster could tell."""
    *before, typed = words or [""]
    verb = next((word for word in before if not word.startswith("-")), "")
    if not verb:
        return [f"{each.name}\t{each.help}" for each in verbs.VERBS if each.name.startswith(typed)]
    parser = verbs.parser_of(verb)
    if parser is None:
        return []
    found = _candidates(parser, before, typed, environ)
    return sorted({each for each in found if each.startswith(typed)})


def _candidates(
    parser: argparse.ArgumentParser, before: Sequence[str], typed: str, environ: Mapping[str, str]
) -> Iterator[str]:
    actions = parser._actions  # noqa: SLF001 - argparse has no other word for what can be typed
    options = {name: action for action in actions for name in action.option_strings}
    asked = options.get(before[-1])
    if asked is not None and asked.nargs != 0:
        yield from _values(asked, before, environ)
        return
    if typed.startswith("-"):
        yield from (name for name in options if name.startswith("--"))
        return
    for action in actions:
        if not action.option_strings:
            yield from _values(action, before, environ)


def _values(
    action: argparse.Action, before: Sequence[str], environ: Mapping[str, str]
) -> Iterator[str]:
    if action.choices is not None:
        yield from map(str, action.choices)
        return
    kind = str(action.metavar or "").split("|")[0]
    if path := _PATHS.get("POD" if kind == "OWNER" else kind):
        yield from _names(path, before, environ)


def _names(path: str, before: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of a collection in the cluster that the words so far are about."""
    from kubectl_gpufence.pods import name_of  # noqa: PLC0415 (most completions need no cluster)
    from kubectl_gpufence.reader import reading  # noqa: PLC0415 (see above)

    said = [*_said(before, "--context", "--kubeconfig"), "--request-timeout", _SECONDS]
    call = verbs.parse(["top", *said])
    chosen = [value for _, value in _pairs(before, "-n", "--namespace")]
    try:
        with reading(call, environ, lambda _: None) as reader:
            namespace = chosen[-1] if chosen else reader.client.namespace or "default"
            yield from reader.listed(path.format(namespace), name_of)
    except GpufenceError:
        return


def _said(words: Sequence[str], *options: str) -> list[str]:
    return [word for pair in _pairs(words, *options) for word in pair]


def _pairs(words: Sequence[str], *options: str) -> list[tuple[str, str]]:
    """Return those options with their values, written apart or with =."""
    apart = [(word, value) for word, value in pairwise(words) if word in options]
    joined = [word.partition("=") for word in words]
    return [
        *apart,
        *[(head, value) for head, equals, value in joined if equals and head in options],
    ]


if __name__ == "__main__":
    sys.exit(main())
