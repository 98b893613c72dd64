"""Every authorizer that is on, in the order of `--authorization-mode`: the first that has an opinion decides."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Protocol, TypeAlias

from apiserver.authz.attributes import Attributes, forbidden
from apiserver.rest.call import User

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
