"""Whether a program of this machine listens where a URL leads, as none does while the controller manager is down."""

import socket
from typing import Final
from urllib.parse import urlsplit

from mockube.apimachinery.hosts import is_address, is_loopback

_PORTS: Final = {"http": 80, "https": 443}


def is_unserved(url: str, address: str) -> bool:
    """Return whether nothing listens at a URL. The names of hosts are served at `address`; of other machines nothing is known.

    A connection would reach the pod, so that its server would see one more client.
    """
    parts = urlsplit(url)
    host = parts.hostname if parts.hostname and is_address(parts.hostname) else address
    if not is_loopback(host):
        return False
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as free:
        free.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as listeners do, which it must not keep out
        try:
            free.bind((host, parts.port or _PORTS[parts.scheme]))
        except OSError:
            return False
    return True
