"""Warnings of a server that gives access to others, without what else a command line needs: `mockube up` prints them, too."""

from collections.abc import Sequence
from typing import Final

_OPEN: Final = (
    "--authorization-mode=AlwaysAllow: every authenticated user may do everything; keep the server's kubeconfig and"
    " tokens to yourself"
)
_ANY_HOST: Final = (
    "--allowed-hosts=*: requests to any host name are served, so that a page in a browser may reach the server under a"
    " name of its own"
)


def exposure_warnings(modes: Sequence[str], allowed_hosts: Sequence[str]) -> Sequence[str]:
    """Return a warning for each setting that gives access to others; none for a server with its defaults."""
    lines = []
    if "AlwaysAllow" in modes:
        lines.append(_OPEN)
    if "*" in allowed_hosts:
        lines.append(_ANY_HOST)
    return lines
