"""Client certificates: the common name is the user, each organization a group."""

from functools import lru_cache

from apiserver.authn.presented import DistinguishedName, Presented
from apiserver.authn.tokens import AUTHENTICATED
from apiserver.rest.call import User


class ClientCertificates:
    """Certificates that do not come from the clients' authority never get this far."""

    async def authenticate(self, presented: Presented) -> User | None:
        return user_of(presented.certificate) if presented.certificate else None


@lru_cache(maxsize=1024)
def user_of(subject: DistinguishedName) -> User | None:
    """Whom a subject stands for; nobody, if it has no common name."""
    attributes = [attribute for group in subject for attribute in group]
    names = [value for name, value in attributes if name == "commonName"]
    groups = tuple(value for name, value in attributes if name == "organizationName")
    if not names or not names[-1]:
        return None
    return User(name=names[-1], groups=(*groups, AUTHENTICATED))
