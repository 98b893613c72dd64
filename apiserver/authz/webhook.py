"""The Webhook authorizer, which sends SubjectAccessReviews to another server."""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery import labels
from mockube.apimachinery.labels import Operator, SelectorError
from mockube.apiserver import fields
from mockube.apiserver.fields import FieldSelectorError
from mockube.apiserver.outgoing import Reviewer, ReviewFailed
from mockube.apiserver.user import User
from mockube.component_base.clock import Clock

from .chain import (
    NO_OPINION,
    Attributes,
    AuthorizationObserver,
    AuthorizerFailed,
    Decision,
    DecisionAndReason,
    RemoteAnswerNeeded,
    UserRules,
)
from .conditions import AuthorizerConditionsFailed, Conditions

LOG: Final = logging.getLogger(__name__)
MAX_CACHED_ANSWERS: Final = 8192
"""As upstream (apiserver/plugin/pkg/authorizer/webhook/webhook.go)."""
MAX_CACHED_SIZE: Final = 10_000
"""The size of the largest attributes that are cached, in characters, to bound the memory."""
RECENT_SECONDS: Final = 1.0
"""The time for which a response is valid for the request that waited for it."""
_OPERATORS: Final = {
    Operator.EQUALS: "In",
    Operator.DOUBLE_EQUALS: "In",
    Operator.IN: "In",
    Operator.NOT_EQUALS: "NotIn",
    Operator.NOT_IN: "NotIn",
    Operator.EXISTS: "Exists",
    Operator.DOES_NOT_EXIST: "DoesNotExist",
}


class WebhookSettings(Struct, frozen=True, kw_only=True):
    name: str
    version: str = "v1"
    authorized_seconds: float = 300.0
    """0: allowed requests are not cached."""
    unauthorized_seconds: float = 30.0
    on_error: Decision = Decision.NO_OPINION
    conditions: Conditions | None = None


class _ResponseCache:
    """A cache of responses with expiration; the least recently used entry is evicted first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: OrderedDict[bytes, tuple[float, Any]] = OrderedDict()

    def get(self, key: bytes) -> Any:
        until, answer = self._entries.get(key, (0.0, None))
        if answer is None or until <= self._clock.monotonic():
            return None
        self._entries.move_to_end(key)
        return answer

    def add(self, key: bytes, answer: Any, seconds: float) -> None:
        if seconds <= 0:
            return
        self._entries[key] = self._clock.monotonic() + seconds, answer
        self._entries.move_to_end(key)
        if len(self._entries) > MAX_CACHED_ANSWERS:
            self._entries.popitem(last=False)


class WebhookAuthorizer:
    """Calls a webhook, unless its match conditions exclude a request or the response is cached."""

    def __init__(
        self, settings: WebhookSettings, reviewer: Reviewer, clock: Clock, observer: AuthorizationObserver
    ) -> None:
        self._settings = settings
        self._reviewer = reviewer
        self._clock = clock
        self._observer = observer
        self._cached = _ResponseCache(clock)
        self._recent = _ResponseCache(clock)

    async def authorize(self, attributes: Attributes) -> DecisionAndReason:
        """Return the decision, or raise AuthorizerFailed."""
        spec = spec_of(attributes)
        if not self._matches(spec):
            return NO_OPINION
        key = orjson.dumps(spec)
        status = self._cached.get(key)
        if status is None:
            status = await self._call_webhook(spec)
            self._cache_review(key, attributes, status)
        return _read_decision(status)

    def decide(self, attributes: Attributes, /) -> DecisionAndReason:
        """Return the decision if it is cached; raise RemoteAnswerNeeded otherwise, or AuthorizerFailed."""
        spec = spec_of(attributes)
        if not self._matches(spec):
            return NO_OPINION
        key = orjson.dumps(spec)
        result = self._cached.get(key) or self._recent.get(key)
        if result is None:
            raise RemoteAnswerNeeded(lambda: self._prepare(key, attributes))
        if isinstance(result, AuthorizerFailed):
            raise result
        return _read_decision(result)

    def rules(self, _user: User, _namespace: str, /) -> UserRules:
        return UserRules(is_incomplete=True, error="webhook authorizer does not support user rule resolution")

    async def _prepare(self, key: bytes, attributes: Attributes) -> None:
        try:
            status = await self._call_webhook(spec_of(attributes))
        except AuthorizerFailed as error:
            self._recent.add(key, error, RECENT_SECONDS)
            return
        self._cache_review(key, attributes, status)
        self._recent.add(key, status, RECENT_SECONDS)

    async def _call_webhook(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        settings = self._settings
        if settings.version == "v1beta1" and "groups" in spec:
            spec = {("group" if name == "groups" else name): value for name, value in spec.items()}
        version = f"authorization.k8s.io/{settings.version}"
        review = {"kind": "SubjectAccessReview", "apiVersion": version, "metadata": {}, "spec": spec}
        try:
            return await self._reviewer.review(review | {"status": {"allowed": False}})
        except ReviewFailed as error:
            LOG.error("Failed to make webhook authorizer request: %s", error)  # noqa: TRY400 - upstream's
            if settings.on_error is Decision.NO_OPINION:
                self._observer.record_fail_open(settings.name, "timeout" if error.is_timeout else "error")
            raise AuthorizerFailed(str(error), settings.on_error) from error

    def _matches(self, spec: Mapping[str, Any]) -> bool:
        """Return whether the match conditions include a request."""
        conditions = self._settings.conditions
        if conditions is None:
            return True
        began, holds, failed = self._clock.real.monotonic(), False, True
        try:
            holds = conditions.hold(for_conditions(spec))
            failed = False
        except AuthorizerConditionsFailed as error:
            raise AuthorizerFailed(str(error), self._settings.on_error) from error
        finally:
            seconds = self._clock.real.monotonic() - began
            excluded = not (holds or failed)
            self._observer.record_match(self._settings.name, seconds, failed=failed, excluded=excluded)
        return holds

    def _cache_review(self, key: bytes, attributes: Attributes, status: Mapping[str, Any]) -> None:
        size = sum(
            len(text)
            for text in (
                attributes.namespace,
                attributes.verb,
                attributes.group,
                attributes.version,
                attributes.resource,
                attributes.subresource,
                attributes.name,
                attributes.path,
            )
        )
        if size < MAX_CACHED_SIZE:
            settings = self._settings
            allowed = settings.authorized_seconds if status.get("allowed") else settings.unauthorized_seconds
            self._cached.add(key, status, allowed)


def _read_decision(status: Mapping[str, Any]) -> DecisionAndReason:
    allowed, denied = bool(status.get("allowed")), bool(status.get("denied"))
    reason = str(status.get("reason") or "")
    if allowed and denied:
        problem = "webhook subject access review returned both allow and deny response"
        raise AuthorizerFailed(problem, Decision.DENY, reason)
    return Decision.DENY if denied else Decision.ALLOW if allowed else Decision.NO_OPINION, reason


def spec_of(attributes: Attributes) -> dict[str, Any]:
    """Return the spec of a SubjectAccessReview, without empty fields, as Go encodes it."""
    user = attributes.user
    spec: dict[str, Any] = {}
    if attributes.is_resource:
        spec["resourceAttributes"] = _without_empty(
            {
                "namespace": attributes.namespace,
                "verb": attributes.verb,
                "group": attributes.group,
                "version": attributes.version,
                "resource": attributes.resource,
                "subresource": attributes.subresource,
                "name": attributes.name,
                "fieldSelector": _field_selector(attributes.field_selector),
                "labelSelector": _label_selector(attributes.label_selector),
            }
        )
    else:
        spec["nonResourceAttributes"] = _without_empty({"path": attributes.path, "verb": attributes.verb})
    extra = {name: list(values) for name, values in user.extra.items()}
    return spec | _without_empty(
        {"user": user.name, "groups": list(user.groups), "extra": extra, "uid": user.uid}
    )


def _without_empty(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if value}


def _field_selector(text: str) -> Mapping[str, Any]:
    try:
        terms = fields.parse(text).terms if text else ()
    except FieldSelectorError:
        return {}
    requirements = [
        {"key": term.field, "operator": "In" if term.equal else "NotIn", "values": [term.value]}
        for term in terms
    ]
    return _without_empty({"requirements": requirements})


def _label_selector(text: str) -> Mapping[str, Any]:
    try:
        requirements = labels.parse(text).requirements if text else ()
    except SelectorError:
        return {}
    entries = [
        _without_empty(
            {
                "key": requirement.key,
                "operator": _OPERATORS[requirement.operator],
                "values": list(requirement.values),
            }
        )
        for requirement in requirements
        if requirement.operator in _OPERATORS
    ]
    return _without_empty({"requirements": entries})


_RESOURCE: Final = ("namespace", "verb", "group", "version", "resource", "subresource", "name")


def for_conditions(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a spec for expressions, in which empty strings are set rather than omitted."""
    full_spec = {"user": "", "groups": [], "uid": "", "extra": {}, **spec}
    if "resourceAttributes" in spec:
        full_spec["resourceAttributes"] = dict.fromkeys(_RESOURCE, "") | spec["resourceAttributes"]
    else:
        full_spec["nonResourceAttributes"] = {"path": "", "verb": ""} | spec["nonResourceAttributes"]
    return full_spec
