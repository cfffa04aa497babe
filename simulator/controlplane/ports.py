"""
Hold a TCP port for a program that is about to be started, or restarted.

Looking for a free port and letting it go again loses it, now and then, to somebody else. Here the
port stays bound, but not listening, by a socket of ours with SO_REUSEPORT; a program of the same
user that sets it too (`--permit-port-sharing` of the Kubernetes programs) gets the port next to
us, and all its connections, because only a listening socket has any. While the program is down,
clients are refused and the port is still ours.
"""

import socket

LOOPBACK = "127.0.0.1"


class HeldPort:
    """
    A free loopback port, ours from now on.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind((LOOPBACK, 0))
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        """
        Let the port go.
        """
        self._socket.close()
