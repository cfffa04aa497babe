"""
Certificates and metrics as the doctor reads them.
"""

from __future__ import annotations

import base64
import datetime as dt

import pytest
import trustme

from kubectl_gpufence.doctor.read import metric, validity

PAGE = """\
# HELP gpufence_x Something.
gpufence_x 12.5
gpufence_xy 1
gpufence_bad much
gpufence_labelled{a="b"} 3
"""


def bundle(*pems: bytes) -> str:
    return base64.b64encode(b"".join(pems)).decode()


def test_each_ca_of_a_bundle_has_its_time() -> None:
    """
    From when to when is read of every CA that a caBundle holds.
    """
    first, second = trustme.CA(), trustme.CA(organization_name="another")
    found = validity(bundle(first.cert_pem.bytes(), second.cert_pem.bytes()))

    assert found is not None
    assert 2 == len(found)
    assert all(since < dt.datetime.now(dt.UTC).timestamp() < until for since, until in found)


def test_an_empty_bundle_holds_nothing() -> None:
    """
    Nothing written is not the same as something unreadable.
    """
    assert () == validity("")


@pytest.mark.parametrize(
    "text", ["%%%", base64.b64encode(b"\xff\xfe").decode(), bundle(b"no certificate")]
)
def test_what_is_no_bundle_cannot_be_read(text: str) -> None:
    """
    Whatever somebody pasted there, the doctor says that it is none.
    """
    assert None is validity(text)


def test_a_bundle_without_any_ca_cannot_be_read() -> None:
    """
    A server's certificate alone vouches for nobody.
    """
    leaf = trustme.CA().issue_cert("example.test").cert_chain_pems[0]

    assert None is validity(bundle(leaf.bytes()))


def test_a_metric_is_found_by_its_whole_name() -> None:
    """
    Neither a longer name nor one with labels is taken for it.
    """
    assert 12.5 == metric(PAGE, "gpufence_x")
    assert None is metric(PAGE, "gpufence_bad")
    assert None is metric(PAGE, "gpufence_labelled")
