"""Acting as somebody else: the Impersonate headers, each of which the real user must be allowed to use."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from apimachinery import status
from apiserver.authn.chain import ANONYMOUS
from apiserver.authn.serviceaccount.claims import groups, split_username
from apiserver.authn.tokens import AUTHENTICATED
from apiserver.authz.attributes import Attributes
from apiserver.authz.chain import Authorization
from apiserver.rest.call import User

USER, GROUP, UID = "impersonate-user", "impersonate-group", "impersonate-uid"
EXTRA = "impersonate-extra-"
_UNAUTHENTICATED = ANONYMOUS.groups[0]
_AUTHENTICATION = ("authentication.k8s.io", "v1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """Who somebody wants to be."""

    user: str
    groups: Sequence[str] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


def read(headers: Sequence[tuple[str, str]]) -> Impersonation | None:
    """What headers ask for, their names in lower case; None if they ask for nothing of the kind."""
    user = next((value for name, value in headers if name == USER), "")
    uid = next((value for name, value in headers if name == UID), "")
    named = tuple(value for name, value in headers if name == GROUP)
    extra: dict[str, list[str]] = {}
    for name, value in headers:
        if name.startswith(EXTRA):
            extra.setdefault(unquote(name.removeprefix(EXTRA)), []).append(value)
    if user:
        return Impersonation(user=user, groups=named, uid=uid, extra=extra)
    if named or uid or extra:
        wanted = [*named, *(value for values in extra.values() for value in values), *filter(None, [uid])]
        raise status.BadRequest(f"requested [{' '.join(wanted)}] without impersonating a user")
    return None


async def impersonate(authorization: Authorization, real: User, wanted: Impersonation) -> User:
    """The user that the real one may be, or Forbidden."""
    for attributes in _acts(real, wanted):
        await authorization.require(attributes)
    return User(name=wanted.user, uid=wanted.uid, groups=_groups(wanted), extra=wanted.extra)


def _acts(real: User, wanted: Impersonation) -> Iterator[Attributes]:
    """All that is done by it, one permission each."""
    account = split_username(wanted.user)
    if account is None:
        yield Attributes(user=real, verb="impersonate", version="v1", resource="users", name=wanted.user)
    else:
        namespace, name = account
        yield Attributes(
            user=real,
            verb="impersonate",
            version="v1",
            resource="serviceaccounts",
            namespace=namespace,
            name=name,
        )
    for group in wanted.groups:
        yield Attributes(user=real, verb="impersonate", version="v1", resource="groups", name=group)
    for key, values in wanted.extra.items():
        for value in values:
            yield _attribute(real, "userextras", value, key)
    if wanted.uid:
        yield _attribute(real, "uids", wanted.uid)


def _attribute(real: User, resource: str, name: str, subresource: str = "") -> Attributes:
    group, version = _AUTHENTICATION
    return Attributes(
        user=real,
        verb="impersonate",
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        name=name,
    )


def _groups(wanted: Impersonation) -> tuple[str, ...]:
    """The groups asked for, or those of a service account; and whether the user counts as known."""
    account = split_username(wanted.user)
    own = tuple(wanted.groups) or (groups(account[0]) if account else ())
    if wanted.user == ANONYMOUS.name:
        return own if _UNAUTHENTICATED in own else (*own, _UNAUTHENTICATED)
    return own if {AUTHENTICATED, _UNAUTHENTICATED} & set(own) else (*own, AUTHENTICATED)
