"""Runs that die or meet at any moment, on whatever is stored, for ten years."""

import base64
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import example, given
from hypothesis import strategies as st

from certs.bundle import normal, read_bundle
from certs.ensure import Run, RunOptions, TrustMode
from certs.facts import look_at, signers_of
from certs.issue import CA_DAYS, LEAF_DAYS, issue_ca
from certs.material import DAY, KeyPair, WaitSettings
from certs.ports import NeedsInstallError, Replica, Served, World
from certs.renewal import Keep, RenewCA, RenewLeaf, decide
from gpufence.errors import GpufenceError
from kube import JsonObject, KubeError, Listing, PatchType
from tests.support.certs import (
    CA,
    CONFIGURATION,
    LEAF,
    NAMES,
    NOW,
    FakeApi,
    FakeClock,
    FakeFleet,
    ca_and_leaf,
    installed,
    is_trusted,
    is_whole,
    unheard,
    world,
)
from tests.support.running import examples

PATIENCE_SECONDS = 30.0


class KilledError(BaseException):
    """What SIGKILL is to a process: no handler of the product's sees it."""


class Actor:
    """One run that stands still before every call to the world until it is to take the step."""

    def __init__(
        self, api: FakeApi, fleet: FakeFleet, options: RunOptions, settled: Callable[[], None]
    ) -> None:
        self.api = api
        self.failure: GpufenceError | None = None
        self.is_over = False
        self._fleet = fleet
        self._clock = FakeClock(NOW)
        self._settle_seconds = options.patience.settle_seconds
        self._settled = settled
        self._go, self._still = threading.Semaphore(0), threading.Semaphore(0)
        self._killed = False
        world = World(self, self, self._ask)
        self._run = Run(world, NAMES, options, lambda _text: None)
        threading.Thread(target=self._play, daemon=True).start()
        self._wait_until_still()

    def step(self) -> None:
        """Let the run take one step, and return when it stands still again or is over."""
        if not self.is_over:
            self._go.release()
            self._wait_until_still()

    def kill(self) -> None:
        self._killed = True
        self.step()

    def get(self, path: str) -> JsonObject:
        self._turn()
        return self.api.get(path)

    def list(self, path: str, query: Mapping[str, str | int] | None = None) -> Listing[JsonObject]:
        self._turn()
        return self.api.list(path, query)

    def post(self, path: str, body: JsonObject) -> JsonObject:
        self._turn()
        return self.api.post(path, body)

    def patch(
        self, path: str, body: JsonObject | Sequence[JsonObject], patch_type: PatchType
    ) -> JsonObject:
        self._turn()
        return self.api.patch(path, body, patch_type)

    def delete(self, path: str, body: JsonObject | None = None) -> JsonObject:
        self._turn()
        return self.api.delete(path, body)

    def now(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def chance(self) -> float:
        return self._clock.chance()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)
        self._turn()
        if seconds >= self._settle_seconds:
            self._settled()

    def _ask(self, endpoints: Sequence[Replica], name: str) -> tuple[Served, ...]:
        self._turn()
        return self._fleet.ask(endpoints, name)

    def _turn(self) -> None:
        self._still.release()
        if not self._go.acquire(timeout=PATIENCE_SECONDS) or self._killed:
            raise KilledError

    def _play(self) -> None:
        try:
            self._run.ensure()
        except (KilledError, NeedsInstallError):
            pass  # the latter has written nothing
        except KubeError as error:
            self.failure = error
        finally:
            self.is_over = True
            self._still.release()

    def _wait_until_still(self) -> Any:
        assert self._still.acquire(timeout=PATIENCE_SECONDS), "a run hangs"


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


AUTHORITY, PAIR = ca_and_leaf()
DER = x509.load_pem_x509_certificate(PAIR.certificate).public_bytes(Encoding.DER)
CERTIFICATES = [AUTHORITY.certificate, PAIR.certificate, issue_ca(NOW).certificate]


def flipped(places: list[tuple[int, int]]) -> bytes:
    """Return the leaf with some bytes changed inside, still PEM."""
    der = bytearray(DER)
    for position, mask in places:
        der[position] ^= mask
    body = base64.encodebytes(bytes(der))
    return b"-----BEGIN CERTIFICATE-----\n" + body + b"-----END CERTIFICATE-----\n"


flips = st.lists(st.tuples(st.integers(0, len(DER) - 1), st.integers(1, 255)), max_size=4)
texts = st.one_of(
    st.binary(max_size=80),
    st.sampled_from(
        [*CERTIFICATES, AUTHORITY.key, PAIR.key, b"", b"-----BEGIN CERTIFICATE-----\n"]
    ),
    flips.map(flipped),
)
mixed = st.lists(texts, max_size=4).map(b"".join)


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@given(mixed, mixed, mixed)
def test_any_leaf_leads_to_a_decision(certificate: bytes, key: bytes, beside: bytes) -> None:
    """Any text in the leaf's Secret is kept or renewed, and only the leaf we issued is kept."""
    renewal = decide(look_at(AUTHORITY, KeyPair(certificate, key), beside), NAMES.all, NOW)

    assert isinstance(renewal, (Keep, RenewLeaf))
    if isinstance(renewal, Keep):
        assert x509.load_pem_x509_certificate(certificate).public_bytes(Encoding.DER) == DER


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@given(mixed, mixed)
def test_any_ca_leads_to_a_decision(certificate: bytes, key: bytes) -> None:
    """Any text in the CA's Secret is kept or renewed."""
    renewal = decide(
        look_at(KeyPair(certificate, key), PAIR, AUTHORITY.certificate), NAMES.all, NOW
    )

    assert isinstance(renewal, (Keep, RenewLeaf, RenewCA))


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@given(mixed)
def test_any_bundle_is_sorted_out(text: bytes) -> None:
    """Any text is read as a bundle whose own text reads back the same, without what was refused."""
    bundle = read_bundle(text)
    again = read_bundle(bundle.pem)

    assert (bundle.ours, bundle.foreign, ()) == (again.ours, again.foreign, again.refused)
    assert b"PRIVATE" not in bundle.pem
    assert set(normal(text)) == {*bundle.ours, *bundle.foreign}


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@given(mixed)
def test_a_signer_is_one_of_the_candidates(text: bytes) -> None:
    """Only a CA that was offered can be found to have signed something."""
    assert set(signers_of(text, (AUTHORITY.certificate,))) <= {AUTHORITY.certificate}


YEARS_DAYS = 3660


def expiry(certificate: bytes) -> float:
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()


def test_ten_years_of_daily_runs() -> None:
    """
    Over ten years no replica serves a leaf that has expired or is not trusted, and every write is
    one that was due.
    """
    api, clock = installed("cap.pods.gpufence.io"), FakeClock(NOW)
    fleet = FakeFleet(api, size=1)
    options = RunOptions(endpoints=fleet.endpoints)
    least_days, mistrusted = float(CA_DAYS), 0
    for day in range(YEARS_DAYS):
        clock.at = NOW + day * DAY
        # The day before is over: what is served now was served until this moment.
        for pair in filter(None, fleet.serving):
            left = expiry(pair.certificate) - clock.at
            least_days = min(least_days, left / DAY)
            mistrusted += not is_trusted(pair.certificate, api.bundles()[0])
        Run(world(api, clock, fleet), NAMES, options, lambda _text: None).ensure()
        fleet.pull_all()
    writes = Counter(api.writes)
    leaves = 1 + YEARS_DAYS // (LEAF_DAYS * 2 // 3)

    assert 0 == mistrusted
    assert LEAF_DAYS / 3 - 1 <= least_days
    assert 2 == writes[CA]
    assert 1 + 2 == writes[CONFIGURATION]
    assert writes[LEAF] <= leaves + 1
    assert read_bundle(api.bundles()[0]).trusts_only(api.authority().certificate)
