"""The common parts of both policy plugins: how policies are compiled, and which of them match a write."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.admission_expressions import BadExpression, Compiler, OptionalVariables
from mockube.apimachinery.cel.types import Type
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError, Details
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.admission.rules import Equivalents
from mockube.apiserver.kinds.admissionregistration.matching import VIRTUAL_RESOURCES
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes
from mockube.apiserver.storage.stored_object import StoredObject

from .evaluation import Expression, compile_expression
from .match_conditions import MatchConditions
from .matching import matched_row
from .params import BadConfiguration, collect, param_row

GROUP: Final = "admissionregistration.k8s.io"
EXEMPT: Final = frozenset(
    {
        *(
            (GROUP, f"{sort}admissionpolic{end}")
            for sort in ("validating", "mutating")
            for end in ("ies", "ybindings")
        ),
        *((GROUP, f"{sort}webhookconfigurations") for sort in ("validating", "mutating")),
        *VIRTUAL_RESOURCES,
    }
)
"""Resources that no policy is evaluated for."""


class PolicyDefinition:
    """A policy with its variables and matchConditions compiled."""

    def __init__(self, tree: ReadOnlyTree) -> None:
        self.name = meta.name(tree)
        self.spec: ReadOnlyTree = tree["spec"]
        self.fails_open = self.spec.get("failurePolicy") == "Ignore"
        self.optional_variables = OptionalVariables(params=self.spec.get("paramKind") is not None)
        self._compiler = Compiler(has_variables=True)
        for variable in self.spec.get("variables") or ():
            self._add_variable(variable)
        self.variables = self._compiler.variables
        conditions = self.spec.get("matchConditions") or ()
        self.conditions = MatchConditions(
            [condition["expression"] for condition in conditions], self._compiler, self.optional_variables
        )

    def compile(
        self, text: str, returns: Sequence[Type], optional_variables: OptionalVariables
    ) -> Expression:
        return compile_expression(self._compiler, text, returns, optional_variables)

    def _add_variable(self, variable: ReadOnlyTree) -> None:
        try:
            self._compiler.add_variable(variable["name"], variable["expression"], self.optional_variables)
        except BadExpression:
            return  # reported when the policy is evaluated


P = TypeVar("P", bound=PolicyDefinition)


class PolicyInvocation(Struct, Generic[P], frozen=True):
    """A policy that matches a write, with one of its bindings and one of its parameters."""

    policy: P
    binding: ReadOnlyTree
    param: ReadOnlyTree | None
    row: Resource
    """The resource whose version the policy receives."""


class MisconfiguredPolicy(Struct, Generic[P], frozen=True):
    """A policy, or one of its bindings, with an invalid configuration."""

    policy: P
    problem: str
    binding: str | None = None


class PolicySource(Generic[P]):
    """The policies of one kind with their bindings; each is compiled again after a change."""

    def __init__(
        self,
        policies: GroupResource,
        bindings: GroupResource,
        compile_policy: Callable[[ReadOnlyTree], P],
        equivalents: Equivalents,
    ) -> None:
        self._policies = policies
        self._bindings = bindings
        self._compile = compile_policy
        self._equivalents = equivalents
        self._compiled: dict[bytes, tuple[int, P]] = {}

    def invocations(
        self, backend: Backend, attributes: AdmissionAttributes
    ) -> Iterator[PolicyInvocation[P] | MisconfiguredPolicy[P]]:
        """Yield the invocations for a write, in the order of policies and bindings."""
        by_policy = defaultdict(list)
        for binding in backend.list_cached(self._bindings):
            tree = binding.tree()
            by_policy[tree["spec"].get("policyName")].append(tree)
        for stored in backend.list_cached(self._policies):
            policy = self._compile_current(stored)
            if policy.name in by_policy:
                yield from self._policy_invocations(backend, attributes, policy, by_policy[policy.name])

    def _policy_invocations(
        self, backend: Backend, attributes: AdmissionAttributes, policy: P, bindings: Sequence[ReadOnlyTree]
    ) -> Iterator[PolicyInvocation[P] | MisconfiguredPolicy[P]]:
        try:
            constraints = policy.spec.get("matchConstraints") or {}
            row = matched_row(constraints, backend, attributes, self._equivalents)
            if row is None:
                return
            param_resource = param_row(backend, policy.spec.get("paramKind"))
        except (ApiError, BadConfiguration) as error:
            yield MisconfiguredPolicy(policy, f"failed to configure policy: {error}")
            return
        for binding in bindings:
            spec: ReadOnlyTree = binding["spec"]
            try:
                resources = spec.get("matchResources")
                if resources and matched_row(resources, backend, attributes, self._equivalents) is None:
                    continue
                params = collect(backend, param_resource, spec.get("paramRef"), attributes.namespace)
            except (ApiError, BadConfiguration) as error:
                yield MisconfiguredPolicy(policy, f"failed to configure binding: {error}", meta.name(binding))
                continue
            yield from (PolicyInvocation(policy, binding, param, row) for param in params)

    def _compile_current(self, stored: StoredObject) -> P:
        compiled = self._compiled.get(stored.key)
        if compiled is None or compiled[0] != stored.revision:
            compiled = self._compiled[stored.key] = stored.revision, self._compile(stored.tree())
        return compiled[1]


class PolicyDenied(ApiError):
    """A policy denies a write, or could not be evaluated."""

    def __init__(self, message: str, details: Details | None, reason: str, *, code: int) -> None:
        super().__init__(message, details, code=code)
        self._reason = reason

    def status(self) -> dict[str, Any]:
        return super().status() | {"reason": self._reason}
