"""The user that a request is made as."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

MASTERS: Final = "system:masters"
"""The group of users who may do everything."""

SERVICE_ACCOUNT: Final = "system:serviceaccount:"
"""How the name of a user begins that is a service account; its namespace and its name follow."""


class User(Struct, frozen=True, kw_only=True):
    """The authenticated user of a request."""

    name: str
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


NODE: Final = "system:node:"
"""How the name of a user begins that is a node; the node's name follows."""
NODES: Final = "system:nodes"


def node_name(user: User) -> str | None:
    """Return the node that a user is; None if it is none, and "" if it is one without a name."""
    if not user.name.startswith(NODE) or NODES not in user.groups:
        return None
    return user.name.removeprefix(NODE)


class Impersonated(Struct, frozen=True, kw_only=True):
    """The user that a request is made as for another one. `constraint` is the verb that allowed it; "" for the legacy mode."""

    user: User
    constraint: str = ""


NOBODY: Final = User(name="")
"""Who sent a request that could not be authenticated."""
