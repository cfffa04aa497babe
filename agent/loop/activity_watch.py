"""The part of a tick that finds out who is busy and who is idle, and has pods say so."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from agent.activity import NOTHING_SAID, conditions, pids_to_read, strangers, watched
from agent.model.activity import NO_ACTIVITY, Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.activity import Said
    from agent.model.activity import ActivityMemory, ActivityPolicy
    from agent.model.use import Observation
    from agent.ports import ClusterPort, Processes

_log = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 1.0
"""Between two looks at what pods shall say: nothing there is younger."""
_QUIET_SECONDS: Final = 5.0
"""The same while nothing happens but that time passes."""


class ActivityWatch:
    """
    Owns what is remembered of everybody's work. The kernel is asked only about cards that have
    something new to say, which is every few seconds.
    """

    def __init__(
        self,
        processes: Processes,
        cluster: ClusterPort,
        clock: Callable[[], float],
        policy: ActivityPolicy,
    ) -> None:
        self._processes = processes
        self._cluster = cluster
        self._clock = clock
        self._policy = policy
        self._memory = NO_ACTIVITY
        self._said: Mapping[str, Said] = NOTHING_SAID
        self._said_at = clock()

    def look(self, observation: Observation) -> ActivityMemory:
        """
        Take in one observation of the node.

        A bug in it is logged and makes everybody unknown: the fence does not depend on it.
        """
        try:
            return self._look(observation)
        except Exception:  # noqa: BLE001 - fencing has to go on
            _log.exception("who is busy could not be found out; everybody is unknown by it")
            self._memory = NO_ACTIVITY
            return self._memory

    def _look(self, observation: Observation) -> ActivityMemory:
        unknown = strangers(observation, self._memory)
        wanted = pids_to_read(observation, self._memory)
        witness = Witness(
            at=self._clock(),
            cpu=self._processes.cpu_times(wanted) if wanted else {},
            strangers=self._processes.occupants(unknown) if unknown else {},
        )
        now = self._clock()
        before = self._memory
        self._memory = watched(observation, witness, before, policy=self._policy, now=now)
        pause = _QUIET_SECONDS if self._memory is before else _PAUSE_SECONDS
        if now - self._said_at >= pause:
            self._said_at = now
            self._say(observation, now)
        return self._memory

    def _say(self, observation: Observation, now: float) -> None:
        pods = observation.pods
        changes, self._said = conditions(pods, self._memory, self._said, self._policy, now)
        if changes:
            self._cluster.say_idle(changes)
