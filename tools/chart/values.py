"""The chart's values, their comments and their schema."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from agent.program import SETTINGS as AGENT_SETTINGS
from certs.settings import CertsSettings
from controller.program import SETTINGS as CONTROLLER_SETTINGS
from gpufence.event_text import MOST_HELP_URL
from gpufence.names import HELP_URL
from gpufence.setting_kinds import BOOLEAN, INTEGER, SECONDS
from gpufence.settings import rows
from tools import ROOT
from tools.chart.usual import usual_schema, usual_values
from tools.manifests import components
from tools.runbooks import WEBSITE
from webhook.settings import WebhookSettings

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from gpufence.setting_kinds import Row

_TABLE: Final = re.compile(r"^\| `([a-z0-9.-]+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")
_CHOSEN_BY_CLUSTER: Final = "kubernetes-1.30"
TEST_OF: Final = {
    _CHOSEN_BY_CLUSTER: '(include "gpufence.kubernetes130" .)',
    "driver-limits": '(ne (include "gpufence.driverLimits" .) "off")',
}
_WORDS: Final = {"driver-limits": ("off", "on", "labelled", "auto")}
"""Values that are words; YAML reads the first two as false and true, which mean the same."""
_WHOLE: Final = "^[0-9]*$"
_NUMBER: Final = "^([-+]?[0-9.]+([eE][-+]?[0-9]+)?)?$"
_SWITCH: Final = "^([01]|[Tt]rue|TRUE|[Ff]alse|FALSE|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF)?$"
_DIGEST: Final = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
SETTINGS: Final[dict[str, type]] = {
    "webhook": WebhookSettings,
    "agent": AGENT_SETTINGS,
    "certs": CertsSettings,
    "controller": CONTROLLER_SETTINGS,
}

_HEAD: Final = f"""\
# Written by `make chart`; docs/install.md says more of each.

image:
  # Required: your registry, and what else stands before the programs' names. With
  # registry.example.com/gpufence it is registry.example.com/gpufence/webhook. There is no public
  # registry of gpufence.
  registry: ""
  # The version of the chart, unless it is said.
  tag: ""
  # What each image is in that registry, in place of its tag: {{webhook: "sha256:..."}}. Files of it
  # are written by `make release IMAGES=1` and by `deploy/images/build --push --digests FILE`.
  digests: {{}}
  # Always, IfNotPresent or Never; null: as Kubernetes has it.
  pullPolicy: null

network:
  # Namespaces whose pods may read metrics and measured use: what scrapes, what scales by load, and
  # through which hosted API servers come.
  namespaces: [kube-system, monitoring, keda]
  # Addresses, as CIDRs, from which API servers on machines of their own come (docs/network.md).
  apiServers: []

# Where everything is; empty: the release's namespace, and gpufence-system for one in `default`.
namespace: ""

crds:
  # The kind GPUMemoryProfile, and all profiles with it, stay when value need becomes false and when
  # the release is removed.
  keep: true

# Secrets of that namespace with which images are fetched, as [{{name: mine}}]; `helm test` looks
# for them in the release's own namespace.
imagePullSecrets: []

# Where your copy of this project's docs/ can be read, to whose runbooks alerts lead. The project is
# at no public address yet, so this one leads nowhere.
website: {WEBSITE}

# Where your users find docs/my-pod.md: Events and refusals end with a link to the part of it that
# they are about.
helpUrl: ""

# Settings of the programs, docs/settings-*.md, as {{GPUFENCE_HOLD_SECONDS: "20"}}.
settings:
"""


def value_of(component: str) -> str:
    """Return the component's name among the values: `kubernetes-1.30` is `kubernetes130`."""
    first, *rest = component.replace(".", "").split("-")
    return first + "".join(word.capitalize() for word in rest)


def values_page() -> str:
    lines = [f"  {program}: {{}}" for program in SETTINGS]
    lines += usual_values().splitlines()
    for name, (does, when) in _told().items():
        lines += ["", f"# What: {does}.", f"# When: {when}."]
        chosen = name == _CHOSEN_BY_CLUSTER
        lines += ["# Unless it is said, what the cluster's version asks for."] if chosen else []
        words = _WORDS.get(name, ())
        lines += [f"# One of {', '.join(words)}."] if words else []
        lines += [f"{value_of(name)}: {'null' if chosen else words[0] if words else 'false'}"]
    return _HEAD + "\n".join(lines) + "\n"


def schema_page(base: Iterable[dict[str, Any]]) -> str:
    """Return the schema: what nobody knows is refused, as are settings that the manifests make."""
    taken = {*_variables(list(base)), HELP_URL}
    properties: dict[str, Any] = {
        "image": _object(
            {
                "registry": {"type": "string"},
                "tag": {"type": "string"},
                "digests": _object(dict.fromkeys(SETTINGS, _DIGEST)),
                "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never", None]},
            }
        ),
        "namespace": {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"},
        "network": _object(
            {
                "namespaces": {"type": "array", "items": {"type": "string"}},
                "apiServers": {"type": "array", "items": {"type": "string", "pattern": "/[0-9]+$"}},
            }
        ),
        "crds": _object({"keep": {"type": "boolean"}}),
        "imagePullSecrets": {
            "type": "array",
            "items": {**_object({"name": {"type": "string"}}), "required": ["name"]},
        },
        "website": {"type": "string", "pattern": "^https?://[^ ]+[^/ ]$"},
        "helpUrl": {"type": "string", "pattern": f"^(https?://[^ #@]{{1,{MOST_HELP_URL - 8}}})?$"},
        "settings": _object({name: _settings(of, taken) for name, of in SETTINGS.items()}),
        **usual_schema(),
        # Helm itself puts this in where the chart is part of another one.
        "global": {"type": "object"},
    }
    for name, (does, when) in _told().items():
        kinds = ["boolean", "null"] if name == _CHOSEN_BY_CLUSTER else "boolean"
        words = _WORDS.get(name, ())
        known = {"enum": [*words, True, False]} if words else {"type": kinds}
        properties[value_of(name)] = {**known, "description": f"{does}; when: {when}"}
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **_object(properties)}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _settings(of: type, taken: Container[str]) -> dict[str, Any]:
    """
    Return what may be set of a program, each by its name: Helm tells wrong names of nothing else.
    """
    known = {name: row for row in rows(of) for name in row.variables if name not in taken}
    return _object({name: _setting(row) for name, row in known.items()})


def _setting(row: Row) -> dict[str, Any]:
    """Return what the program itself would read: Helm refuses before anything is changed."""
    return {**_kind(row), "description": _plain(row.text)}


def _kind(row: Row) -> dict[str, Any]:
    if row.kind.words:
        return {"enum": [*row.kind.words, ""]}
    if row.kind is BOOLEAN:
        return {"type": ["boolean", "integer", "string"], "maximum": 1, "pattern": _SWITCH}
    if row.kind not in (INTEGER, SECONDS):
        return {"type": ["string", "number", "boolean"]}
    kind, pattern = ("integer", _WHOLE) if row.kind is INTEGER else ("number", _NUMBER)
    bounds = {"minimum": row.least, "maximum": row.most}
    return {"type": [kind, "string"], "pattern": pattern, **bounds}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _told() -> dict[str, tuple[str, str]]:
    """Return what each component changes, and when, as docs/install.md has it."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    rows = {name: (_plain(does), _plain(when)) for name, does, when in _TABLE.findall(page)}
    return {name: rows[name] for name in components()}


def _plain(text: str) -> str:
    words = _LINK.sub(r"\1", text).replace("**", "")
    for name in components():
        words = words.replace(f"`{name}`", value_of(name))
    return words.replace("`", "")


def _variables(node: Any) -> Iterable[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from value if key == "env" else _variables(value)
    elif isinstance(node, list):
        for value in node:
            yield from _variables(value)
