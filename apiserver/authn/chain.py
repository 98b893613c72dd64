"""Every way to be known, in the order in which they are asked."""

from collections.abc import Mapping

from apimachinery import status
from apiserver.rest.call import User

ANONYMOUS = User(name="system:anonymous", groups=("system:unauthenticated",))
OPEN_TO_ALL = ("/healthz", "/livez", "/readyz", "/version")


class Authentication:
    """Answers who sent a request; what is open to all needs no answer."""

    def __init__(self, tokens: Mapping[str, User]) -> None:
        self._tokens = tokens

    def authenticate(self, authorization: str, path: str) -> User:
        """The user of an Authorization header, or Unauthorized."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer":
            user = self._tokens.get(token.strip())
            if user is not None:
                return user
            raise status.Unauthorized("Unauthorized")
        if path.startswith(OPEN_TO_ALL):
            return ANONYMOUS
        raise status.Unauthorized("Unauthorized")
