"""The chain of authorizers: the privileged group, then `--authorization-mode`. The first that does not abstain decides.

Also the attributes of a request that authorizers see, and the Forbidden error.
"""

import html
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from msgspec import Struct

from mockube.apimachinery import gotext, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Forbidden
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.outgoing import Send
from mockube.apiserver.user import MASTERS, User
from mockube.component_base.clock import Clock

T = TypeVar("T")


class Attributes(Struct, frozen=True, kw_only=True):
    """The attributes of a request for a resource, or for a path if there is no resource."""

    user: User
    verb: str
    path: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    """Set for list, watch and deletecollection."""
    label_selector: str = ""

    @classmethod
    def of_row(
        cls, user: User, verb: str, row: Resource, namespace: str = "", name: str = "", subresource: str = ""
    ) -> "Attributes":
        """Return the attributes of a request for objects of a resource."""
        return cls(
            user=user,
            verb=verb,
            group=row.group,
            version=row.version,
            resource=row.name,
            subresource=subresource,
            namespace=namespace,
            name=name,
        )

    @property
    def is_resource(self) -> bool:
        """Return whether it is a request for a resource. A review may omit the resource's name and the path."""
        return bool(self.resource) or not self.path


def forbidden(attributes: Attributes, reason: str) -> Forbidden:
    message = _message(attributes)
    subject = GroupResource(attributes.group, attributes.resource)
    return status.forbidden(subject, attributes.name, f"{message}: {reason}" if reason else message)


def _message(attributes: Attributes) -> str:
    """Return the message, escaped, because it contains what the client sent and a browser might display it."""
    user = f"User {gotext.quote(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.is_resource:
        message = f"{user} path {gotext.quote(attributes.path)}"
    else:
        resource = "/".join(filter(None, (attributes.resource, attributes.subresource)))
        scope = (
            f"in the namespace {gotext.quote(attributes.namespace)}"
            if attributes.namespace
            else "at the cluster scope"
        )
        message = (
            f"{user} resource {gotext.quote(resource)} in API group {gotext.quote(attributes.group)} {scope}"
        )
    return html.escape(message, quote=False)


Rule: TypeAlias = dict[str, Any]
"""A ResourceRule or NonResourceRule of a SelfSubjectRulesReview."""


class Decision(Enum):
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


DecisionAndReason: TypeAlias = tuple[Decision, str]
"""A decision and the reason for it, which may be empty."""

_ALLOWED: Final[DecisionAndReason] = (Decision.ALLOW, "")
NO_OPINION: Final[DecisionAndReason] = (Decision.NO_OPINION, "")


class UserRules(Struct, kw_only=True):
    """The rules of a user in a namespace, and for paths."""

    resources: Sequence[Rule] = ()
    paths: Sequence[Rule] = ()
    is_incomplete: bool = False
    """Whether the user may have more rights."""
    error: str = ""


class PreparationNeeded(Exception):
    """An authorizer must first apply many changes: `prepare` applies them in the background."""

    def __init__(self, prepare: Callable[[], Awaitable[None]], prepare_at_once: Callable[[], None]) -> None:
        super().__init__()
        self.prepare = prepare
        self.prepare_at_once = prepare_at_once


class AuthorizerFailed(Exception):
    """An authorizer failed; `decision` is its decision in this case."""

    def __init__(self, problem: str, decision: Decision, reason: str = "") -> None:
        super().__init__(problem)
        self.decision = decision
        self.reason = reason


class RemoteAnswerNeeded(Exception):
    """An authorizer must call another server first: await `prepare`, then repeat the decision."""

    def __init__(self, prepare: Callable[[], Awaitable[None]]) -> None:
        super().__init__("the decision needs the webhook, which was not called yet")
        self.prepare = prepare


async def retry_decision(ask: Callable[[], T]) -> T:
    """Call a function that makes decisions, and repeat the call after each request to another server that it needs."""
    while True:
        try:
            return ask()
        except RemoteAnswerNeeded as error:
            await error.prepare()


async def retry_async_decision(ask: Callable[[], Awaitable[T]]) -> T:
    """Do the same for a coroutine function."""
    while True:
        try:
            return await ask()
        except RemoteAnswerNeeded as error:
            await error.prepare()


@runtime_checkable
class RemoteAuthorizer(Protocol):
    async def authorize(self, attributes: Attributes, /) -> DecisionAndReason:
        """Return the decision, or raise AuthorizerFailed."""


class AuthorizationObserver(Protocol):
    """Receives the results of webhooks and of reloads, for metrics."""

    def record_evaluation(self, name: str, result: str, seconds: float) -> None: ...

    def record_fail_open(self, name: str, result: str) -> None: ...

    def record_match(self, name: str, seconds: float, *, failed: bool, excluded: bool) -> None: ...

    def record_config(self, data: bytes) -> None: ...

    def record_reload(self, *, success: bool) -> None: ...


class RemoteAuthorization(Struct, frozen=True):
    """The dependencies of authorizers that call other servers. The observer is created when it is needed."""

    send: Send
    observer: Callable[[], AuthorizationObserver]
    clock: Clock


class Authorizer(Protocol):
    def decide(self, attributes: Attributes, /) -> DecisionAndReason:
        """Return the decision, or raise PreparationNeeded."""

    def rules(self, user: User, namespace: str, /) -> UserRules:
        """Return the rules of a user in a namespace, and for paths."""


class AlwaysAllow:
    """Allows every request."""

    def decide(self, _attributes: Attributes, /) -> DecisionAndReason:
        return _ALLOWED

    def rules(self, _user: User, _namespace: str, /) -> UserRules:
        return UserRules(
            resources=[{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            paths=[{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        )


class AlwaysDeny:
    """Has no opinion on any request, which leaves the decision to the next authorizer."""

    def decide(self, _attributes: Attributes, /) -> DecisionAndReason:
        return Decision.NO_OPINION, "Everything is forbidden."

    def rules(self, _user: User, _namespace: str, /) -> UserRules:
        return UserRules()


class DecisionCounts:
    """The numbers of an authorizer's decisions."""

    __slots__ = ("allowed", "denied")

    def __init__(self) -> None:
        self.allowed = self.denied = 0

    def add(self, decision: Decision) -> None:
        if decision is Decision.ALLOW:
            self.allowed += 1
        elif decision is Decision.DENY:
            self.denied += 1


class Authorization:
    """Authorizes requests. Members of system:masters may send every request."""

    names_authorizers = True
    """Whether reasons begin with the name of their authorizer, as they do since 1.37."""

    def __init__(self, authorizers: Sequence[Authorizer] = (), names: Sequence[tuple[str, str]] = ()) -> None:
        self.counts: dict[tuple[str, str], DecisionCounts] = {}
        """By type and name of an authorizer; requests of system:masters are not counted."""
        self.use(authorizers, names)

    def use(self, authorizers: Sequence[Authorizer], names: Sequence[tuple[str, str]] = ()) -> None:
        """Replace the authorizers; `names` are their types and names."""
        names = names or [(type(authorizer).__name__, "") for authorizer in authorizers]
        counts = [self.counts.setdefault(name, DecisionCounts()) for name in names]
        self._authorizers = [
            (authorizer, count, name)
            for authorizer, count, (_, name) in zip(authorizers, counts, names, strict=True)
        ]
        self._is_remote = any(isinstance(authorizer, RemoteAuthorizer) for authorizer in authorizers)

    def decisions(self) -> Mapping[tuple[str, str], tuple[int, int]]:
        """Return the numbers of allowed and denied requests of each authorizer."""
        return {name: (counts.allowed, counts.denied) for name, counts in self.counts.items()}

    async def require(self, attributes: Attributes) -> None:
        """Raise Forbidden unless the request is allowed, or InternalError if an authorizer failed."""
        try:
            decision, reason = await self.authorize(attributes)
        except AuthorizerFailed as error:
            raise status.internal_error(str(error)) from error
        if decision is not Decision.ALLOW:
            raise forbidden(attributes, reason)

    async def authorize(self, attributes: Attributes) -> DecisionAndReason:
        """Return the decision about a request, without blocking others while an authorizer prepares or calls a server.

        Raise AuthorizerFailed if an authorizer failed and no other one allowed the request.
        """
        if self._is_remote:
            return await self._authorize_remotely(attributes)
        while True:
            try:
                return self._decide(attributes)
            except PreparationNeeded as error:
                await error.prepare()

    async def _authorize_remotely(self, attributes: Attributes) -> DecisionAndReason:
        if MASTERS in attributes.user.groups:
            return _ALLOWED
        reasons, problems = list[str](), list[str]()
        for authorizer, counts, name in self._authorizers:
            try:
                if isinstance(authorizer, RemoteAuthorizer):
                    decision, reason = await authorizer.authorize(attributes)
                else:
                    decision, reason = await _decide_prepared(authorizer, attributes)
            except AuthorizerFailed as error:
                decision, reason = error.decision, error.reason
                problems.append(str(error))
            counts.add(decision)
            if decision is Decision.ALLOW:
                return decision, reason
            if reason:
                reasons.append(self._with_name(name, reason))
            if decision is Decision.DENY:
                if problems:
                    raise AuthorizerFailed(aggregate(problems), decision, reason)
                return decision, reason
        if problems:
            raise AuthorizerFailed(aggregate(problems), Decision.NO_OPINION, "\n".join(reasons))
        return Decision.NO_OPINION, "\n".join(reasons)

    def decide(self, attributes: Attributes) -> DecisionAndReason:
        """Return the decision without waiting. An authorizer that failed has the decision of its failure.

        Raise RemoteAnswerNeeded if another server must be called: see `retry_decision`.
        """
        while True:
            try:
                return self._decide(attributes)
            except PreparationNeeded as error:
                error.prepare_at_once()

    def _decide(self, attributes: Attributes) -> DecisionAndReason:
        # Upstream's first authorizer, whatever the configuration (pkg/kubeapiserver/authorizer/reload.go).
        if MASTERS in attributes.user.groups:
            return _ALLOWED
        reasons = []
        for authorizer, counts, name in self._authorizers:
            try:
                outcome = authorizer.decide(attributes)
            except AuthorizerFailed as error:
                outcome = error.decision, error.reason
            if outcome[0] is not Decision.NO_OPINION:
                counts.add(outcome[0])
                return outcome
            if outcome[1]:
                reasons.append(self._with_name(name, outcome[1]))
        return Decision.NO_OPINION, "\n".join(reasons)

    def _with_name(self, name: str, reason: str) -> str:
        return f"{name}: {reason}" if name and self.names_authorizers else reason

    def is_allowed(self, attributes: Attributes) -> bool:
        return self.decide(attributes)[0] is Decision.ALLOW

    def rules(self, user: User, namespace: str) -> UserRules:
        all_rules = [authorizer.rules(user, namespace) for authorizer, *_ in self._authorizers]
        return UserRules(
            resources=[rule for rules in all_rules for rule in rules.resources],
            paths=[rule for rules in all_rules for rule in rules.paths],
            is_incomplete=any(rules.is_incomplete for rules in all_rules),
            error=aggregate([rules.error for rules in all_rules if rules.error]),
        )


async def _decide_prepared(authorizer: Authorizer, attributes: Attributes) -> DecisionAndReason:
    while True:
        try:
            return authorizer.decide(attributes)
        except PreparationNeeded as error:
            await error.prepare()


def aggregate(problems: Sequence[str]) -> str:
    """Join the messages of several errors as upstream does: each once, and in brackets if there are several."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""
