"""What an API server and the program that runs it exchange to fork a cluster: lines of JSON on a socket."""

from typing import Final

from msgspec import Struct

MAX_LINE: Final = 1 << 16
NAME_PATTERN: Final = "^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"
"""The names of clusters."""


class ForkOrder(Struct, frozen=True, kw_only=True):
    """What the program that runs the server gets."""

    name: str
    snapshot: str
    """The file with the objects, which it may move."""


class ForkAnswer(Struct, frozen=True, kw_only=True):
    """What it returns."""

    url: str = ""
    kubeconfig: str = ""
    revision: int = 0
    """Which revision a copy of the process began with; 0 if the server knows it."""
    not_forked: tuple[str, ...] = ()
    """What this program leaves out, besides what the server leaves out."""
    problem: str = ""
    """Why there is no fork; "" if there is one."""
    is_conflict: bool = False
    """Whether the name is in use."""
