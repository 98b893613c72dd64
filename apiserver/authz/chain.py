"""The chain of authorizers in the order of `--authorization-mode`: the first that does not abstain decides.

Also the attributes of a request that authorizers see, and the Forbidden error.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from mockube.apimachinery import gotext, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Forbidden
from mockube.apiserver.user import User


class Attributes(Struct, frozen=True, kw_only=True):
    """Of a request for a resource, or for a path if there is no resource."""

    user: User
    verb: str
    path: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def is_resource(self) -> bool:
        return bool(self.resource)


def forbidden(attributes: Attributes, reason: str) -> Forbidden:
    message = _message(attributes)
    subject = GroupResource(attributes.group, attributes.resource)
    return status.forbidden(subject, attributes.name, f"{message}: {reason}" if reason else message)


def _message(attributes: Attributes) -> str:
    """Escaped, for it holds what the client sent and might be shown by a browser."""
    user = f"User {gotext.quote(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.is_resource:
        said = f"{user} path {gotext.quote(attributes.path)}"
    else:
        resource = "/".join(filter(None, (attributes.resource, attributes.subresource)))
        where = (
            f"in the namespace {gotext.quote(attributes.namespace)}"
            if attributes.namespace
            else "at the cluster scope"
        )
        said = (
            f"{user} resource {gotext.quote(resource)} in API group {gotext.quote(attributes.group)} {where}"
        )
    return said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


Rule: TypeAlias = dict[str, Any]
"""A ResourceRule or NonResourceRule, as a SelfSubjectRulesReview shows it."""


class Decision(Enum):
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


Verdict: TypeAlias = tuple[Decision, str]
"""A decision and the reason for it, which may be empty."""


class Authorizer(Protocol):
    async def decide(self, attributes: Attributes, /) -> Verdict: ...

    async def rules(self, user: User, namespace: str, /) -> tuple[Sequence[Rule], Sequence[Rule]]:
        """All that a user may do, in a namespace and by path."""


class AlwaysAllow:
    """Whatever is asked, of every user, everywhere."""

    async def decide(self, _attributes: Attributes, /) -> Verdict:
        return Decision.ALLOW, ""

    async def rules(self, _user: User, _namespace: str, /) -> tuple[Sequence[Rule], Sequence[Rule]]:
        anything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return [anything], [{"verbs": ["*"], "nonResourceURLs": ["*"]}]


class Authorization:
    """Answers whether a request may be made."""

    def __init__(self, authorizers: Sequence[Authorizer] = (AlwaysAllow(),)) -> None:
        self._authorizers = authorizers

    async def require(self, attributes: Attributes) -> None:
        """Raise Forbidden, unless the request may be made."""
        decision, reason = await self.decide(attributes)
        if decision is not Decision.ALLOW:
            raise forbidden(attributes, reason)

    async def decide(self, attributes: Attributes) -> Verdict:
        reasons = []
        for authorizer in self._authorizers:
            decision, reason = await authorizer.decide(attributes)
            if decision is not Decision.NO_OPINION:
                return decision, reason
            if reason:
                reasons.append(reason)
        return Decision.NO_OPINION, "\n".join(reasons)

    async def rules(self, user: User, namespace: str) -> tuple[Sequence[Rule], Sequence[Rule]]:
        resources: list[Rule] = []
        paths: list[Rule] = []
        for authorizer in self._authorizers:
            found = await authorizer.rules(user, namespace)
            resources += found[0]
            paths += found[1]
        return resources, paths
