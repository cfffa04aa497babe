"""What the webhook asks the API server about claims, and in which words it hears nothing."""

import asyncio
from collections.abc import Callable
from typing import Any

from gpufence.claim_requests import class_key
from gpufence.pods import PodClaim
from kube import JsonObject
from tests.support import claims
from webhook.claims import ClaimsFound, UnknownError, ask_claims

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims"
Json = dict[str, Any]


class Server:
    """Answers by path, and says of anything else that it is not there."""

    def __init__(self, answers: dict[str, JsonObject]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, where: Callable[..., str], *segments: str, **query: str) -> JsonObject:
        del query
        path = where(*segments)
        self.asked.append(path)
        if path not in self.answers:
            raise UnknownError("not-found", "it is not there")
        return self.answers[path]


def of_class(*names: str) -> Json:
    wanted = [
        {"name": f"r{place}", "exactly": {"deviceClassName": name}}
        for place, name in enumerate(names)
    ]
    return claims.claim("c", *wanted)


def ask(item: Json, **answers: Json) -> tuple[ClaimsFound, list[str]]:
    server = Server({**answers, f"{CLAIMS}/c": item})
    found = asyncio.run(ask_claims(server, "team-a", [PodClaim("gpu", "c")]))
    return found, server.asked


def test_the_classes_of_a_claim_are_found_with_it() -> None:
    """Or why they are not."""
    item, known = of_class("shared", "gone", claims.CLASS), claims.device_class()
    found, _ = ask(item, **{f"{CLASSES}/shared": known})

    assert {
        "gpu": item,
        class_key("shared"): known,
        class_key("gone"): "does not exist",
    } == found


def test_no_more_classes_are_asked_for_than_a_creator_can_wait_for() -> None:
    """Of the others a word says so."""
    found, asked = ask(of_class(*[f"class-{place}" for place in range(9)]))

    assert 8 == len([path for path in asked if path.startswith(CLASSES)])
    assert "is not read, as no other beyond 8" == found[class_key("class-8")]


def test_a_claim_that_cannot_be_read_asks_for_no_classes() -> None:
    """Whoever reads it says what is wrong with it."""
    found, asked = ask({"spec": "nothing"})

    assert ({"gpu": {"spec": "nothing"}}, [f"{CLAIMS}/c"]) == (found, asked)
