"""
How an outcome is written down: as what differs from the base.

`base.json` says once what a container is told that says nothing itself: each row's variable, form
and value, made from one of three figures. A golden file names those three for each container, and
in full only the rows that differ. So a new framework is a row in the base and a golden of its own.
"""

import json
from pathlib import Path
from typing import Any

BASE: dict[str, dict[str, str]] = json.loads(
    Path(__file__).with_name("base.json").read_text(encoding="utf-8")
)
FIGURES = {
    "fraction": ("GPUFENCE_MEMORY_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"),
    "bytes": ("GPUFENCE_MEMORY_LIMIT_BYTES",),
    "tensorflow": ("GPUFENCE_TF_FRACTION",),
}
"""Which row shows a figure, the first that is there and holds our own value."""

AS_IN_BASE = "(as in the base)"
SITE_LINES = "(the hook's line in each site folder)"
_SLOTS = "env.gpufence.io/"
_PATH = f"metadata.annotations['{_SLOTS}%s']"
Values = dict[tuple[str, str], str]
"""Texts by container and variable."""


class Printer:
    """Writes down one outcome: its plan, its operations, and what a binding of the pod gets."""

    def __init__(self, plan: dict[str, Any], values: dict[str, str]) -> None:
        self._plan = plan
        self._readers = {
            item["slot"]: (name, item["env"])
            for name, container in plan["containers"].items()
            for item in container["settings"]
            if item["slot"]
        }
        self._values = self._by_reader(values)
        self._plain: dict[str, str] = {}  # variables by their slots

    def plan(self) -> dict[str, Any]:
        containers = {
            name: self._container(name, container)
            for name, container in self._plan["containers"].items()
        }
        return {**self._plan, "containers": containers}

    def operations(self, operations: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the operations, those of rows as in the base as one where they are in a row."""
        printed: list[dict[str, Any]] = []
        for operation in operations:
            path = operation["path"]
            shown = dict(operation)
            if path.endswith("gpufence.io~1plan"):
                shown["value"] = "(the plan)"
            elif isinstance(operation.get("value"), dict | list):
                shown["value"] = self._collapsed(operation["value"])
            if self._is_plain(path) or shown.get("value") in self._plain_entries():
                shown["path"] = path.partition("/env.gpufence.io")[0]
                shown["value"] = AS_IN_BASE
            if _is_site_line(operation.get("value")):
                shown["value"] = SITE_LINES
            marked = shown.get("value") in (AS_IN_BASE, SITE_LINES)
            if not printed or printed[-1] != shown or not marked:
                printed.append(shown)
        return printed

    def binding(self, annotations: dict[str, str]) -> dict[str, Any]:
        """Return what a binding gets, by container where it is a value of one."""
        slots = {key: text for key, text in annotations.items() if key.startswith(_SLOTS)}
        values = self._by_reader(slots)
        shown: dict[str, Any] = {
            key: text
            for key, text in annotations.items()
            if key not in slots and key != "gpufence.io/plan"
        }
        for name in dict.fromkeys(container for container, _ in values):
            own = {env: text for (container, env), text in values.items() if container == name}
            figures = {
                figure: text
                for figure, rows in FIGURES.items()
                for text in [next((own[env] for env in rows if env in own), None)]
                if text is not None
            }
            differing = {env: text for env, text in own.items() if text != _text(env, figures)}
            shown[name] = {**figures, **differing}
        return shown

    def _container(self, name: str, container: dict[str, Any]) -> dict[str, Any]:
        rows = {item["env"]: self._row(name, item) for item in container["settings"]}
        figures = {
            figure: row
            for figure, names in FIGURES.items()
            for row in [next((rows[env] for env in names if _is_ours(rows.get(env))), None)]
            if row is not None
        }
        differing = {env: row for env, row in rows.items() if row != _expected(env, figures)}
        plain = len(differing) < len(rows)
        slots = {item["slot"]: item["env"] for item in container["settings"]}
        self._plain |= {slot: env for slot, env in slots.items() if env not in differing}
        missing = dict.fromkeys(
            env
            for env, row in BASE.items()
            if plain and env not in rows and row.get("figure", "fraction") in figures
        )
        return {**container, **figures, "settings": {**differing, **missing}}

    def _row(self, name: str, item: dict[str, Any]) -> dict[str, Any]:
        """Return a setting as far as it says anything, with its value in place of its slot."""
        row = {key: text for key, text in item.items() if text is not None and key != "env"}
        if row.pop("slot"):
            row["value"] = self._values[name, item["env"]]
        return row

    def _collapsed(self, value: dict[str, Any] | list[Any]) -> dict[str, Any] | list[Any]:
        """Return what an operation adds, with one mark for all rows as in the base."""
        if isinstance(value, list):
            plain = self._plain_entries()
            marked = [AS_IN_BASE if entry in plain else entry for entry in value]
            marked = [SITE_LINES if _is_site_line(entry) else entry for entry in marked]
            return [item for at, item in enumerate(marked) if at == 0 or item != marked[at - 1]]
        if "gpufence.io/plan" in value:
            value = {**value, "gpufence.io/plan": "(the plan)"}
        kept = {key: text for key, text in value.items() if not self._is_plain(f"/{key}")}
        return kept if len(kept) == len(value) else {"env.gpufence.io": AS_IN_BASE, **kept}

    def _plain_entries(self) -> list[dict[str, Any]]:
        return [
            {"name": env, "valueFrom": {"fieldRef": {"fieldPath": _PATH % slot}}}
            for slot, env in self._plain.items()
        ]

    def _is_plain(self, path: str) -> bool:
        _, found, key = path.replace("~1", "/").partition(f"/{_SLOTS}")
        return bool(found) and key in self._plain

    def _by_reader(self, annotations: dict[str, str]) -> Values:
        found = {key.partition("/")[2]: text for key, text in annotations.items()}
        return {reader: found[slot] for slot, reader in self._readers.items() if slot in found}


def _is_site_line(value: object) -> bool:
    return isinstance(value, dict) and value.get("subPath") == "gpufence.pth"


def _is_ours(row: dict[str, Any] | None) -> bool:
    return row is not None and "user" not in row and row["done"] in ("set", "planned")


def _expected(env: str, figures: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """Return a row as the base has it, with this container's figures; None where it has none."""
    row = BASE.get(env)
    done = {item["done"] for item in figures.values()}
    if row is None or len(done) != 1:
        return None
    source = figures.get(row.get("figure", "")) if "figure" in row else {"done": done.pop()}
    if source is None:
        return None
    expected = {**source, "form": row["form"]}
    if any("value" in item for item in figures.values()):
        texts = {figure: item.get("value", "") for figure, item in figures.items()}
        expected["value"] = _text(env, texts)
    return expected


def _text(env: str, figures: dict[str, str]) -> str | None:
    """Return a row's value as the base has it; None where the base does not say."""
    row = BASE.get(env)
    if row is None:
        return None
    if "figure" not in row:
        return row["value"]
    text = figures.get(row["figure"])
    if not text:
        return text
    unit = int(row.get("unit", "1"))
    return row["value"].format(text if unit == 1 else max(int(text) // unit, 1))
