"""What a request shows of its sender, before anybody has looked whether it is true."""

from typing import TypeAlias

from msgspec import Struct

DistinguishedName: TypeAlias = tuple[tuple[tuple[str, str], ...], ...]
"""The subject of a certificate, as `ssl` tells it: attributes and their values, in their order."""


class Presented(Struct, frozen=True):
    authorization: str = ""
    """The header of that name."""
    certificate: DistinguishedName = ()
    """Whom the client's certificate names; its signature was checked when the connection was made."""

    @property
    def bearer(self) -> str:
        """The token of an Authorization header; "" if there is none."""
        scheme, _, token = self.authorization.partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""
