"""The serving certificate changes while connections live on, and never for the worse."""

import http.client
import itertools
import ssl
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.authority import Authority, Leaf, write_files, write_secret
from tests.support.observing import Beside
from tests.support.rewriting import encoded, review
from tests.support.webhook_site import Webhook, ask

QUICK = {"GPUFENCE_TLS_POLL_SECONDS": "0.05"}
SWAPS = 20
CONNECTIONS = 8
EXPIRES = "gpufence_webhook_certificate_expiry_timestamp_seconds"
LOADS = 'gpufence_webhook_certificate_loads_total{result="%s"}'


def serial(webhook: Webhook) -> str:
    """Return the serial number that a new handshake meets."""
    connection = webhook.connect()
    connection.connect()
    assert isinstance(connection.sock, ssl.SSLSocket)
    certificate = connection.sock.getpeercert()
    connection.close()
    assert certificate is not None
    return str(certificate["serialNumber"]).lower().lstrip("0")


class Load(Beside):
    """Reviews without a pause, half of them on kept connections, half on new ones."""

    def __init__(self, webhook: Webhook) -> None:
        super().__init__(CONNECTIONS)
        self.statuses: list[int] = []
        self.errors: list[Exception] = []
        self._webhook = webhook
        self._keeping = itertools.cycle((True, False))

    def run(self) -> None:
        keep = next(self._keeping)
        with closing(self._webhook.connect()) as connection:
            try:
                while not self.over.is_set():
                    status, _ = ask(connection, "POST", "/v1/pods/cap", encoded(review()))
                    self.statuses.append(status)
                    if not keep:
                        connection.close()
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(error)


def test_swaps_under_load_lose_nothing(authority: Authority, tmp_path: Path) -> None:
    """Certificates change twenty times, a wrong one between each, and all requests are answered."""
    write_secret(tmp_path, authority.leaf(), 0)
    other = authority.leaf()
    with Webhook(tmp_path, authority.client_context(), **QUICK) as webhook:
        with Load(webhook) as load:
            for swap in range(1, SWAPS + 1):
                count = len(webhook.lines)
                leaf = authority.leaf()
                write_secret(tmp_path, Leaf(leaf.certificate, other.key), 2 * swap)
                webhook.wait_for("the certificate in", count)
                write_secret(tmp_path, leaf, 2 * swap + 1)
                webhook.wait_for("certificate ", count)

        assert [] == load.errors
        assert {200} == set(load.statuses)
        assert SWAPS + 1 == webhook.metric(LOADS % "swapped")
        assert SWAPS == webhook.metric(LOADS % "refused")


def test_what_cannot_serve_never_goes_live(authority: Authority, tls_dir: Path) -> None:
    """
    The old certificate stays, and each trouble is said and counted once, that of a pair that has
    expired too; what comes then serves the next handshake, without a restart.
    """
    with Webhook(tls_dir, authority.client_context(), **QUICK) as webhook:
        before = serial(webhook)
        for number, broken in enumerate(("key", "half", "empty", "text", "absent"), start=1):
            count = len(webhook.lines)
            _spoil(tls_dir, broken, authority)
            webhook.wait_for("the certificate in", count)
            webhook.post("/v1/pods/cap", encoded(review()))

            assert before == serial(webhook)
            assert (200, "ok\n") == webhook.get("/readyz")
            assert number == webhook.metric(LOADS % "refused")
        count = len(webhook.lines)
        write_files(tls_dir, authority.leaf(days=-0.5))
        line = webhook.wait_for("the certificate in", count)
        kept, count = serial(webhook), len(webhook.lines)
        write_files(tls_dir, authority.leaf())
        swapped = webhook.wait_for("certificate ", count)
        after = serial(webhook)

    assert "it has expired" in str(line["message"])
    assert before == kept != after
    assert after in str(swapped["message"])


def test_a_webhook_without_a_certificate_waits_for_one(
    authority: Authority, tmp_path: Path
) -> None:
    """Started before its certificate is there, it says so, is not ready, and serves once it is."""
    with Webhook(tmp_path, authority.client_context(), **QUICK) as webhook:
        ready_before = webhook.get("/readyz")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            webhook.post("/v1/pods/cap", encoded(review()))
        write_secret(tmp_path, authority.leaf(), 1)
        webhook.wait_for("certificate ")

        assert (503, f"no usable certificate in {tmp_path}\n") == ready_before
        assert 200 == webhook.post("/v1/pods/cap", encoded(review()))[0]
        assert (200, "ok\n") == webhook.get("/readyz")


def test_an_expired_certificate_is_not_ready(authority: Authority, tmp_path: Path) -> None:
    """Nobody would trust it, so the Service should not send anybody here."""
    write_files(tmp_path, authority.leaf(days=-0.5))
    with Webhook(tmp_path, authority.client_context(), **QUICK) as webhook:
        assert (503, "the certificate has expired or is not valid yet\n") == webhook.get("/readyz")
        assert -50_000 < webhook.metric(f"{EXPIRES} ") - time.time() < 0


def test_the_time_of_expiry_is_a_metric(webhook: Webhook) -> None:
    """An alert can be built on how long the certificate lasts."""
    lasting = webhook.metric(f"{EXPIRES} ") - time.time()

    assert 29 * 86400 < lasting < 31 * 86400


def test_a_stranger_to_the_authority_is_told_apart(webhook: Webhook) -> None:
    """A client that trusts another authority refuses us, and we go on."""
    with (
        closing(webhook.connect(Authority().client_context())) as connection,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        connection.connect()

    assert 200 == webhook.post("/v1/pods/cap", encoded(review()))[0]


def _spoil(folder: Path, how: str, authority: Authority) -> None:
    if how == "absent":
        (folder / "tls.crt").unlink()
        return
    key = authority.leaf().key
    content = {"key": key, "half": key[: len(key) // 2], "empty": b"", "text": b"hello"}[how]
    temporary = folder / "new"
    temporary.write_bytes(content)
    temporary.rename(folder / "tls.key")


def test_only_who_shows_a_certificate_is_heard(authority: Authority, tls_dir: Path) -> None:
    """With a CA for clients, strangers are shown the door, and probes need none all the same."""
    clients = Authority(tls_dir, "client-ca")
    certificate, key = clients.client_pem("kube-apiserver")
    (tls_dir / "client.pem").write_bytes(key + certificate)
    known = authority.client_context()
    known.load_cert_chain(tls_dir / "client.pem")
    settings = QUICK | {"GPUFENCE_CLIENT_CA": str(clients.ca_file)}
    with Webhook(tls_dir, known, **settings) as webhook:
        with (
            closing(webhook.connect(authority.client_context())) as stranger,
            pytest.raises((ssl.SSLError, ConnectionError)),
        ):
            ask(stranger, "POST", "/v1/pods/cap", b"{}")
        answers = [
            webhook.post("/v1/pods/cap", encoded(review()))[0],
            webhook.get("/healthz")[0],
            webhook.get("/readyz")[0],
        ]

    assert [200, 200, 200] == answers


def test_a_new_ca_of_clients_is_taken_up(authority: Authority, tls_dir: Path) -> None:
    """The file is watched like the certificate: whoever the new CA vouches for is heard."""
    old, new = Authority(tls_dir, "client-ca"), Authority()
    certificate, key = new.client_pem("kube-apiserver")
    (tls_dir / "client.pem").write_bytes(key + certificate)
    known = authority.client_context()
    known.load_cert_chain(tls_dir / "client.pem")
    settings = QUICK | {"GPUFENCE_CLIENT_CA": str(old.ca_file)}
    with Webhook(tls_dir, known, **settings) as webhook:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            webhook.post("/v1/pods/cap", encoded(review()))
        old.ca_file.write_bytes(new.pem)
        webhook.wait_for("certificate", len(webhook.lines))

        assert 200 == webhook.post("/v1/pods/cap", encoded(review()))[0]
