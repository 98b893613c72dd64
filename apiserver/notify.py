"""Notify systemd that the process is ready (sd_notify), as kube-apiserver does."""

import socket
from collections.abc import Mapping

READY = b"READY=1"


def notify_ready(environment: Mapping[str, str]) -> None:
    """Without NOTIFY_SOCKET it does nothing. An address that begins with @ is an abstract socket."""
    address = environment.get("NOTIFY_SOCKET", "")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(READY, address.replace("@", "\0", 1) if address.startswith("@") else address)
