"""The plugin ValidatingAdmissionPolicy."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Cause
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.admission.plugin import Plugin, forbidden
from mockube.apiserver.admission.rules import Equivalents
from mockube.apiserver.authz.chain import Authorization
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.metrics.admission import error_type
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, Target
from mockube.apiserver.registry.write import with_conversions
from mockube.component_base.metrics import TimedOperations

from .activation import activation, authorizers
from .definition import EXEMPT, GROUP, MisconfiguredPolicy, PolicyDenied, PolicyInvocation, PolicySource
from .validating_policy import INVALID, Denial, ValidatingPolicy

_POLICIES: Final = GroupResource(GROUP, "validatingadmissionpolicies")
_BINDINGS: Final = GroupResource(GROUP, "validatingadmissionpolicybindings")
_AUDITED: Final = "validation.policy.admission.k8s.io/validation_failure"
_ALL_AUDITED_SINCE: Final = "1.37"
_MAX_FAILURES: Final = 50
"""The number of failures that the annotation has."""
_CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}


class _Refusal(Struct, frozen=True):
    policy: ValidatingPolicy
    denial: Denial
    binding: str | None = None

    def __str__(self) -> str:
        bound = "" if self.binding is None else f" with binding '{self.binding}'"
        return f"ValidatingAdmissionPolicy '{self.policy.name}'{bound} denied request: {self.denial.message}"


class ValidatingAdmissionPolicy(Plugin):
    operations = frozenset(Operation)
    needs: GroupResource | None = _BINDINGS

    def __init__(
        self, authorization: Authorization, equivalents: Equivalents, metrics: TimedOperations
    ) -> None:
        self._authorization = authorization
        self._metrics = metrics
        self._source = PolicySource(_POLICIES, _BINDINGS, ValidatingPolicy, equivalents)

    def handles(self, operation: Operation, target: Target) -> bool:
        return target[:2] not in EXEMPT and super().handles(operation, target)

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        evaluate = partial(registry.run, attributes.context, self._judge, registry, attributes)
        await with_conversions(attributes.context, evaluate)

    def _judge(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        invocations = self._source.invocations(registry, attributes)
        refusals = [
            *_PolicyEvaluation(registry, attributes, self._authorization, self._metrics).refusals(invocations)
        ]
        if refusals:
            raise _denial_error(attributes, refusals[0])


def _denial_error(attributes: AdmissionAttributes, refusal: _Refusal) -> PolicyDenied:
    message = str(refusal)
    error = forbidden(attributes, message, [Cause(message=message)])
    reason = refusal.denial.reason or INVALID
    return PolicyDenied(error.message, error.details, reason, code=_CODES.get(reason, 422))


class _PolicyEvaluation:
    """Evaluates policies for one write."""

    def __init__(
        self,
        registry: Registry,
        attributes: AdmissionAttributes,
        authorization: Authorization,
        metrics: TimedOperations,
    ) -> None:
        self._registry = registry
        self._attributes = attributes
        self._authorization = authorization
        self._metrics = metrics
        self._seen: dict[Resource, Mapping[str, Any]] = {}
        self._annotations: dict[tuple[str, str], list[str]] = {}
        self._failures: list[dict[str, Any]] = []

    def refusals(
        self,
        invocations: Iterable[PolicyInvocation[ValidatingPolicy] | MisconfiguredPolicy[ValidatingPolicy]],
    ) -> Iterator[_Refusal]:
        for invocation in invocations:
            if isinstance(invocation, PolicyInvocation):
                yield from self._evaluate(invocation)
            elif not invocation.policy.fails_open:
                yield _Refusal(invocation.policy, Denial(invocation.problem), invocation.binding)
        for (policy, key), values in self._annotations.items():
            self._attributes.context.report.annotations[f"{policy}/{key}"] = ", ".join(values)
        if self._failures:
            has_all = not self._registry.is_before(_ALL_AUDITED_SINCE)
            # Older minors keep the annotation of the first failure, and cannot set it again.
            failures = self._failures[: _MAX_FAILURES if has_all else 1]
            text = gotext.escape_html(orjson.dumps(failures)).decode()
            self._attributes.context.report.annotations[_AUDITED] = text

    def _evaluate(self, invocation: PolicyInvocation[ValidatingPolicy]) -> Iterator[_Refusal]:
        policy, binding = invocation.policy, invocation.binding
        row = invocation.row
        if row not in self._seen:
            self._seen[row] = activation(self._registry, self._attributes, row, mutating=False)
        seen = {**self._seen[row], "params": invocation.param}
        began = self._registry.clock.real.monotonic()
        decision = policy.evaluate(seen, authorizers(self._authorization, self._attributes))
        seconds = self._registry.clock.real.monotonic() - began
        for problem in decision.ignored:
            self._observe(policy, binding, problem, seconds, "allow")
        for denial in decision.denials:
            actions = ["Deny"] if denial.is_always else binding["spec"].get("validationActions") or ()
            for action in actions:
                self._observe(policy, binding, denial.message, seconds, action.lower())
            yield from self._enforce(policy, binding, denial)
        for key, value in decision.annotations:
            values = self._annotations.setdefault((policy.name, key), [])
            if value not in values:
                values.append(value)

    def _observe(
        self, policy: ValidatingPolicy, binding: ReadOnlyTree, problem: str, seconds: float, action: str
    ) -> None:
        self._metrics.observe(seconds, policy.name, meta.name(binding), error_type(problem), action)

    def _enforce(self, policy: ValidatingPolicy, binding: ReadOnlyTree, denial: Denial) -> Iterator[_Refusal]:
        """Apply the validationActions of a binding to a denial."""
        name, context = meta.name(binding), self._attributes.context
        actions = binding["spec"].get("validationActions") or ()
        if denial.is_always:
            yield _Refusal(policy, denial, name)
            return
        for action in actions:
            if action == "Deny":
                yield _Refusal(policy, denial, name)
            elif action == "Warn":
                prefix = (
                    f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{name}'"
                )
                context.report.warn(f"{prefix}: {denial.message}")
            elif action == "Audit":
                failure = {
                    "message": denial.message,
                    "policy": policy.name,
                    "binding": name,
                    "expressionIndex": denial.index,
                    "validationActions": actions,
                }
                self._failures.append(failure)
