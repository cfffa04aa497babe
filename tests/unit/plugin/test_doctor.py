"""The doctor's findings, and how they are told."""

import base64
import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
import trustme

from gpufence.findings import Level
from gpufence.names import MODE
from kubectl_gpufence.verbs.doctor import FINDING_FIELDS, examine, findings_lines, is_wrong
from kubectl_gpufence.verbs.doctor.installation import (
    HOOKS,
    Installation,
    LabelledNamespace,
    MaybeHidden,
    read_labelled,
)
from kubectl_gpufence.verbs.doctor.read import metric, validity
from kubectl_gpufence.view import Display, records
from tests.support import sick
from tests.support.plugin import agent, seen_node, seen_pod, snapshot

FINE = sick.healthy()
NO_PODS: dict[str, Any] = {
    "namespaces": MaybeHidden([LabelledNamespace("team-a", "cap")]),
    "pods": MaybeHidden([]),
}
SHORT = (0.0, sick.NOW + sick.DAY)
FIRST = {"default-max-mode": "observe"}


def texts(**changes: Any) -> str:
    """Return all that is said of a healthy installation in which something is different."""
    return " ".join(item.text for item in examine(replace(FINE, **changes)))


@pytest.mark.parametrize(
    ("installation", "text"),
    [
        (FINE, "all is well"),
        (replace(FINE, deployment=sick.deployment(1, None)), "all is well"),
        (replace(FINE, version=sick.version("v1.35.0")), "nothing is wrong, 1 worth a look"),
        (replace(FINE, system=MaybeHidden()), "1 thing is wrong"),
        (sick.denied(), "nothing wrong was found, and 15 could not be found out"),
    ],
    ids=["fine", "one replica", "old", "absent", "denied"],
)
def test_the_doctor_sums_up(installation: Installation, text: str) -> None:
    """The last line says whether anything is wrong, and what else there is."""
    assert text == list(findings_lines(examine(installation), Display()))[-1]


def _called(*urls: str) -> MaybeHidden[Any]:
    hooks = [
        {"name": name, "failurePolicy": "Ignore", "clientConfig": {"url": url} if url else {}}
        for name, url in zip(HOOKS, urls, strict=True)
    ]
    return MaybeHidden({"webhooks": hooks})


def test_a_webhook_outside_of_the_cluster_needs_no_deployment() -> None:
    """
    Where all hooks call an address, nobody misses replicas and endpoints; where one of them calls
    none, they are missed.
    """
    away: dict[str, Any] = {"deployment": MaybeHidden(), "slices": MaybeHidden([])}
    url = "https://127.0.0.1:4433"
    whole = texts(configuration=_called(*(f"{url}/{name}" for name in HOOKS)), **away)
    partly = texts(configuration=_called(url, url, url, ""), **away)

    assert f"it runs outside of this cluster, at {url}" in whole
    assert "there is no Deployment" not in whole
    assert "there is no Deployment" in partly
    assert "there is no Deployment" in texts(configuration=_called(*[""] * 4), **away)


def test_the_doctor_speaks_json() -> None:
    """Programs get level, subject, words and remedy of each check."""
    items = records(FINDING_FIELDS, examine(sick.bare()))

    assert {"level", "subject", "said", "remedy"} == set(items[0])
    assert is_wrong(examine(sick.bare()))
    assert not is_wrong(examine(FINE))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"agents": MaybeHidden({}), "nodes": sick.HIDDEN}, "you may not see it"),
        ({"switch": MaybeHidden({"data": {"max-mode": "cap"}})}, "no further than mode cap"),
        ({"switch": MaybeHidden({})}, "namespaces decide"),
        (
            {"switch": MaybeHidden({"data": {"max-mode": "evict", "default-max-mode": "observe"}})},
            "no further than mode observe",
        ),
        ({"trusted": dict.fromkeys(HOOKS, (*sick.YEARS, SHORT))}, "(2 CAs, 3650d left)"),
        ({"deployment": sick.deployment(None)}, "0 of 2 replicas ready: new pods get no limits"),
        (
            {"namespaces": MaybeHidden([LabelledNamespace("a", "cap")]), "pods": MaybeHidden([])},
            "1 in mode cap",
        ),
    ],
    ids=["hidden", "lowered", "no key", "lower", "overlap", "no replica", "no pods"],
)
def test_a_rare_state_has_its_finding(changes: dict[str, Any], text: str) -> None:
    """A lowered kill switch, two CAs that overlap, a webhook scaled to nothing: each is named."""
    assert text in texts(**changes)


@pytest.mark.parametrize(
    ("data", "remedy"),
    [({"max-mode": "cap"}, """-p '{"data":{"max-mode":null}}'"""), (FIRST, "observeFirst=false")],
    ids=["by hand", "installed"],
)
def test_a_lowered_switch_is_lifted_where_it_was_lowered(data: dict[str, str], remedy: str) -> None:
    """What somebody set by hand is taken back so, and what a component set by leaving that out."""
    (switch,) = [
        one
        for one in examine(replace(FINE, switch=MaybeHidden({"data": data})))
        if one.subject == "kill switch"
    ]

    assert remedy in switch.remedy


def test_a_ca_that_ends_soon_is_wrong() -> None:
    """Two weeks before its end nobody has renewed it: something is broken."""
    assert is_wrong(examine(replace(FINE, trusted=dict.fromkeys(HOOKS, (SHORT,)))))


def test_what_is_on_its_way_out_needs_no_remedy() -> None:
    """A namespace that is being deleted is fenced no more, and a pod that ends is not asked for."""
    ending = {
        "name": "team-a",
        "labels": {MODE: "cap"},
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    missed = replace(seen_pod(), injected="", namespace="team-a")

    assert ("team-a", None) == read_labelled({"metadata": ending})
    assert "never saw 1 pod" in texts(pods=MaybeHidden([missed]))
    assert "never saw" not in texts(pods=MaybeHidden([replace(missed, terminating=True)]))


def test_a_node_whose_cards_cannot_be_read_is_named() -> None:
    """One broken annotation says so, and takes no other finding away."""
    odd = replace(seen_node(), cards=None, cards_trouble="odd")

    assert "gpu-1: odd" in texts(nodes=MaybeHidden({"gpu-1": odd}))


def test_a_node_that_is_measured_in_part_is_not_called_unmeasured() -> None:
    """A card that cannot be read takes nothing away from what is said of the others."""
    said = agent(snapshot(trouble="card 1: GB10 has no memory of its own"))

    assert "gpu-1 is measured in part: card 1: GB10" in texts(agents=MaybeHidden({"gpu-1": said}))


def test_hidden_parts_do_not_hide_the_rest() -> None:
    """Whoever may not see pods or nodes still learns about everything else."""
    hidden: dict[str, Any] = {"pods": sick.HIDDEN, "nodes": sick.HIDDEN}

    assert "measures and answers" in texts(**hidden)
    assert {Level.OK, Level.UNKNOWN} == {item.level for item in examine(replace(FINE, **hidden))}


def bundle(*pems: bytes) -> str:
    return base64.b64encode(b"".join(pems)).decode()


def test_each_ca_of_a_bundle_has_its_time() -> None:
    """From when to when is read of every CA that a caBundle holds; an empty one holds none."""
    first, second = trustme.CA(), trustme.CA(organization_name="another")
    times = validity(bundle(first.cert_pem.bytes(), second.cert_pem.bytes()))

    assert times is not None
    assert 2 == len(times)
    assert all(since < dt.datetime.now(dt.UTC).timestamp() < until for since, until in times)
    assert () == validity("")


@pytest.mark.parametrize(
    "text",
    [
        "%%%",
        bundle(b"\xff\xfe"),
        bundle(b"no certificate"),
        bundle(trustme.CA().issue_cert("example.test").cert_chain_pems[0].bytes()),
    ],
    ids=["no base64", "no text", "no PEM", "no CA"],
)
def test_what_is_no_bundle_cannot_be_read(text: str) -> None:
    """
    Whatever somebody pasted there, if only a server's certificate, the doctor says it is none.
    """
    assert None is validity(text)


def test_a_metric_is_found_by_its_whole_name() -> None:
    """Neither a longer name nor one with labels is taken for it, nor what is no number."""
    page = '# HELP x Something.\nx 12.5\nxy 1\nbad much\nlabelled{a="b"} 3\n'

    assert [12.5, None, None] == [metric(page, name) for name in ("x", "bad", "labelled")]
