"""The shared test vectors of tests/data/pods.json, as the tests of every part read them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufence.candidates import CandidateCard
from gpufence.cards import read_capability
from gpufence.dialects import Units
from gpufence.quantity import UNIT_BYTES, read_bytes

_FILE = Path(__file__).parents[1] / "data" / "pods.json"


@dataclass(frozen=True)
class Vector:
    name: str
    pod: dict[str, Any]
    namespace: dict[str, str]
    card: CandidateCard
    expected: dict[str, Any]


def vectors() -> list[Vector]:
    return [_vector(row) for row in json.loads(_FILE.read_text(encoding="utf-8"))]


def _vector(row: dict[str, Any]) -> Vector:
    place = row["place"]
    units = place.get("units", {})
    return Vector(
        name=row["name"],
        pod=row["pod"],
        namespace=row.get("namespace", {}),
        card=CandidateCard(
            units=Units(
                gpushare_bytes=UNIT_BYTES.get(units.get("gpushare", "GiB")),
                volcano_factor=units.get("volcano", 1),
                clients=units.get("clients"),
            ),
            memory_bytes=read_bytes(place["card"], "card") if "card" in place else None,
            compute_capability=read_capability(place.get("cc", "")),
        ),
        expected=row["expected"],
    )
