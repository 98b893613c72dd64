"""The plugin MutatingAdmissionPolicy."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import gotext, meta, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError, Cause
from mockube.apiserver.admission.plugin import InvocationRounds, Plugin, forbidden
from mockube.apiserver.admission.rules import Equivalents
from mockube.apiserver.admission.versions import to_admitted_version
from mockube.apiserver.authz.chain import Authorization
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.metrics.admission import error_type
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, Target
from mockube.apiserver.registry.write import with_conversions
from mockube.apiserver.schema.decode import DecodeError
from mockube.component_base.metrics import TimedOperations

from .activation import activation, authorizers
from .definition import EXEMPT, GROUP, PolicyDenied, PolicyInvocation, PolicySource
from .match_conditions import ConditionsFailed
from .mutation import MutatingPolicy, Mutation, MutationFailed

_POLICIES: Final = GroupResource(GROUP, "mutatingadmissionpolicies")
_BINDINGS: Final = GroupResource(GROUP, "mutatingadmissionpolicybindings")
_ROUNDS: Final = "policies"
_INVALID: Final = "Invalid"


class MutatingAdmissionPolicy(Plugin):
    operations = frozenset({Operation.CREATE, Operation.UPDATE, Operation.CONNECT})
    needs: GroupResource | None = _BINDINGS

    def __init__(
        self, authorization: Authorization, equivalents: Equivalents, metrics: TimedOperations
    ) -> None:
        self._authorization = authorization
        self._metrics = metrics
        self._source = PolicySource(_POLICIES, _BINDINGS, MutatingPolicy, equivalents)

    def handles(self, operation: Operation, target: Target) -> bool:
        return target[:2] not in EXEMPT and super().handles(operation, target)

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        before = attributes.object

        async def mutate() -> None:
            attributes.object = before
            await registry.run(attributes.context, self._mutate, registry, attributes)

        await with_conversions(attributes.context, mutate)

    def _mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        refusals: list[_Refusal] = []
        invocations: list[PolicyInvocation[MutatingPolicy]] = []
        for invocation in self._source.invocations(registry, attributes):
            if isinstance(invocation, PolicyInvocation):
                invocations.append(invocation)
            else:
                refusals.append(_Refusal(invocation.policy, invocation.problem, invocation.binding))
        if invocations:
            refusals += _Write(registry, attributes, self._authorization, self._metrics).apply_mutations(
                invocations
            )
        refusals = [refusal for refusal in refusals if not refusal.policy.fails_open]
        if refusals:
            raise _denial_error(attributes, refusals)


class _Refusal(Struct, frozen=True):
    policy: MutatingPolicy
    problem: str
    binding: str | None = None
    reason: str = ""

    def __str__(self) -> str:
        name = self.policy.name
        named = gotext.quote(name) if self.binding is None else f"'{name}' with binding '{self.binding}'"
        return f"policy {named} denied request: {self.problem}"


def _denial_error(attributes: AdmissionAttributes, refusals: Sequence[_Refusal]) -> PolicyDenied:
    details = forbidden(attributes, "", [Cause(message=str(refusal)) for refusal in refusals]).details
    return PolicyDenied(str(refusals[0]), details, refusals[0].reason or "Forbidden", code=403)


class _Write:
    """A write that policies change."""

    def __init__(
        self,
        registry: Registry,
        attributes: AdmissionAttributes,
        authorization: Authorization,
        metrics: TimedOperations,
    ) -> None:
        self._registry = registry
        self._attributes = attributes
        self._metrics = metrics
        self._rounds = attributes.reinvocation.state.setdefault(_ROUNDS, InvocationRounds())
        self._authorizers = authorizers(authorization, attributes)
        self._row = attributes.resource
        self._seen: dict[str, Any] = {}
        self._is_patched = False
        self._is_dirty = False

    def _convert_to(self, row: Resource) -> None:
        """Convert the object to the version of a row for the next policy."""
        if not self._seen or row is not self._row:
            self._convert_back()
            self._row = row
            self._seen = {
                **activation(self._registry, self._attributes, row, mutating=True),
                **self._authorizers,
            }

    def apply_mutations(self, invocations: Sequence[PolicyInvocation[MutatingPolicy]]) -> list[_Refusal]:
        """Apply the mutations of policies in their order; return the refusals of failed ones."""
        rounds, reinvocation = self._rounds, self._attributes.reinvocation
        if reinvocation.is_reinvocation and rounds.output != self._attributes.object:
            rounds.require_reinvocation()
        refusals: list[_Refusal] = []
        try:
            for invocation in invocations:
                refusals += self._invoke(invocation)
            if self._is_patched:
                rounds.require_reinvocation()
                reinvocation.is_wanted = True
                self._convert_back()
        finally:
            rounds.output = self._attributes.object
        return refusals

    def _invoke(self, invocation: PolicyInvocation[MutatingPolicy]) -> Iterator[_Refusal]:
        policy, name = invocation.policy, meta.name(invocation.binding)
        self._convert_to(invocation.row)
        seen = {**self._seen, "params": invocation.param}
        try:
            if not policy.conditions.hold(seen):
                return
        except ConditionsFailed as error:
            yield _Refusal(policy, str(error), name, _INVALID)
            return
        key = _key(invocation)
        if self._attributes.reinvocation.is_reinvocation and key not in self._rounds.keys_to_reinvoke:
            return
        before = self._seen["object"]
        for mutation in policy.mutations:
            seen["object"] = self._seen["object"]
            if seen["object"] is None:
                continue
            problem = self._mutate(policy, name, mutation, seen)
            if problem is not None:
                yield _Refusal(policy, problem, name, _INVALID)
        if self._seen["object"] != before:
            self._rounds.require_reinvocation()
        if policy.is_reinvocable:
            self._rounds.add_invoked(key)

    def _mutate(
        self, policy: MutatingPolicy, binding: str, mutation: Mutation, seen: Mapping[str, Any]
    ) -> str | None:
        """Apply one mutation and count it; return its error."""
        began, problem = self._registry.clock.real.monotonic(), None
        try:
            self._seen["object"] = policy.mutate(self._registry, self._row, mutation, seen)
            self._is_patched = self._is_dirty = True
        except MutationFailed as error:
            problem = str(error)
        except ApiError as error:
            problem = str(error)
            raise
        finally:
            seconds = self._registry.clock.real.monotonic() - began
            self._metrics.observe(seconds, policy.name, binding, error_type(problem))
        return problem

    def _convert_back(self) -> None:
        """Convert the changed object to the version that is admitted."""
        if not self._is_dirty:
            return
        attributes = self._attributes
        self._is_dirty = False
        try:
            attributes.object = to_admitted_version(
                self._registry, attributes, self._row, self._seen["object"]
            )
        except DecodeError as error:
            raise status.internal_error(f"failed to convert object: {error}") from error


def _key(invocation: PolicyInvocation[MutatingPolicy]) -> tuple[str, ...]:
    param = invocation.param or {"metadata": {}}
    return (
        invocation.policy.name,
        meta.name(invocation.binding),
        meta.namespace(param),
        meta.name(param),
    )
