"""What `recommend` shows, each a file of tests/golden/plugin."""

import json
from collections.abc import Callable

from gpufence import names
from gpufence.dialects import Units
from gpufence.need import Confidence, NeedKey, NeedSummary
from gpufence.quantity import GIB, MIB
from gpufence.shape import Object
from kubectl_gpufence.verbs.recommend import patch_lines
from kubectl_gpufence.verbs.recommend.lines import NEED_FIELDS, chosen, need_listing
from kubectl_gpufence.verbs.recommend.patches import NodeWords, OwnerPatch, patch_of
from kubectl_gpufence.view import Display, Rows, csv_lines, records
from tests.support.needs import NEED_KEY, need_summary

TERMINAL = Display(width=100)


def recommended() -> list[NeedSummary]:
    """Build needs of every confidence, and what stands against a target."""
    plain = need_summary()
    batch = NeedKey("vision", "CronJob", "nightly", "train", "NVIDIA A100-SXM4-40GB")
    return [
        plain,
        need_summary(
            key=batch,
            peak_bytes=11 * GIB,
            target_bytes=16_384 * MIB,
            limit_bytes=12 * GIB,
            confidence=Confidence.MEDIUM,
            evictions=2,
            out_of_memory=1,
        ),
        need_summary(
            key=NEED_KEY._replace(name="tagger"),
            target_bytes=None,
            capped=True,
            limit_bytes=6 * GIB,
        ),
        need_summary(
            key=NeedKey("speech", "Job", "once", "main", "Tesla T4"),
            target_bytes=None,
            confidence=Confidence.LOW,
            held_seconds=4000.0,
            limit_bytes=None,
        ),
        need_summary(
            key=NeedKey("speech", "ReplicaSet", 'web", "7d9', "main", "Tesla T4"),
            target_bytes=None,
            confidence=Confidence.LOW,
        ),
    ]


def patched() -> list[OwnerPatch]:
    """Patch an owner that counts in units of gpushare, and one that asks for a card."""
    words = NodeWords(Units(), 15 * GIB)
    server = {"name": "server", "resources": {"limits": {names.GPUSHARE_MEMORY: "8"}}}
    train = {"name": "train", "resources": {"limits": {names.NVIDIA_GPU: "1"}}}
    templates = [{"template": {"spec": {"containers": [each]}}} for each in (server, train)]
    raw: list[Object] = [
        {"spec": templates[0]},
        {"spec": {"jobTemplate": {"spec": templates[1]}}},
    ]
    made = (patch_of([recommended()[at]], raw[at], words)[0] for at in range(2))
    return [patch for patch in made if patch is not None]


def needs(namespace: str) -> Rows[NeedSummary]:
    return need_listing(chosen(recommended(), namespace), namespace, "agents", ())


NEED_CASES: dict[str, Callable[[], list[str]]] = {
    "recommend-typical": lambda: needs("").table(Display(width=120), wide=False),
    "recommend-one": lambda: needs("vision").table(TERMINAL, wide=False),
    "recommend-csv": lambda: csv_lines(NEED_FIELDS, recommended()),
    "recommend-json": lambda: json.dumps(
        records(NEED_FIELDS, recommended())[1], indent=2
    ).splitlines(),
    "recommend-patch": lambda: patch_lines(patched(), together=False),
    "recommend-kustomize": lambda: patch_lines(patched(), together=True),
}
