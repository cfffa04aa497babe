"""
`why POD|OWNER`, `why --last N`: how pods ended that are gone.

GpufenceError
└── MissingError     there is no such record, or none may be read
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from gpufence.records import record_object
from kubectl_gpufence.arguments import add_output, add_scope, owner, pod_name
from kubectl_gpufence.verbs.why.find import find
from kubectl_gpufence.verbs.why.story import refused_story, story

if TYPE_CHECKING:
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.pods import SeenEvent
    from kubectl_gpufence.reader import ClusterReader
    from kubectl_gpufence.verbs.why.story import FoundRecord

EXAMPLES: Final = """\
examples:
  kubectl gpufence why trainer-0              how it ended, or what it held in the last ten minutes
  kubectl gpufence why deploy/worker          how its pods ended last, though it may be gone
  kubectl gpufence why --last 3 -A            the last ends of all namespaces

It asks the agents, and reads ConfigMaps gpufence-why-NODE where they do not answer. Pods that were
rejected never ran: `why deploy/NAME` shows the refusal, from its owner's Events.
"""
_MOST_LAST: Final = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    help_text = "a pod's name, or deploy/NAME and the like, of pods that are gone"
    parser.add_argument("pod", metavar="POD|OWNER", type=_named, nargs="?", help=help_text)
    parser.add_argument("--last", type=_count, metavar="N", help="show the last N ends")
    add_scope(parser)
    add_output(parser, "text", "json")
    parser.set_defaults(refusal=_refusal)


def _refusal(call: argparse.Namespace) -> str:
    return "" if call.pod or call.last else "name a pod or an owner, or say --last N"


def _named(text: str) -> str:
    """Read a pod's name, with or without `pod/`, or an owner's."""
    short = text.removeprefix("pods/").removeprefix("pod/")
    return owner(short) if "/" in short else pod_name(short)


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text[:9]) <= _MOST_LAST:
        return int(text)
    raise argparse.ArgumentTypeError(f'"{text}" is no number from 1 to {_MOST_LAST}')


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Tell how pods ended, the last end first.

    Raises:
        MissingError: there is no record of what was named.
    """
    records, notes, refused = find(call.namespace, call.pod or "", reader)
    shown = records[: call.last or 1]
    if call.output == "json":
        output.json(
            {
                "v": 1,
                "records": [_document(each) for each in shown],
                "refused": [_refused(each) for each in refused],
                "notes": notes,
            }
        )
        return 0
    stories = [story(each, output.display) for each in shown]
    if refused:
        newer = not shown or refused[-1].at > shown[0].record.at
        stories.insert(0 if newer else len(stories), refused_story(refused, output.display))
    for place, lines in enumerate(stories):
        output.lines([*([""] if place else []), *lines])
    left = len(records) - len(shown)
    if left and not call.last:
        notes = [*notes, f"it ended {left} more times: --last {len(records)} shows all"]
    output.notes(notes)
    return 0


def _document(found: FoundRecord) -> dict[str, object]:
    return {"node": found.node, **record_object(found.record)}


def _refused(event: SeenEvent) -> dict[str, object]:
    return {"about": event.about, "at": event.at, "times": event.times, "message": event.message}
