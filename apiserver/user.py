"""The user that a request is made as."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

MASTERS: Final = "system:masters"
"""The group of users that are allowed everything."""

AUTHENTICATED: Final = "system:authenticated"
"""The group of all users but the anonymous one."""

SERVICE_ACCOUNT: Final = "system:serviceaccount:"
"""The prefix of a service account's user name; the account's namespace and name follow."""


class User(Struct, frozen=True, kw_only=True):
    """The authenticated user of a request."""

    name: str
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


ANONYMOUS: Final = User(name="system:anonymous", groups=("system:unauthenticated",))
"""The user of a request without credentials."""

SERVER: Final = User(name="system:apiserver", groups=(MASTERS,))
"""The user as whom the server itself writes."""


def with_authenticated(user: User) -> User:
    """Return the user with the group system:authenticated, unless the user is unauthenticated."""
    if user.name == ANONYMOUS.name or {AUTHENTICATED, *ANONYMOUS.groups} & set(user.groups):
        return user
    return User(name=user.name, uid=user.uid, groups=(*user.groups, AUTHENTICATED), extra=user.extra)


NODE: Final = "system:node:"
"""The prefix of a node's user name; the node's name follows."""
NODES: Final = "system:nodes"


def node_name(user: User) -> str | None:
    """Return the node name of a node's user; None if the user is not a node, "" if the name is missing."""
    if not user.name.startswith(NODE) or NODES not in user.groups:
        return None
    return user.name.removeprefix(NODE)


class ImpersonatedUser(Struct, frozen=True, kw_only=True):
    """An impersonated user. `constraint` is the verb that allowed the impersonation; "" for the legacy mode."""

    user: User
    constraint: str = ""


NO_USER: Final = User(name="")
"""The user of a request before it is authenticated."""
