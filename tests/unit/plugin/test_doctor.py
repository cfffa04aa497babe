"""
The doctor's findings, and how they are told.
"""

from __future__ import annotations

import base64
import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import trustme

from gpufence.findings import Level
from gpufence.mode import Mode
from kubectl_gpufence.doctor import examine, findings_json, findings_lines, is_wrong
from kubectl_gpufence.doctor.installation import LabelledNamespace, MaybeHidden
from kubectl_gpufence.doctor.read import metric, validity
from kubectl_gpufence.table import Display
from tests.support import sick
from tests.support.plugin import seen_node

if TYPE_CHECKING:
    from kubectl_gpufence.doctor.installation import Installation


def test_the_doctor_sums_up() -> None:
    """
    The last line says whether anything is wrong, and what else there is.
    """
    fine = sick.healthy()
    look = replace(fine, deployment=sick.deployment(1, None), version=sick.version("v1.35.0"))
    one = replace(fine, system=MaybeHidden())

    assert ["all is well", "nothing is wrong, 1 worth a look", "1 thing is wrong"] == [
        list(findings_lines(examine(installation), Display()))[-1]
        for installation in (fine, look, one)
    ]
    assert (
        "nothing wrong was found, and 10 could not be found out"
        == (list(findings_lines(examine(sick.denied()), Display()))[-1])
    )


def test_the_doctor_speaks_json() -> None:
    """
    Programs get level, subject, words and remedy of each check.
    """
    found = findings_json(examine(sick.bare()))

    assert {"level", "subject", "said", "remedy"} == set(found[0])
    assert is_wrong(examine(sick.bare()))
    assert not is_wrong(examine(sick.healthy()))


def said(installation: Installation) -> str:
    return " ".join(item.text for item in examine(installation))


def test_a_lowered_kill_switch_is_worth_a_look() -> None:
    """
    An operator who has forgotten it is reminded; without the key namespaces decide.
    """
    fine = sick.healthy()
    lowered = replace(fine, switch=MaybeHidden({"data": {"max-mode": "cap"}}))

    assert "agents go no further than mode cap" in said(lowered)
    assert "namespaces decide" in said(replace(fine, switch=MaybeHidden({})))


def test_several_cas_are_counted() -> None:
    """
    While two CAs overlap the younger one counts.
    """
    both = dict.fromkeys(sick.healthy().trusted, (*sick.YEARS, (0.0, sick.NOW + sick.DAY)))

    assert "(2 CAs, 3650d left)" in said(replace(sick.healthy(), trusted=both))


def test_a_ca_that_ends_soon_is_wrong() -> None:
    """
    Two weeks before its end nobody has renewed it: something is broken.
    """
    short = dict.fromkeys(sick.healthy().trusted, ((0.0, sick.NOW + sick.DAY),))

    assert is_wrong(examine(replace(sick.healthy(), trusted=short)))


def test_hidden_parts_do_not_hide_the_rest() -> None:
    """
    Whoever may not see pods or nodes still learns about everything else.
    """
    installation = replace(
        sick.healthy(),
        pods=MaybeHidden(hidden="you may not see pods"),
        nodes=MaybeHidden(hidden="no nodes"),
    )
    levels = {item.level for item in examine(installation)}

    assert {Level.OK, Level.UNKNOWN} == levels
    assert "measures and answers" in said(installation)


def test_no_replica_at_all_is_wrong() -> None:
    """
    A webhook that is scaled to nothing sets no limits.
    """
    assert "0 of 2 replicas ready: new pods get no limits" in said(
        replace(sick.healthy(), deployment=sick.deployment(None))
    )


def test_policies_nobody_asked_for_are_not_judged() -> None:
    """
    Installation that are not there lead to no finding.
    """
    assert "gpufence-mode" not in said(replace(sick.healthy(), policies={}, bindings={}))


def test_a_cluster_without_nodes_or_pods_has_nothing_to_say_of_them() -> None:
    """
    A fenced namespace without pods is well.
    """
    installation = replace(
        sick.healthy(),
        pods=MaybeHidden([]),
        nodes=MaybeHidden({"gpu-1": replace(seen_node(), cards=None, cards_trouble="odd")}),
        namespaces=MaybeHidden([LabelledNamespace("team-a", str(Mode.CAP))]),
    )

    assert "1 in mode cap" in said(installation)
    assert "gpu-1: odd" in said(installation)


def bundle(*pems: bytes) -> str:
    return base64.b64encode(b"".join(pems)).decode()


def test_each_ca_of_a_bundle_has_its_time() -> None:
    """
    From when to when is read of every CA that a caBundle holds; an empty one holds none.
    """
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
    """
    Neither a longer name nor one with labels is taken for it, nor what is no number.
    """
    page = '# HELP x Something.\nx 12.5\nxy 1\nbad much\nlabelled{a="b"} 3\n'

    assert [12.5, None, None] == [metric(page, name) for name in ("x", "bad", "labelled")]
