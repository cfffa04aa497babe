"""Addresses to listen on, over real sockets."""

import socket

import pytest

from service.listen import ListenError, address_of, listen

LOOPBACK = "127.0.0.1"
NOBODYS = "2001:db8::1"  # for documentation only (RFC 3849), with IPv6 or without
PATIENCE_SECONDS = 20.0


def test_a_free_address_is_taken_and_shown() -> None:
    """
    A listener tells its address as somebody would type it, the port that the kernel chose included.
    """
    with listen("STATUS", (LOOPBACK, 0), 1) as listener:
        number = listener.getsockname()[1]

        assert f"{LOOPBACK}:{number}" == address_of(listener)


def test_a_taken_address_is_told() -> None:
    """Listening where somebody else listens names the setting and the address."""
    with listen("STATUS", (LOOPBACK, 0), 1) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(ListenError, match=f"STATUS: cannot listen on {LOOPBACK}:{number}"):
            listen("STATUS", (LOOPBACK, number), 1)


def test_every_interface_is_both_families() -> None:
    """An empty host takes IPv4 and, where there is one, IPv6."""
    with listen("STATUS", ("", 0), 1) as listener:
        number = listener.getsockname()[1]
        with socket.create_connection((LOOPBACK, number), timeout=PATIENCE_SECONDS):
            pass


def test_an_ipv6_address_stands_in_brackets() -> None:
    """The colons of an IPv6 address cannot be taken for the one before the port."""
    with pytest.raises(ListenError, match=r"STATUS: cannot listen on \[2001:db8::1\]:9: "):
        listen("STATUS", (NOBODYS, 9), 1)
