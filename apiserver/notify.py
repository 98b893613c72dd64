"""Tell whoever started the process that it is ready, as systemd wants to be told; kube-apiserver does so, too."""

import socket
from collections.abc import Mapping

READY = b"READY=1"


def notify_ready(environment: Mapping[str, str]) -> None:
    """Nothing happens where nobody asked for it. An address that begins with @ is of no file."""
    address = environment.get("NOTIFY_SOCKET", "")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(READY, address.replace("@", "\0", 1) if address.startswith("@") else address)
