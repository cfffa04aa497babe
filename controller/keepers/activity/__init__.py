"""How busy an owner is, for whoever scales it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from controller.keepers import Shelf
from controller.keepers.activity.pages import ActivityPages, ApiUsers
from gpufence.setting_kinds import choice
from gpufence.settings import setting

if TYPE_CHECKING:
    from controller.keepers import Core


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivitySettings:
    """Who is answered."""

    auth: str = field(
        default="token",
        metadata=setting(
            "GPUFENCE_ACTIVITY_AUTH",
            "who may ask `/v1/activity/`: `token` (whoever's token may get the owner's `scale`), "
            "or `none` (whoever reaches the port)",
            kind=choice(("token", "none")),
        ),
    )


def _build(core: Core, settings: ActivitySettings) -> ActivityPages:
    return ActivityPages(core, None if settings.auth == "none" else ApiUsers(core.client))


ACTIVITY: Final = Shelf("activity", "", ActivitySettings, _build)
