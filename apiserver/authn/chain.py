"""Every way to be known, in the order in which they are asked."""

from collections.abc import Sequence
from typing import Protocol

from apimachinery import status
from apiserver.authn.presented import Presented
from apiserver.rest.call import User

ANONYMOUS = User(name="system:anonymous", groups=("system:unauthenticated",))
OPEN_TO_ALL = ("/healthz", "/livez", "/readyz", "/version")


class Authenticator(Protocol):
    async def authenticate(self, presented: Presented) -> User | None:
        """The user, or None if what is presented says nothing to this one; Unauthorized if it is wrong."""


class Authentication:
    """Answers who sent a request."""

    def __init__(self, authenticators: Sequence[Authenticator], *, anonymous: bool = True) -> None:
        self._authenticators = authenticators
        self._anonymous = anonymous

    async def authenticate(self, presented: Presented, path: str) -> User:
        """The user, or Unauthorized. Who shows nothing may still ask for what is open to all."""
        for authenticator in self._authenticators:
            user = await authenticator.authenticate(presented)
            if user is not None:
                return user
        if self._anonymous and not presented.authorization and path.startswith(OPEN_TO_ALL):
            return ANONYMOUS
        raise status.Unauthorized("Unauthorized")
