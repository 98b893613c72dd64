"""Authorization checks: `authorizer.group('').resource('pods').check('create').allowed()`."""

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


class AccessCheck(Struct, frozen=True):
    """The attributes of an authorization check in an expression: of a path, or of a resource."""

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
    """The namespace and name of the service account to authorize instead of the user of the request."""


class AccessDecision(Struct, frozen=True):
    """The result of an authorization check."""

    allowed: bool
    reason: str = ""
    error: str = ""


class ExpressionAuthorizer(Protocol):
    """Authorizes the user of a request. It is called during an evaluation, so it cannot be awaited."""

    def __call__(self, access_check: AccessCheck, /) -> AccessDecision: ...


@dataclass(frozen=True, slots=True, eq=False)
class _Value(Opaque):
    authorizer: ExpressionAuthorizer
    access_check: AccessCheck = field(default_factory=AccessCheck)


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


class DecisionValue(Opaque):
    __slots__ = ("access_decision",)
    type_name = f"{_PREFIX}.Decision"

    def __init__(self, access_decision: AccessDecision) -> None:
        self.access_decision = access_decision


def _path(value: AuthorizerValue, path: str) -> PathCheck:
    if not path.strip():
        raise CelError("path must not be empty")
    return PathCheck(value.authorizer, replace(value.access_check, path=path))


def _group(value: AuthorizerValue, group: str) -> GroupCheck:
    return GroupCheck(value.authorizer, replace(value.access_check, group=group))


def _service_account(value: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    if names.check_dns1123_subdomain(name):
        raise CelError("Invalid service account name")
    if names.check_dns1123_label(namespace):
        raise CelError("Invalid service account namespace")
    return AuthorizerValue(value.authorizer, AccessCheck(service_account=(namespace, name)))


def _resource(value: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise CelError("resource must not be empty")
    return ResourceCheck(value.authorizer, replace(value.access_check, resource=resource))


def _setter(name: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def set_field(value: ResourceCheck, text: str) -> ResourceCheck:
        changes: dict[str, Any] = {name: text}
        return ResourceCheck(value.authorizer, replace(value.access_check, **changes))

    return set_field


def _check(value: _Value, verb: str) -> DecisionValue:
    return DecisionValue(value.authorizer(replace(value.access_check, verb=verb)))


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
    "decision_errored": lambda decision: bool(decision.access_decision.error),
    "decision_error": lambda decision: decision.access_decision.error,
    "decision_allowed": lambda decision: decision.access_decision.allowed,
    "decision_reason": lambda decision: decision.access_decision.reason,
    "authorizer_fieldselector": _setter("field_selector"),
    "authorizer_labelselector": _setter("label_selector"),
}
