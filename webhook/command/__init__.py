"""
`gpufence-webhook rewrite`: what would happen to a manifest's pods, without a cluster.

The quickest way to see what gpufence does, and a check for pipelines. It runs the webhook's own
code; the card that a scheduler would choose is the one named by the call.
"""

from __future__ import annotations

import importlib.resources
import json
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import yaml

from gpufence import names
from gpufence.errors import InvalidError, Problem
from gpufence.mode import read_mode
from gpufence.quantity import read_bytes
from gpufence.settings import read_settings
from webhook.command.documents import pods_in, read_documents, unseen_in, unseen_text
from webhook.command.result import explain, result_for, unseen_json
from webhook.fleet import Fleet
from webhook.settings import PodSettings, card_capability

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from gpufence.mode import Mode
    from webhook.command.documents import Document, PodManifest
    from webhook.command.result import Result
    from webhook.policy import WebhookPolicy

_MANIFESTS = (".yaml", ".yml", ".json")
_HOOK = importlib.resources.files("webhook.python") / "sitecustomize.py"


def show_rewrite(
    arguments: argparse.Namespace, environ: Mapping[str, str], stdin: TextIO, stdout: TextIO
) -> int:
    """
    Print what would happen; 1 where a pod would be refused, or warned about if that is strict.

    Raises:
        InvalidError: the call or a manifest cannot be read.

    """
    if arguments.gpushare_unit is not None:
        environ = {**environ, names.GPUSHARE_UNIT: arguments.gpushare_unit}
    if arguments.driver_limits is not None:
        environ = {**environ, names.DRIVER_SETTING: arguments.driver_limits}
    policy = _policy(arguments, environ, _HOOK.read_text(encoding="utf-8"))
    mode = read_mode(arguments.mode, "--mode")
    namespace = _namespace(arguments)
    fleet = Fleet(())
    documents: list[Document] = []
    results: list[Result] = []
    for source in arguments.filename:
        read = _documents(source, stdin)
        documents += read
        for found in pods_in(read, source):
            with _named(found):
                results.append(result_for(found, mode, namespace, fleet, policy))
    stdout.write(_rendered(results, documents, arguments.output, mode))
    return int(any(each.refused or (arguments.strict and each.warnings) for each in results))


@contextmanager
def _named(found: PodManifest) -> Iterator[None]:
    """Name the file, document and pod of a mistake."""
    try:
        yield
    except InvalidError as error:
        field = f"{found.where}: {found.title} {error.problem.field}"
        raise InvalidError(error.problem._replace(field=field)) from error


def _documents(source: str, stdin: TextIO) -> list[Document]:
    """Read one file, or every manifest of a folder as kubectl does."""
    if source != "-" and Path(source).is_dir():
        files = sorted(path for path in Path(source).iterdir() if path.suffix in _MANIFESTS)
        return [
            document
            for path in files
            for document in read_documents(_text(str(path), stdin), str(path), lenient=True)
        ]
    return read_documents(_text(source, stdin), source)


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
    """Render all results; one pod alone is rendered without a list around it."""
    if form == "explain":
        return "\n".join(
            [
                *(explain(result, mode) for result in results),
                *(f"{unseen_text(document)}\n" for document in unseen_in(documents)),
            ]
        )
    if form == "yaml":
        for result in results:
            result.found.template.put_back(result.pod)
        manifests = [document.manifest for document in documents]
        return yaml.safe_dump_all(manifests, sort_keys=False, width=1000)
    if form == "patch":
        found: list[object] = [result.operations for result in results]
    else:
        found = [result.as_json() for result in results]
        found += [unseen_json(document) for document in unseen_in(documents)]
    return json.dumps(found[0] if len(found) == 1 else found, indent=2) + "\n"


def _policy(arguments: argparse.Namespace, environ: Mapping[str, str], hook: str) -> WebhookPolicy:
    """Combine the settings of the environment with what the call says about the card."""
    policy = read_settings(PodSettings, environ).policy(hook)
    default = policy.default
    if arguments.card is not None:
        memory = read_bytes(arguments.card, "--card")
        if not memory:
            raise InvalidError(Problem("--card", arguments.card, "is no card", "such as 15360Mi"))
        default = default._replace(memory_bytes=memory)
    if arguments.compute_capability is not None:
        capability = card_capability(arguments.compute_capability, "--compute-capability")
        default = default._replace(compute_capability=capability)
    return replace(policy, default=default)


def _namespace(arguments: argparse.Namespace) -> dict[str, str]:
    """Read the annotations of the namespace."""
    found = {}
    for text in arguments.namespace_annotation:
        key, equals, value = text.partition("=")
        if not (key and equals):
            remedy = f"write key=value, such as {names.MEMORY}=6Gi"
            raise InvalidError(Problem("--namespace-annotation", text, "has no value", remedy))
        found[key] = value
    return found
