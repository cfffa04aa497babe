"""
`gpufence-webhook rewrite`: what would happen to a manifest's pods, without a cluster.

The quickest way to see what gpufence does, and a check for pipelines. It runs the webhook's own
code; the card that a scheduler would choose is the one named by the call.
"""

from __future__ import annotations

import importlib.resources
import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import yaml

from gpufence.errors import InvalidError, Problem
from gpufence.mode import read_mode
from webhook.command.arguments import namespace_of, parse, policy_for
from webhook.command.documents import pods_in, read_documents, with_pod
from webhook.command.explain import explain
from webhook.command.result import result_for
from webhook.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpufence.mode import Mode
    from webhook.command.documents import Document, PodManifest
    from webhook.command.result import Result

_HOOK = importlib.resources.files("webhook.python") / "sitecustomize.py"


def main(
    arguments: Sequence[str], environ: Mapping[str, str], stdin: TextIO, stdout: TextIO
) -> int:
    """
    Print what would happen; 1 where a pod would be refused.

    Raises:
        InvalidError: the call or a manifest cannot be read.

    """
    chosen = parse(arguments)
    policy = policy_for(chosen, environ, _HOOK.read_text(encoding="utf-8"))
    mode = read_mode(chosen.mode, "--mode")
    namespace = namespace_of(chosen)
    fleet = Fleet(())
    documents: list[Document] = []
    results: list[Result] = []
    for source in chosen.filename:
        read = read_documents(_text(source, stdin), source)
        documents += read
        for found in pods_in(read, source):
            with _named(found):
                results.append(result_for(found, mode, namespace, fleet, policy))
    stdout.write(_rendered(results, documents, chosen.output, mode))
    return 1 if any(result.refused for result in results) else 0


@contextmanager
def _named(found: PodManifest) -> Iterator[None]:
    """
    Say of a mistake in which file, document and pod it is.
    """
    try:
        yield
    except InvalidError as error:
        field = f"{found.where}: {found.title} {error.problem.field}"
        raise InvalidError(error.problem._replace(field=field)) from error


def _text(source: str, stdin: TextIO) -> str:
    if source == "-":
        return stdin.read()
    try:
        return Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text in UTF-8"
        raise InvalidError(
            Problem("-f", source, f"cannot be read: {reason}", "name a manifest, or - for stdin")
        ) from error


def _rendered(results: list[Result], documents: list[Document], form: str, mode: Mode) -> str:
    """
    Render all results; one pod alone is rendered without a list around it.
    """
    if form == "explain":
        return "\n".join(explain(result, mode) for result in results)
    if form == "yaml":
        for result in results:
            with_pod(result.found, result.pod)
        manifests = [document.manifest for document in documents]
        return yaml.safe_dump_all(manifests, sort_keys=False, width=1000)
    if form == "patch":
        found: list[object] = [result.operations for result in results]
    else:
        found = [result.as_json() for result in results]
    return json.dumps(found[0] if len(found) == 1 else found, indent=2) + "\n"
