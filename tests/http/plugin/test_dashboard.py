"""The page's server, as browsers and other programs meet it."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpufence.snapshot import write_snapshot
from kubectl_gpufence.pods import SeenEvent
from kubectl_gpufence.verbs.dashboard.server import PageServer, PortError, read_page
from tests.support.live_page import TOKEN, Served, served
from tests.support.observing import wait_until
from tests.support.plugin import AGENT, DENIED, PODS, Desk, listed, raw_pod, snapshot
from tests.support.plugin_cases import silent, typical
from tests.support.servers import reply
from tests.support.site import surroundings

EVENT = SeenEvent("2026-01-02T03:04:05Z", "Reason", 1, "message", "team-a/Pod/a", warning=True)


@pytest.fixture
def page() -> Iterator[Served]:
    with served(typical(), EVENT) as found:
        yield found


def get(found: Served, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", found.server.door.port, timeout=30)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def state(found: Served, after: int = 0) -> Any:
    return json.loads(get(found, f"/{TOKEN}/state?after={after}")[1])


def test_the_page_may_run_nothing_but_itself(page: Served) -> None:
    """Its policy names the sums of its one script and its one style, and no other place at all."""
    answer, body = get(page, f"/{TOKEN}/")
    policy = answer.headers["Content-Security-Policy"]

    assert 200 == answer.status
    assert read_page().body == body
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert ["script-src", "style-src"] == re.findall(r"([a-z-]+) 'sha256-[\w+/=]{44}'", policy)
    assert "unsafe" not in policy
    assert ("no-referrer", "DENY", "no-store", "same-origin", "nosniff") == tuple(
        answer.headers[name]
        for name in (
            "Referrer-Policy",
            "X-Frame-Options",
            "Cache-Control",
            "Cross-Origin-Resource-Policy",
            "X-Content-Type-Options",
        )
    )


def test_the_page_is_one_file_that_names_no_other_place() -> None:
    """There is nothing to download, from here or from anywhere."""
    text = read_page().body.decode()

    assert ["http://www.w3.org/2000/svg"] == re.findall(r"\b(?:https?:)?//[\w.]+[^'\"\s]*", text)
    assert [] == re.findall(r"\s(?:src|srcset|action|style|on\w+)=", text)


def test_without_the_token_nothing_is_shown(page: Served) -> None:
    """The page itself is refused as well, and no refusal says anything of the cluster."""
    for path in ("/", "/state", "/wrong/", "/wrong/state", f"/?token={TOKEN}"):
        answer, body = get(page, path, Authorization=f"Bearer {TOKEN}", Cookie=f"token={TOKEN}")

        assert 401 == answer.status
        assert b"team-a" not in body
        assert TOKEN.encode() not in body


def test_another_name_of_this_machine_is_refused(page: Served) -> None:
    """A site whose name leads here gets nothing, even if it knew the token."""
    answer, body = get(page, f"/{TOKEN}/", Host=f"evil.example:{page.server.door.port}")

    assert 421 == answer.status
    assert b"GPU" not in body


def test_another_site_is_refused(page: Served) -> None:
    """
    What carries another site's name, or a browser's word that it comes from one, gets nothing.
    """
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "same-site"}):
        answer, body = get(page, f"/{TOKEN}/state", **headers)

        assert 403 == answer.status
        assert b"team-a" not in body
        assert None is answer.headers["Access-Control-Allow-Origin"]


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST /" + TOKEN.encode() + b"/ HTTP/1.1\r\nHost: %b\r\n\r\n", b"405"),
        (b"BREW /" + TOKEN.encode() + b"/ HTTP/1.1\r\nHost: %b\r\n\r\n", b"501"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
    ],
    ids=["nonsense", "post", "brew", "long"],
)
def test_what_is_no_request_of_a_page_is_refused(
    page: Served, request_text: bytes, status: bytes
) -> None:
    """Without repeating any of it."""
    port = page.server.door.port
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(request_text.replace(b"%b", f"127.0.0.1:{port}".encode()))
        answer = client.makefile("rb").read()

    assert status == answer.split()[1]
    assert b"nonsense" not in answer
    assert b"BREW" not in answer


def test_it_listens_on_loopback_alone(page: Served) -> None:
    """No other machine reaches the port."""
    assert "127.0.0.1" == page.server.server_address[0]
    assert f"http://127.0.0.1:{page.server.door.port}/{TOKEN}/" == page.server.address


def test_a_port_that_is_taken_is_an_error(page: Served) -> None:
    """The error says which option to change."""
    with pytest.raises(PortError, match=r"--port: 127\.0\.0\.1:\d+ cannot be listened on"):
        PageServer(page.server.door.port, TOKEN, page.poller.state, page.poller.tell)


def test_many_at_once_cost_no_more_than_a_few(page: Served) -> None:
    """
    Who comes while too many are there is turned away, and the page goes on as soon as they leave.
    """
    port = page.server.door.port
    idle = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(40)]
    turned = 0
    for client in idle[16:]:
        turned += client.recv(1) == b""
    for client in idle:
        client.close()

    assert 24 == turned
    wait_until(lambda: _answers(page), "the page answers again")


def test_a_page_is_told_what_is_new(page: Served) -> None:
    """Who knows the newest look is told its age alone; who knows looks of an earlier run all."""
    page.looks.gate.clear()
    time.sleep(0.5)
    first = state(page)

    assert {"look", "age", "interval", "trouble"} == set(state(page, first["look"]))
    assert "team-a" == state(page, first["look"] + 1000)["model"]["pods"][0]["namespace"]
    assert 1 == len(state(page, first["look"] + 1000)["cards"]["ago"])
    page.looks.cluster = silent()
    page.looks.gate.set()
    wait_until(lambda: state(page)["model"]["pods"][0]["bytes"] is None, "another look")

    assert "model" in state(page, first["look"])


def test_no_pod_is_explained_that_the_page_does_not_show(page: Served) -> None:
    """Not by name either, and to no request without the token; a bug of ours is said."""

    def story(pod: str, token: str = TOKEN) -> tuple[int, str]:
        answer, body = get(page, f"/{token}/explain?pod={pod}&columns=80")
        return answer.status, body.decode()

    assert (200, "this page does not show such a pod any longer\n") == story("team-b/trainer-0")
    assert (200, True) == (story("team-a/trainer-0")[0], "Looks" in story("team-a/trainer-0")[1])
    assert 401 == story("team-a/trainer-0", "wrong")[0]


def test_a_look_that_fails_is_not_the_last(page: Served) -> None:
    """The page keeps what it has, says what is wrong, and goes on when that is over."""
    page.looks.cluster = None  # type: ignore[assignment]  # a bug of ours
    wait_until(lambda: "this look has failed" in state(page)["trouble"], "the look fails")

    assert "team-a" == state(page)["model"]["pods"][0]["namespace"]
    page.looks.cluster = typical()
    wait_until(lambda: not state(page)["trouble"], "the next look")


def test_the_program_serves_until_it_is_interrupted(desk: Desk) -> None:
    """
    It prints the address, shows what the kubeconfig's user may see, and ends well by Ctrl-C; its
    namespace alone is asked for.
    """
    desk.get("/api/v1/namespaces/team-a/events", DENIED)
    desk.get(AGENT, reply(write_snapshot(snapshot()).encode()))
    with started(desk) as program:
        assert program.stdout is not None
        address = program.stdout.readline().strip()
        port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([\w-]{43})/", address).groups()  # type: ignore[union-attr]  # else the test fails
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
        connection.request("GET", f"/{token}/state")
        told = json.loads(connection.getresponse().read())
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=60)

    assert (0, "") == (program.returncode, out)
    assert (
        "note: namespace team-a, live, for everyone who knows this address; Ctrl-C ends it\n" == err
    )
    assert ("3072Mi", "2048Mi") == tuple(told["model"]["pods"][0][key] for key in ("limit", "used"))
    assert ["you may not list events: none are shown"] == told["model"]["notes"]
    assert [] == desk.server.seen("GET /api/v1/pods")


def test_what_may_not_be_seen_is_said_at_once(desk: Desk) -> None:
    """Nothing is served to somebody who may see nothing."""
    desk.get(PODS, DENIED)
    with started(desk) as program:
        out, err = program.communicate(timeout=60)

    assert (1, "") == (program.returncode, out)
    assert "Forbidden" in err


def test_each_run_has_a_token_of_its_own(desk: Desk) -> None:
    """An address of yesterday opens nothing today; SIGTERM is an end like any other."""
    desk.get("/api/v1/pods", listed(raw_pod()))
    desk.get("/api/v1/events", listed())
    addresses = []
    for _ in range(2):
        with started(desk, "-A", "--no-open") as program:
            assert program.stdout is not None
            addresses.append(program.stdout.readline().strip().rsplit("/", 2)[1])
            program.terminate()
            program.communicate(timeout=60)

        assert 0 == program.returncode
    assert 2 == len(set(addresses))


def test_a_browser_is_led_there_by_a_file(desk: Desk, tmp_path: Path) -> None:
    """Everybody can see what a browser is started with, and nobody the token."""
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(
        f'#!/bin/sh\n(echo "$1"; stat -c %a "${{1#file://}}"; cat "${{1#file://}}") >{seen}'
    )
    browser.chmod(0o700)
    desk.get("/api/v1/namespaces/team-a/events", listed())
    desk.environ["BROWSER"] = f"{browser} %s"
    with started(desk, "--open", "--port", str(_free_port())) as program:
        assert program.stdout is not None
        address = program.stdout.readline().strip()
        wait_until(lambda: seen.exists() and address in seen.read_text(), "the browser is started")
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=60)

    started_with, mode, leads = seen.read_text().splitlines()
    assert (0, "600") == (program.returncode, mode)
    assert not {*address.split("/")} & {*started_with.split("/")} - {""}
    assert f"url={address}" in leads
    assert not Path(started_with.removeprefix("file://")).exists()


def started(desk: Desk, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "kubectl_gpufence", "dashboard", *(arguments or ["--no-open"])],
        env=surroundings(desk.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _answers(found: Served) -> bool:
    try:
        return get(found, f"/{TOKEN}/")[0].status == 200
    except OSError:
        return False
