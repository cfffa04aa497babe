"""Runs that overlap, lag and die in any order never break a handshake."""

from dataclasses import replace
from functools import lru_cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from certs.bundle import read_bundle
from certs.ensure import Run, RunOptions, TrustMode
from certs.material import KeyPair, WaitSettings
from tests.property.certs.stage import Actor
from tests.support.certs import (
    NAMES,
    NOW,
    FakeClock,
    FakeFleet,
    installed,
    is_trusted,
    is_whole,
    unheard,
    world,
)
from tests.support.running import examples

ACTORS, REPLICAS = 3, 2
PATIENCE = WaitSettings(settle_seconds=5.0, wait_seconds=3.0)
KINDS = (
    RunOptions(force_ca=True),
    RunOptions(),
    RunOptions(force_leaf=True),
    RunOptions(trust=TrustMode.CHECK),
    RunOptions(force_ca=True),
)
STEP, KILL, PULL, SEE = "step", "kill", "pull", "see"

moves = st.one_of(
    st.tuples(st.just(STEP), st.integers(0, ACTORS - 1), st.integers(1, 14)),
    st.tuples(st.just(STEP), st.integers(0, ACTORS - 1), st.integers(1, 4)),
    st.tuples(st.just(KILL), st.integers(0, ACTORS - 1), st.just(1)),
    st.tuples(st.just(PULL), st.integers(0, REPLICAS - 1), st.just(1)),
    st.tuples(st.just(SEE), st.just(0), st.just(1)),
)


@lru_cache(maxsize=4096)
def trusts(certificate: bytes, bundle: bytes) -> bool:
    return is_trusted(certificate, bundle) if certificate else True


class Theatre:
    """A cluster that works, with replicas and an API server that see changes late."""

    def __init__(self) -> None:
        self.api = installed("cap.pods.gpufence.io")
        self.fleet = FakeFleet(self.api, REPLICAS, eager=False)
        Run(world(self.api, FakeClock(NOW), self.fleet), NAMES, RunOptions(), unheard).ensure()
        self.fleet.pull_all()
        self.seen = b""
        self.see()
        self._kinds = 0
        self.actors = [self._actor() for _ in range(ACTORS)]

    def see(self) -> None:
        """Let the API server's cache catch up."""
        self.seen = self.api.bundles()[0]

    def play(self, move: str, who: int) -> None:
        if move == STEP:
            if self.actors[who].is_over:
                self.actors[who] = self._actor()
            self.actors[who].step()
        elif move == KILL:
            self.actors[who].kill()
            self.actors[who] = self._actor()
        elif move == PULL:
            self.fleet.pull(who)
        else:
            self.see()

    def end(self) -> None:
        """Let all runs end while replicas and API server keep up."""
        while not all(actor.is_over for actor in self.actors):
            for actor in self.actors:
                actor.step()
                self.check()
            self.fleet.pull_all()
            self.see()
            self.check()

    def check(self) -> None:
        """Every replica's certificate is trusted by what the API server sees at this moment."""
        for pair in self.fleet.serving:
            assert pair is not None
            assert trusts(signed_part(pair), self.seen)
        assert trusts(signed_part(self.api.leaf()), self.api.bundles()[0])

    def close(self) -> None:
        for actor in self.actors:
            actor.kill()

    def _actor(self) -> Actor:
        options = replace(
            KINDS[self._kinds % len(KINDS)], patience=PATIENCE, endpoints=self.fleet.endpoints
        )
        self._kinds += 1
        return Actor(self.api, self.fleet, options, self.see)


def signed_part(pair: KeyPair) -> bytes:
    return pair.certificate if is_whole_cached(pair) else b""


@lru_cache(maxsize=4096)
def is_whole_cached(pair: KeyPair) -> bool:
    return is_whole(pair)


def play_out(script: list[tuple[str, int, int]]) -> Theatre:
    """Play a script, checking after every step, and let all runs end."""
    theatre = Theatre()
    try:
        for move, who, times in script:
            for _ in range(times):
                theatre.play(move, who)
                theatre.check()
        theatre.end()
    finally:
        theatre.close()
    return theatre


def assert_put_right_by_one_more_run(theatre: Theatre) -> None:
    fleet = FakeFleet(theatre.api)
    options = RunOptions(endpoints=fleet.endpoints)
    Run(world(theatre.api, FakeClock(NOW), fleet), NAMES, options, unheard).ensure()
    bundle = read_bundle(theatre.api.bundles()[0])

    assert [None] * ACTORS == [actor.failure for actor in theatre.actors]
    assert bundle.trusts_only(theatre.api.authority().certificate)
    assert is_trusted(theatre.api.leaf().certificate, bundle.pem)


SCRIPTS = st.lists(moves, min_size=1, max_size=40)


@given(SCRIPTS)
@examples(60)
# Found by the soak below when the CA was not read again before an overlap was ended, when the CA
# was read before the leaf, and when only who had changed the bundle gave the API servers time.
@example([(STEP, 0, 9), (STEP, 1, 9), (PULL, 0, 1), (PULL, 1, 1), (STEP, 0, 30), (STEP, 1, 3)])
@example([(STEP, 0, 1), (STEP, 1, 1), (STEP, 0, 6)])
@example([(STEP, 0, 5), (KILL, 0, 1), (STEP, 1, 6), (PULL, 0, 1)])
def test_no_interleaving_breaks_trust(script: list[tuple[str, int, int]]) -> None:
    """Three runs that rotate, lag and are killed in any order keep every served leaf trusted."""
    assert_put_right_by_one_more_run(play_out(script))


@pytest.mark.soak
@given(SCRIPTS)
@examples(2000)
def test_no_interleaving_of_thousands_breaks_trust(script: list[tuple[str, int, int]]) -> None:
    """The same over thousands of orders."""
    assert_put_right_by_one_more_run(play_out(script))
