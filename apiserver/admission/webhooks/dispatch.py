"""Call one webhook for a write, and evaluate its response."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Self

from msgspec import Struct, field

from mockube.apimachinery import gotext, meta, randomness, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.admission.configurations import ALLOW, SIMULATED_CHOICES
from mockube.apiserver.admission.policies.activation import activation, authorizers
from mockube.apiserver.admission.policies.match_conditions import ConditionsFailed, webhook_conditions
from mockube.apiserver.admission.policies.matching import namespace_labels
from mockube.apiserver.admission.rules import Equivalents
from mockube.apiserver.admission.versions import prepare_version, to_version, without_system_fields
from mockube.apiserver.authz.chain import Authorization, retry_async_decision
from mockube.apiserver.kinds.admissionregistration.matching import VIRTUAL_EXCLUDED_SINCE, VIRTUAL_RESOURCES
from mockube.apiserver.metrics.admission import CALLING, INTERNAL, NO_ERROR, WebhookMetrics
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes
from mockube.apiserver.tracing import spans
from mockube.apiserver.tracing.spans import NoSpan, Span

from . import hooks, review
from .hooks import Hook, Hooks, WebhookInvocation
from .review import WebhookCallFailed, WebhookResponse
from .services import Caller, SimulatedWebhook, endpoint

LOG: Final = logging.getLogger(__name__)
_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")


class WebhookDependencies(Struct, frozen=True, kw_only=True):
    """The dependencies of webhook calls."""

    caller: Caller
    authorization: Authorization
    """Authorizes the checks in match conditions."""
    metrics: WebhookMetrics
    equivalents: Equivalents
    services: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """The host and port of Services that have no reachable addresses, by NAMESPACE/NAME."""
    allows_simulated: bool = False
    """Whether writes pass without webhooks whose Services lead to simulated pods only."""


class ConfiguredWebhooks:
    """The webhooks of one kind of configuration, read again after a change."""

    def __init__(self, resource: GroupResource, equivalents: Equivalents) -> None:
        self._resource = resource
        self._equivalents = equivalents
        self._hooks = Hooks((), equivalents)

    def invocations(self, registry: Registry, attributes: AdmissionAttributes) -> Sequence[WebhookInvocation]:
        """Return the webhooks whose rules match a write."""
        resource = attributes.resource.group_resource
        if resource in VIRTUAL_RESOURCES and not registry.is_before(VIRTUAL_EXCLUDED_SINCE):
            return ()
        configurations = registry.list_cached(self._resource)
        if configurations != self._hooks.configurations:
            self._hooks = Hooks(configurations, self._equivalents)
        if not configurations:
            return ()
        return self._hooks.matching(attributes.operation, attributes.resource, attributes.subresource)


async def should_call_hook(
    environment: WebhookDependencies,
    registry: Registry,
    invocation: WebhookInvocation,
    attributes: AdmissionAttributes,
    *,
    mutating: bool,
) -> bool:
    """Return whether the selectors and the conditions of a webhook match a write; raise Forbidden if a condition fails."""
    hook = invocation.hook
    if not hooks.selects(hook, attributes, lambda: namespace_labels(registry, attributes)):
        return False
    if not hook.conditions:
        return True
    await prepare_version(registry, attributes, invocation.row)
    matches = partial(_matches_conditions, environment, registry, invocation, attributes, mutating=mutating)
    return await retry_async_decision(partial(registry.run, attributes.context, matches))


def _matches_conditions(
    environment: WebhookDependencies,
    registry: Registry,
    invocation: WebhookInvocation,
    attributes: AdmissionAttributes,
    *,
    mutating: bool,
) -> bool:
    """Return whether the conditions of a webhook match a write; raise Forbidden if a condition fails."""
    hook = invocation.hook
    seen = activation(registry, attributes, invocation.row, mutating=mutating)
    try:
        return webhook_conditions(*hook.conditions).hold(
            seen | authorizers(environment.authorization, attributes)
        )
    except ConditionsFailed as error:
        if hook.fails_open:
            return False
        LOG.warning("Failed evaluating match conditions, failing closed %s: %s", hook.name, error)
        name = attributes.name or meta.name(attributes.object or {"metadata": {}})
        raise status.forbidden(attributes.resource.group_resource, name, str(error)) from error


def _with_version(new: Tree | None, old: Tree | None) -> Tree | None:
    """Return the new object with the old resource version, if it has none."""
    version = meta.resource_version(old or {})
    if new is None or not version or meta.resource_version(new):
        return new
    return new | {"metadata": new["metadata"] | {"resourceVersion": version}}


async def call_webhook(
    environment: WebhookDependencies,
    registry: Registry,
    invocation: WebhookInvocation,
    attributes: AdmissionAttributes,
    *,
    mutating: bool,
) -> WebhookResponse:
    """Send a review and return the answer, or raise CallFailed; ApiError if the webhook must not be called."""
    hook, row = invocation.hook, invocation.row
    if attributes.dry_run and hook.spec.get("sideEffects") not in _NO_SIDE_EFFECTS:
        raise status.BadRequest(f"admission webhook {gotext.quote(hook.name)} does not support dry run")
    version = review.review_version(hook)
    uid = randomness.uid(registry.random)
    await prepare_version(registry, attributes, row)
    new = to_version(registry, attributes, row, attributes.object)
    old = to_version(registry, attributes, row, attributes.old)
    new = without_system_fields(attributes, new) if mutating else _with_version(new, old)
    body = await registry.run(attributes.context, review.request, invocation, attributes, uid, new, old)
    try:
        webhook = endpoint(
            registry, hook.spec.get("clientConfig") or {}, environment.services, seconds=hook.seconds
        )
        async with attributes.context.work.without_memory():
            with _span(hook, attributes, uid, mutating=mutating) as span:
                data = await environment.caller.post(webhook, body, seconds=hook.seconds)
                span.add_event("Request completed")
    except SimulatedWebhook as failure:
        if not _allows_simulated(environment, hook, attributes):
            hint = f"or with --{hooks.SIMULATED_FLAG}={ALLOW}, which lets writes pass without the webhook"
            raise SimulatedWebhook(f"{failure}, {hint}") from failure
        return _allow_without_call(hook, failure, attributes)
    answer = await registry.worker.run(len(data), lambda: review.read(data, uid, version, mutating=mutating))
    for key, value in answer.annotations:
        attributes.context.report.annotations[f"{hook.name}/{key}"] = value
    for warning in answer.warnings:
        attributes.context.report.warn(warning)
    if not answer.allowed:
        raise review.denial_error(hook, answer.status)
    return answer


def _span(hook: Hook, attributes: AdmissionAttributes, uid: str, *, mutating: bool) -> Span | NoSpan:
    resource = attributes.resource
    return spans.child(
        f"Call {'mutating' if mutating else 'validating'} webhook",
        lambda: {
            "configuration": hook.configuration,
            "webhook": hook.name,
            "resource": f"{resource.group}/{resource.version}, Resource={resource.name}",
            "subresource": attributes.subresource,
            "operation": attributes.operation.value,
            "UID": uid,
        },
    )


def _allows_simulated(environment: WebhookDependencies, hook: Hook, attributes: AdmissionAttributes) -> bool:
    """Return whether a write passes without the webhook: the annotation of its configuration decides before the flag."""
    choice = hook.simulated
    if choice and choice not in SIMULATED_CHOICES:
        annotation = f"{hooks.SIMULATED_ANNOTATION}: {choice!r}"
        attributes.context.report.warn(
            f"{hook.configuration}: {annotation}: must be {' or '.join(SIMULATED_CHOICES)}; the flag applies"
        )
        choice = ""
    return choice == ALLOW if choice else environment.allows_simulated


def _allow_without_call(
    hook: Hook, failure: SimulatedWebhook, attributes: AdmissionAttributes
) -> WebhookResponse:
    LOG.info("Webhook %s was not called: %s", hook.name, failure)
    service = (hook.spec.get("clientConfig") or {}).get("service") or {}
    attributes.context.report.warn(
        f"mockube: webhook {gotext.quote(hook.name)} of {hook.configuration} was not called: service "
        f"{service.get('namespace')}/{service.get('name')} leads to simulated pods only"
    )
    return WebhookResponse(allowed=True)


class FailurePolicy:
    """The failurePolicy of a webhook around one call, which is counted with its result.

    As a context manager: an exception of its body is the result of the call. If the policy ignores it, `failed_open` is set.
    """

    def __init__(
        self,
        environment: WebhookDependencies,
        registry: Registry,
        hook: Hook,
        attributes: AdmissionAttributes,
        kind: str,
    ) -> None:
        self._metrics = environment.metrics
        self._clock = registry.clock.real
        self._hook = hook
        self._operation = attributes.operation.value
        self._report = attributes.context.report
        self._kind = kind
        self._began = registry.clock.real.monotonic()
        self.failed_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        hook = self._hook
        if error is None:
            self._observe(200)
        elif isinstance(error, WebhookCallFailed):
            if hook.fails_open:
                LOG.warning("Failed calling webhook, failing open %s: %s", hook.name, error)
                self._observe(error.code)
                self._metrics.record_fail_open(hook.name, self._kind)
                self.failed_open = True
                return True
            self._observe(error.code, CALLING)
            problem = f"failed calling webhook {gotext.quote(hook.name)}: {error}"
            raise status.internal_error(problem) from error
        elif isinstance(error, ApiError):
            is_answer = isinstance(error, review.WebhookDenied)
            self._observe(error.code if is_answer else 0, NO_ERROR if is_answer else INTERNAL)
        return False

    def _observe(self, code: int, error_type: str = "") -> None:
        seconds = self._clock.monotonic() - self._began
        outcome = {"type": self._kind, "error_type": error_type}
        self._metrics.observe(self._hook.name, self._operation, code, seconds, **outcome)
        self._report.add_webhook(self._kind, seconds)
