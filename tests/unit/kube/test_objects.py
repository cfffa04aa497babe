"""Lists of objects, who owns them, and what goes over the wire."""

import json
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from urllib3.exceptions import (
    ConnectTimeoutError,
    DecodeError,
    HTTPError,
    ProtocolError,
    ProxyError,
    SSLError,
)
from urllib3.exceptions import TimeoutError as SlowError

from gpufence import names
from kube import core, group
from kube.connections import explain
from kube.errors import BadReplyError, GoneError, KubeError, ServerError
from kube.events import (
    EventPlace,
    EventText,
    EventTimes,
    Regarding,
    Reporter,
    make_event,
    place_of,
)
from kube.kinds import ApiKind, read_kinds
from kube.lists import Page, collect_pages, read_page
from kube.owners import ApiOwner, Reference, controller_of, owner_of
from kube.replies import RawReply, read_reply
from kube.watch import LineCutter, LineTooLongError, read_change

HEAD = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}
ITEMS = [
    {"name": "a", "text": '} "],{\\'},
    {"name": "b", "text": "\u20ac\U0001f600" * 9, "deep": [{"x": [[], {}]}]},
    {"name": "c", "number": -1.5e3, "nothing": None, "yes": True},
]


def pieces(text: bytes, size: int) -> Iterator[bytes]:
    return (text[start : start + size] for start in range(0, len(text), size))


def written(**more: Any) -> bytes:
    return json.dumps({**HEAD, **more}).encode()


def read(text: bytes, size: int = 2**16, **more: Any) -> Page[Any]:
    return read_page("GET /x", pieces(text, size), lambda item: item, **more)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("plain", [True, False])
def test_a_list_in_pieces(size: int, indent: int | None, *, plain: bool) -> None:
    """Wherever its bytes are cut, a list is what it would be in one piece."""
    text = json.dumps({**HEAD, "items": ITEMS}, indent=indent, ensure_ascii=plain).encode()

    assert Page(ITEMS, {"resourceVersion": "7"}) == read(text, size)


def test_metadata_behind_the_items() -> None:
    """The order of a list's fields says nothing."""
    text = json.dumps({"items": ITEMS, "metadata": {"continue": "x"}, "kind": "PodList"})

    assert Page(ITEMS, {"continue": "x"}) == read(text.encode(), 5)


@pytest.mark.parametrize(
    "text",
    [written(items=None), written(), written(items=[]), b'{"kind":"PodList","metadata":null}'],
)
def test_a_list_of_nothing(text: bytes) -> None:
    """Go writes an empty list as null, or not at all."""
    assert [] == read(text, 4).items


def test_each_object_is_reduced_before_the_next_is_read() -> None:
    """Of a list larger than what is believed of one object, one object at a time is there."""
    large = {"name": "x" * 50_000}
    text = written(items=[large] * 40)
    page = read_page("GET /x", pieces(text, 4096), lambda item: len(item["name"]), 100_000)

    assert [50_000] * 40 == page.items


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "no list of objects"),
        (b"[]", "no list of objects"),
        (b"{}", "no list of objects"),
        (b'{"kind":"Pod","items":null}', "no list of objects"),
        (written(items={}), "no list of objects"),
        (written(items="x"), "no list of objects"),
        (written(items=[1]), "no list of objects"),
        (b'{"kind" "PodList"}', "no list of objects"),
        (b'{"kind":"PodList";}', "no list of objects"),
        (written(items=ITEMS)[:-1], "no list of objects"),
        (written(items=ITEMS)[:-3], "ends in the middle"),
        (written(items=ITEMS) + b"{}", "goes on after its end"),
        (b"<html>", "no list of objects"),
        (b'{"kind":\xff"PodList"}', "no UTF-8"),
        (b'{"items":[{"a":"\xe2', "no UTF-8"),
        (b'{"items":[' + b'{"a":' * 10_000, "ends in the middle"),
        (written(items=[{"a": "x" * 300_000}]), "longer than 100000"),
    ],
)
def test_what_is_no_list_is_refused(text: bytes, words: str) -> None:
    """Nothing is guessed at: what is not whole, or no list of objects, is an error."""
    with pytest.raises(BadReplyError, match=words):
        read(text, 1000, limit_bytes=100_000)


def test_a_refusal_that_comes_as_an_answer() -> None:
    """A Status where a list was asked for is the error that it means."""
    said = {"kind": "Status", "status": "Failure", "code": 410, "message": "too old"}

    with pytest.raises(GoneError, match="too old"):
        read(json.dumps(said).encode())


def test_pages_are_put_together() -> None:
    """A list has the version of its last page, which may be empty."""
    pages = [Page(["a"], {"continue": "t"}), Page[str]([], {"resourceVersion": "7"})]
    listing = collect_pages(lambda _: pages.pop(0), "/x")

    assert (["a"], "7") == (listing.items, listing.resource_version)


def test_a_list_without_a_version() -> None:
    """Without its version no watch could continue from a list."""
    with pytest.raises(BadReplyError, match=r"no metadata\.resourceVersion"):
        collect_pages(lambda _: Page[str]([], {}), "/x")


DEPLOYMENTS = ApiKind("apps/v1", "Deployment", "deployments", scalable=True)
PODS = ApiKind("v1", "Pod", "pods")
NOTEBOOKS = ApiKind("kubeflow.org/v1", "Notebook", "notebooks")
WORKLOADS = ApiKind("kueue.x-k8s.io/v1beta1", "Workload", "workloads", scalable=True)


def owner(kind: ApiKind, spec: Any = None, **annotations: Any) -> ApiOwner:
    metadata = {"namespace": "team", "name": "w", "annotations": annotations}
    return owner_of(kind, {"metadata": metadata, "spec": spec})


@pytest.mark.parametrize("replicas", [None, "3", True, 1.5])
def test_a_number_that_is_none_is_unknown(replicas: object) -> None:
    """And what is unknown is not scaled."""
    found = owner(DEPLOYMENTS, {"replicas": replicas})

    assert found.replicas is None
    assert not found.scalable


def test_what_can_be_scaled_has_a_number_and_the_subresource() -> None:
    """Kueue's Workloads and Notebooks are stopped instead."""
    kinds = (DEPLOYMENTS, PODS, WORKLOADS, NOTEBOOKS)
    found = [owner(kind, {"replicas": 1}) for kind in kinds]

    assert [True, False, False, False] == [item.scalable for item in found]
    assert [False, False, True, True] == [item.stoppable for item in found]


def test_whether_it_is_active_is_said_in_a_way_of_its_own() -> None:
    """A Workload by its spec, a Notebook by an annotation, all others are."""
    stopped = {names.STOPPED: "x"}

    assert [False, True] == [owner(WORKLOADS, {"active": word}).active for word in (False, True)]
    assert [False, True] == [owner(NOTEBOOKS, **stopped).active, owner(NOTEBOOKS).active]
    assert owner(DEPLOYMENTS, {"active": False}, **stopped).active


def test_words_of_others_are_left_out() -> None:
    """Annotations that are no text, too."""
    said = {names.WAKE: "manual", names.STOPPED: "x", "other": "y", names.RELEASED: 1}

    assert {names.WAKE: "manual", names.STOPPED: "x"} == owner(DEPLOYMENTS, **said).annotations


def test_an_owner_tells_where_it_is() -> None:
    """As a path, and for people; those of the core have a path of their own."""
    found = owner(DEPLOYMENTS)

    assert "/apis/apps/v1/namespaces/team/deployments/w" == found.path
    assert "Deployment team/w" == found.shown
    assert "/api/v1/namespaces/team/pods/w" == owner(PODS).path
    assert ("/apis/apps/v1/deployments", "/api/v1/pods") == (
        DEPLOYMENTS.everywhere,
        PODS.everywhere,
    )


def test_the_controller_is_the_one_that_says_so() -> None:
    """Other owners, and what is no list, count as none."""
    plain = {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"}
    controls = {**plain, "kind": "B", "controller": True}

    assert Reference("v1", "B", "a", "1") == controller_of({"ownerReferences": [plain, controls]})
    assert controller_of({"ownerReferences": [plain, "x"]}) is None
    assert controller_of({"ownerReferences": "x"}) is None


def test_kinds_are_namespaced_and_know_whether_they_scale() -> None:
    """Subresources are no kinds; what is odd is left out."""
    found = read_kinds(
        "a/v1",
        {
            "resources": [
                {"name": "xs", "kind": "X", "namespaced": True, "shortNames": ["ex", 1]},
                {"name": "xs/scale", "kind": "Scale", "namespaced": True},
                {"name": "xs/status", "kind": "X", "namespaced": True},
                {"name": "ys", "kind": "Y", "namespaced": True, "singularName": ""},
                {"name": "zs", "kind": "Z", "namespaced": False},
                "odd",
            ]
        },
    )

    assert [("X", True), ("Y", False)] == [(kind.kind, kind.scalable) for kind in found]
    assert {"xs", "x", "ex"} == found[0].called
    assert () == read_kinds("a/v1", {"resources": None})


def test_an_event_of_a_pod_has_no_host() -> None:
    """Where it is said by one that is on no node in particular."""
    about = Regarding("v1", "Pod", "team", "a", "u")
    place = place_of(about, "gpufence-controller", "1")
    said = EventText("R", "m", warning=False)
    made = make_event(about, said, Reporter("c", "i"), place, EventTimes("t", "t"))

    assert EventPlace("team", "a.1") == place
    assert ("Normal", {"component": "c"}) == (made["type"], made["source"])
    assert 1 == made["count"]


def test_an_event_of_the_cluster_is_in_the_default_namespace() -> None:
    """Under a name that is one, with who says it and where."""
    about = Regarding("v1", "Node", "", "N" * 300, "u")
    place = place_of(about, "gpufence-agent", "1")
    made = make_event(
        about, EventText("R", "m"), Reporter("c", "i", "h"), place, EventTimes("t", "t", 2)
    )

    assert EventPlace("default", "gpufence-agent.1") == place
    assert {"component": "c", "host": "h"} == made["source"]
    assert "namespace" not in made["involvedObject"]


def test_an_owner_whom_nobody_can_be_called_is_cut_short() -> None:
    """The API server takes any text in a reference."""
    reference = {"kind": "Job", "name": "n" * 2**18, "uid": "u", "controller": True}
    found = controller_of({"ownerReferences": [reference]})

    assert Reference("", "Job", "n" * 320, "u") == found


def test_paths_of_both_kinds_of_groups() -> None:
    """The core group and the named ones have their own roots."""
    assert "/api/v1/namespaces/team-a/pods/p/eviction" == core(
        "namespaces", "team-a", "pods", "p", "eviction"
    )
    assert "/apis/apps/v1/deployments" == group("apps/v1", "deployments")


def test_odd_characters_are_quoted() -> None:
    """A port of a proxied pod stays readable; a question mark starts no query."""
    assert "/api/v1/pods/p:8080/a%3Fb%20%C3%BC" == core("pods", "p:8080", "a?b ü")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
def test_names_that_would_change_the_path_are_refused(name: str) -> None:
    """No name leads out of its place."""
    with pytest.raises(ValueError, match="cannot be a name in a Kubernetes path"):
        core("namespaces", name)


def test_blank_lines_are_left_out() -> None:
    """Keep-alive blanks between lines mean nothing."""
    assert [b"a", b"b"] == LineCutter(10).feed(b"\n\na\n \r\nb\n")


def test_the_rest_is_what_has_no_end() -> None:
    """A line that was begun is kept apart."""
    cutter = LineCutter(10)
    cutter.feed(b"a\nbc")

    assert b"bc" == cutter.rest


@pytest.mark.parametrize("data", [b"12345678901", b"12345678901\n", b"1\n12345678901\n2\n"])
def test_a_line_beyond_the_limit_is_refused(data: bytes) -> None:
    """The limit holds for whole lines and for begun ones."""
    with pytest.raises(LineTooLongError, match="longer than 10 bytes"):
        LineCutter(10).feed(data)


def test_a_line_of_the_limit_passes() -> None:
    """The limit itself is allowed."""
    assert [b"1234567890"] == LineCutter(10).feed(b"1234567890\n")


def test_nesting_without_end_is_a_bad_reply() -> None:
    """Nor does a body that is nested beyond what the parser bears."""
    deep = b'{"a":' * 100_000

    with pytest.raises(BadReplyError):
        read_reply("GET /x", RawReply(200, {}, deep))
    with pytest.raises(BadReplyError):
        read_change("GET /x", deep)


@pytest.mark.parametrize(
    ("code", "expected"), [(410, GoneError), (None, ServerError), (200, ServerError)]
)
def test_error_lines_keep_their_code(code: int | None, expected: type[KubeError]) -> None:
    """An ERROR line means its Status' code, and trouble of the server where that makes no sense."""
    line = json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": code}}).encode()

    with pytest.raises(expected):
        read_change("GET /x", line)


def test_a_status_that_nobody_knows_is_an_error_all_the_same() -> None:
    """A number that HTTP does not know is told as it came."""
    with pytest.raises(KubeError, match="599 Unknown"):
        read_reply("GET /x", RawReply(599, {}, b""))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ConnectTimeoutError("x"),
            "no connection in time; is the server up, and may we reach it?",
        ),
        (SlowError("x"), "no answer in time"),
        (SSLError(ssl.SSLError(1, "wrong version number")), "TLS failed: wrong version number"),
        (
            ProtocolError("x", ConnectionResetError(104, "Connection reset by peer")),
            "the connection broke off (Connection reset by peer)",
        ),
        (ProtocolError("x"), "the connection broke off (ProtocolError)"),
        (ProxyError("x", OSError("Tunnel\nfailed")), "through the proxy: Tunnel?failed"),
        (ProxyError("x", OSError()), "through the proxy: OSError"),
        (DecodeError("<object at 0x7f>"), "DecodeError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, HTTPError) else str(value),
)
def test_failures_are_told_apart(error: HTTPError, expected: str) -> None:
    """The words name what to look at, without addresses of objects."""
    assert expected == explain(error)
