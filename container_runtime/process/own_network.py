"""A network of a command's own, in which there is nothing but one server of this machine, at its address there.

The command may listen on any port. Who has started it accepts the connections to the server, and relays them. The launcher imports this
module as a script, so it imports nothing of mockube.
"""

import fcntl
import socket
import struct
from collections.abc import Callable
from typing import Final

NEW_NETWORK: Final = 0x40000000
"""The flag of unshare(2)."""
_SET_FLAGS: Final = 0x8914
_UP: Final = 0x1


def enter(unshare: Callable[[int], None], host: str, port: int, channel: int) -> None:
    """Go into a new network, listen at the server's address, and hand the listening socket over by an open socket."""
    unshare(NEW_NETWORK)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
    with socket.create_server((host, port)) as listening, socket.socket(fileno=channel) as sender:
        socket.send_fds(sender, [b"\n"], [listening.fileno()])
