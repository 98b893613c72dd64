"""The plugin ValidatingAdmissionPolicy."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError, Cause, Details
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.admission.plugin import Plugin, forbidden
from mockube.apiserver.admission.policies.activation import activation, authorizers
from mockube.apiserver.admission.policies.matching import matches
from mockube.apiserver.admission.policies.params import BadConfiguration, collect, param_row
from mockube.apiserver.admission.policies.policy import INVALID, Denial, Policy
from mockube.apiserver.authz.chain import Authorization
from mockube.apiserver.registry.attributes import Attributes, Operation
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.storage.stored import Stored

_GROUP: Final = "admissionregistration.k8s.io"
_POLICIES: Final = GroupResource(_GROUP, "validatingadmissionpolicies")
_BINDINGS: Final = GroupResource(_GROUP, "validatingadmissionpolicybindings")
_EXEMPT: Final = frozenset(
    {
        *(
            (_GROUP, f"{sort}admissionpolic{end}")
            for sort in ("validating", "mutating")
            for end in ("ies", "ybindings")
        ),
        *((_GROUP, f"{sort}webhookconfigurations") for sort in ("validating", "mutating")),
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        *(
            ("authorization.k8s.io", name)
            for name in (
                "localsubjectaccessreviews",
                "selfsubjectaccessreviews",
                "selfsubjectrulesreviews",
                "subjectaccessreviews",
            )
        ),
    }
)
"""What no policy is asked about."""
_AUDITED: Final = "validation.policy.admission.k8s.io/validation_failure"
_CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}


class Denied(ApiError):
    """A policy refuses a write, for a reason of its own."""

    def __init__(self, message: str, details: Details | None, why: str) -> None:
        super().__init__(message, details, code=_CODES.get(why, 422))
        self._why = why

    def status(self) -> dict[str, Any]:
        return super().status() | {"reason": self._why}


@dataclass(frozen=True, slots=True)
class _Refusal:
    policy: Policy
    denial: Denial
    binding: str | None = None

    def __str__(self) -> str:
        bound = "" if self.binding is None else f" with binding '{self.binding}'"
        return f"ValidatingAdmissionPolicy '{self.policy.name}'{bound} denied request: {self.denial.message}"


class ValidatingAdmissionPolicy(Plugin):
    operations = frozenset(Operation)

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization
        self._policies: dict[bytes, tuple[int, Policy]] = {}

    async def validate(self, backend: Backend, attributes: Attributes) -> None:
        bindings = backend.all_seen(_BINDINGS)
        if not bindings or attributes.target[:2] in _EXEMPT:
            return
        stored = backend.all_seen(_POLICIES)
        if stored:
            await backend.worker.run(attributes.call.size, self._judge, backend, attributes, stored, bindings)

    def _judge(
        self, backend: Backend, attributes: Attributes, stored: Sequence[Stored], bindings: Sequence[Stored]
    ) -> None:
        by_policy = defaultdict(list)
        for binding in bindings:
            tree = binding.tree()
            by_policy[tree["spec"].get("policyName")].append(tree)
        asked = _Asked(backend, attributes, self._authorization)
        refusals: list[_Refusal] = []
        for one in stored:
            policy = self._compiled(one)
            if policy.name in by_policy:
                refusals += asked.refusals(policy, by_policy[policy.name])
        if refusals:
            raise _denied(attributes, refusals[0])

    def _compiled(self, stored: Stored) -> Policy:
        known = self._policies.get(stored.key)
        if known is None or known[0] != stored.revision:
            known = self._policies[stored.key] = stored.revision, Policy(stored.tree())
        return known[1]


def _denied(attributes: Attributes, refusal: _Refusal) -> Denied:
    message = str(refusal)
    error = forbidden(attributes, message, [Cause(message=message)])
    return Denied(error.message, error.details, refusal.denial.reason or INVALID)


class _Asked:
    """One write, about which policies are asked."""

    def __init__(self, backend: Backend, attributes: Attributes, authorization: Authorization) -> None:
        self._backend = backend
        self._attributes = attributes
        self._authorization = authorization
        self._seen: Mapping[str, Any] | None = None

    def refusals(self, policy: Policy, bindings: Sequence[ReadOnlyTree]) -> Iterator[_Refusal]:
        constraints = policy.spec.get("matchConstraints") or {}
        annotations: dict[str, list[str]] = {}
        try:
            if not matches(constraints, self._backend, self._attributes):
                return
            row = param_row(self._backend, policy.spec.get("paramKind"))
        except (ApiError, BadConfiguration) as error:
            yield from _misconfigured(policy, f"failed to configure policy: {error}")
            return
        for binding in bindings:
            spec: ReadOnlyTree = binding["spec"]
            try:
                if spec.get("matchResources") and not matches(
                    spec["matchResources"], self._backend, self._attributes
                ):
                    continue
                params = collect(self._backend, row, spec.get("paramRef"), self._attributes.namespace)
            except (ApiError, BadConfiguration) as error:
                problem = f"failed to configure binding: {error}"
                yield from _misconfigured(policy, problem, meta.name(binding))
                continue
            for param in params:
                yield from self._bound(policy, binding, param, annotations)
        for key, values in annotations.items():
            self._attributes.call.annotations[f"{policy.name}/{key}"] = ", ".join(values)

    def _bound(
        self,
        policy: Policy,
        binding: ReadOnlyTree,
        param: ReadOnlyTree | None,
        annotations: dict[str, list[str]],
    ) -> Iterator[_Refusal]:
        if self._seen is None:
            self._seen = activation(
                self._backend, self._attributes, self._attributes.resource, mutating=False
            )
        seen = {**self._seen, "params": param}
        verdict = policy.judge(seen, authorizers(self._authorization, self._attributes))
        for denial in verdict.denials:
            yield from self._acted(policy, binding, denial)
        for key, value in verdict.annotations:
            values = annotations.setdefault(key, [])
            if value not in values:
                values.append(value)

    def _acted(self, policy: Policy, binding: ReadOnlyTree, denial: Denial) -> Iterator[_Refusal]:
        """Do what a binding wants done where its policy fails."""
        name, call = meta.name(binding), self._attributes.call
        actions = binding["spec"].get("validationActions") or ()
        if denial.is_always:
            yield _Refusal(policy, denial, name)
            return
        for action in actions:
            if action == "Deny":
                yield _Refusal(policy, denial, name)
            elif action == "Warn":
                said = (
                    f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{name}'"
                )
                call.warn(f"{said}: {denial.message}")
            elif action == "Audit":
                told = {
                    "message": denial.message,
                    "policy": policy.name,
                    "binding": name,
                    "expressionIndex": denial.place,
                    "validationActions": actions,
                }
                call.annotations[_AUDITED] = orjson.dumps([told]).decode()


def _misconfigured(policy: Policy, problem: str, binding: str | None = None) -> Iterator[_Refusal]:
    if not policy.fails_open:
        yield _Refusal(policy, Denial(problem), binding)
