"""
PURE. Looking at those containers of a manifest that the terms are about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.frameworks.ask import How
from webhook.rewrite import hook
from webhook.rewrite.containers import first_free, see

if TYPE_CHECKING:
    from gpufence.shape import Object
    from webhook.rewrite.containers import Seen
    from webhook.rewrite.terms import Terms


def look_at(manifest: Object, terms: Terms, hook_source: str) -> tuple[list[Seen], int]:
    """
    Return the containers that ask for the GPU, and the first slot number nobody uses.
    """
    seen = see(manifest, terms.parts, terms.wishes)
    if terms.wishes.python_hook and terms.how is How.SET:
        seen = [_hooked(manifest, item, hook_source) for item in seen]
    return seen, first_free(seen)


def _hooked(manifest: Object, seen: Seen, source: str) -> Seen:
    obstacle = hook.obstacle(manifest, seen) if source else hook.NO_SOURCE
    return seen._replace(look=seen.look._replace(hook=obstacle))
