"""
Search for the worst scheme, or play one again: `python -m tests.adversary --help`.

Against the deciding half it takes an hour of the tenant's in a fifth of a second, against the
running agent (`--live`) a fifteenth of the time it stands for.
"""

import argparse
import random
import sys
import time
from contextlib import ExitStack
from functools import partial

from agent.model.policy import EvictionPolicy, EvictWhen
from tests.adversary import tricks
from tests.adversary.live import staged
from tests.adversary.live_play import LivePlay
from tests.adversary.search import Finding, Play, Search, told
from tests.adversary.stage import played

A_ROUND = 10


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to search (1)")
    parser.add_argument("--seconds", type=int, default=900, help="of a play (900)")
    parser.add_argument("--evict-when", type=EvictWhen, default=EvictWhen.ALWAYS, choices=EvictWhen)
    parser.add_argument("--live", action="store_true", help="against the running agent")
    parser.add_argument("--driver", action="store_true", help="live, with the driver's own limits")
    parser.add_argument("--replay", metavar="SCHEME", help="play this one and search nothing")
    options = parser.parse_args(arguments)
    with ExitStack() as undo:
        play: Play = partial(played, policy=EvictionPolicy(evict_when=options.evict_when))
        if options.live or options.driver:
            stage = undo.enter_context(staged(driver=options.driver))
            play = lambda scheme, seconds: LivePlay(stage, scheme, seconds).run()  # noqa: E731
        if options.replay:
            scheme = tricks.read(options.replay)
            found = [Finding(play(scheme, options.seconds), scheme)]
        else:
            found = _searched(Search(options.seed, options.seconds, play), options.minutes)
    print("\n".join(told(item) for item in found))
    return 1 if any(item.haul.broke_a_promise for item in found) else 0


def _searched(search: Search, minutes: float) -> list[Finding]:
    until = time.monotonic() + 60 * minutes
    while time.monotonic() < until:
        search.go_on(A_ROUND)
        print(f"seed {search.seed}: {search.plays} schemes tried", file=sys.stderr, flush=True)
    return search.worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
