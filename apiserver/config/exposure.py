"""What of a configuration lets others in, in words for whoever starts the server."""

from collections.abc import Sequence
from ipaddress import ip_address

OPEN = (
    "Listening on %s, which other machines may reach, while every user who is known may do everything"
    " (--authorization-mode=AlwaysAllow): keep its kubeconfig and tokens to yourself"
)
ANY_HOST = (
    "--allowed-hosts=*: requests to any host name are served, so that a page in a browser may reach the server under a"
    " name of its own"
)


def warnings(bind_address: str, modes: Sequence[str], allowed_hosts: Sequence[str]) -> Sequence[str]:
    """Return a line for each; none for a server that only its own machine reaches."""
    found = []
    if "AlwaysAllow" in modes and not ip_address(bind_address).is_loopback:
        found.append(OPEN % bind_address)
    if "*" in allowed_hosts:
        found.append(ANY_HOST)
    return found
