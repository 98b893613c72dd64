"""Questions to the authorizer: `authorizer.group('').resource('pods').check('create').allowed()`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import names
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.values import CelError, Opaque

_PREFIX = "kubernetes.authorization"
DECLARED: Final = declare(
    f"""
    path authorizer_path {_PREFIX}.Authorizer.(string) -> {_PREFIX}.PathCheck
    group authorizer_group {_PREFIX}.Authorizer.(string) -> {_PREFIX}.GroupCheck
    serviceAccount authorizer_serviceaccount {_PREFIX}.Authorizer.(string, string) -> {_PREFIX}.Authorizer
    resource groupcheck_resource {_PREFIX}.GroupCheck.(string) -> {_PREFIX}.ResourceCheck
    subresource resourcecheck_subresource {_PREFIX}.ResourceCheck.(string) -> {_PREFIX}.ResourceCheck
    namespace resourcecheck_namespace {_PREFIX}.ResourceCheck.(string) -> {_PREFIX}.ResourceCheck
    name resourcecheck_name {_PREFIX}.ResourceCheck.(string) -> {_PREFIX}.ResourceCheck
    check pathcheck_check {_PREFIX}.PathCheck.(string) -> {_PREFIX}.Decision
    check resourcecheck_check {_PREFIX}.ResourceCheck.(string) -> {_PREFIX}.Decision
    errored decision_errored {_PREFIX}.Decision.() -> bool
    error decision_error {_PREFIX}.Decision.() -> string
    allowed decision_allowed {_PREFIX}.Decision.() -> bool
    reason decision_reason {_PREFIX}.Decision.() -> string
    fieldSelector authorizer_fieldselector {_PREFIX}.ResourceCheck.(string) -> {_PREFIX}.ResourceCheck
    labelSelector authorizer_labelselector {_PREFIX}.ResourceCheck.(string) -> {_PREFIX}.ResourceCheck
    """
)


class Question(Struct, frozen=True):
    """The subject of an authorization check in an expression: a path, or a resource."""

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None
    """The namespace and name of the account that it is about, in place of the user of the request."""


class Answer(Struct, frozen=True):
    allowed: bool
    reason: str = ""
    error: str = ""


class Authorizer(Protocol):
    """Answers questions about the user of a request. It is called while an expression is evaluated: it cannot wait."""

    def __call__(self, question: Question, /) -> Answer: ...


@dataclass(frozen=True, slots=True, eq=False)
class _Value(Opaque):
    authorizer: Authorizer
    question: Question = field(default_factory=Question)


class AuthorizerValue(_Value):
    __slots__ = ()
    type_name = f"{_PREFIX}.Authorizer"


class PathCheck(_Value):
    __slots__ = ()
    type_name = f"{_PREFIX}.PathCheck"


class GroupCheck(_Value):
    __slots__ = ()
    type_name = f"{_PREFIX}.GroupCheck"


class ResourceCheck(_Value):
    __slots__ = ()
    type_name = f"{_PREFIX}.ResourceCheck"


class Decision(Opaque):
    __slots__ = ("answer",)
    type_name = f"{_PREFIX}.Decision"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def _path(value: AuthorizerValue, path: str) -> PathCheck:
    if not path.strip():
        raise CelError("path must not be empty")
    return PathCheck(value.authorizer, replace(value.question, path=path))


def _group(value: AuthorizerValue, group: str) -> GroupCheck:
    return GroupCheck(value.authorizer, replace(value.question, group=group))


def _service_account(value: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    if names.check_dns1123_subdomain(name):
        raise CelError("Invalid service account name")
    if names.check_dns1123_label(namespace):
        raise CelError("Invalid service account namespace")
    return AuthorizerValue(value.authorizer, Question(service_account=(namespace, name)))


def _resource(value: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise CelError("resource must not be empty")
    return ResourceCheck(value.authorizer, replace(value.question, resource=resource))


def _setter(name: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def set_field(value: ResourceCheck, text: str) -> ResourceCheck:
        changes: dict[str, Any] = {name: text}
        return ResourceCheck(value.authorizer, replace(value.question, **changes))

    return set_field


def _check(value: _Value, verb: str) -> Decision:
    return Decision(value.authorizer(replace(value.question, verb=verb)))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "authorizer_path": _path,
    "authorizer_group": _group,
    "authorizer_serviceaccount": _service_account,
    "groupcheck_resource": _resource,
    "resourcecheck_subresource": _setter("subresource"),
    "resourcecheck_namespace": _setter("namespace"),
    "resourcecheck_name": _setter("name"),
    "pathcheck_check": _check,
    "resourcecheck_check": _check,
    "decision_errored": lambda decision: bool(decision.answer.error),
    "decision_error": lambda decision: decision.answer.error,
    "decision_allowed": lambda decision: decision.answer.allowed,
    "decision_reason": lambda decision: decision.answer.reason,
    "authorizer_fieldselector": _setter("field_selector"),
    "authorizer_labelselector": _setter("label_selector"),
}
