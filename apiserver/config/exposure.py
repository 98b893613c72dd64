"""Warnings about the parts of a configuration that give access to others, for the user who starts the server."""

from collections.abc import Sequence

OPEN = (
    "--authorization-mode=AlwaysAllow: every authenticated user may do everything; keep the server's kubeconfig and"
    " tokens to yourself"
)
ANY_HOST = (
    "--allowed-hosts=*: requests to any host name are served, so that a page in a browser may reach the server under a"
    " name of its own"
)


def warnings(modes: Sequence[str], allowed_hosts: Sequence[str]) -> Sequence[str]:
    """Return a line for each; none for a server with its defaults."""
    lines = []
    if "AlwaysAllow" in modes:
        lines.append(OPEN)
    if "*" in allowed_hosts:
        lines.append(ANY_HOST)
    return lines
