"""The conditions that `wait` takes: the type of a condition, `TYPE=STATUS`, `jsonpath={...}=VALUE`, or a predicate.

The forms of a str are those of `kubectl wait --for`. Types are compared without case, as kubectl does.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery import conditions, jsonpath, meta
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.suggestions import nearest

from .caller import call_function
from .errors import InvalidType, InvalidValue

Condition: TypeAlias = str | Callable[[dict[str, Any]], object]
"""The type of a condition that must be True, `TYPE=STATUS`, `jsonpath={...}=VALUE`, or a predicate of the object."""

_JSONPATH: Final = "jsonpath="
_CONDITION: Final = "condition="
_STATUSES: Final = ("True", "False", "Unknown")
_PREDICATE_ERRORS: Final = (LookupError, TypeError, AttributeError, AssertionError, StopIteration)
"""What a predicate raises for an object whose status is not there yet, or asserts about it."""

CONDITIONS: Final[Mapping[GroupKind, Sequence[str]]] = {
    GroupKind("", "ConfigMap"): (),
    GroupKind("", "Node"): ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"),
    GroupKind("", "Pod"): ("Ready", "ContainersReady", "Initialized", "PodScheduled", "PodReadyToStartContainers"),
    GroupKind("", "Secret"): (),
    GroupKind("", "ServiceAccount"): (),
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): ("Established", "NamesAccepted", "Terminating"),
    GroupKind("apiregistration.k8s.io", "APIService"): ("Available",),
    GroupKind("apps", "DaemonSet"): (),
    GroupKind("apps", "Deployment"): ("Available", "Progressing", "ReplicaFailure"),
    GroupKind("apps", "ReplicaSet"): ("ReplicaFailure",),
    GroupKind("apps", "StatefulSet"): (),
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): ("ScalingActive", "AbleToScale", "ScalingLimited"),
    GroupKind("batch", "Job"): ("Complete", "Failed", "Suspended", "SuccessCriteriaMet", "FailureTarget"),
    GroupKind("certificates.k8s.io", "CertificateSigningRequest"): ("Approved", "Denied", "Failed"),
    GroupKind("policy", "PodDisruptionBudget"): ("DisruptionAllowed",),
}  # fmt: skip
"""The conditions that controllers set on objects of a kind; () for a kind without conditions."""
PHASES: Final[Mapping[GroupKind, Sequence[str]]] = {
    GroupKind("", "Namespace"): ("Active", "Terminating"),
    GroupKind("", "PersistentVolume"): ("Available", "Bound", "Released", "Failed"),
    GroupKind("", "PersistentVolumeClaim"): ("Pending", "Bound", "Lost"),
    GroupKind("", "Pod"): ("Pending", "Running", "Succeeded", "Failed", "Unknown"),
}
_WITHOUT_CONDITIONS: Final = '"jsonpath={.metadata.labels.app}=web", or a function of the object'
"""What can be awaited of any object."""
_READY_REPLICAS: Final = {"DaemonSet": "numberReady", "StatefulSet": "readyReplicas"}


class WaitCondition(Struct, frozen=True, kw_only=True):
    """A condition of an object to wait for."""

    text: str
    """What the object was not, in messages: `was not Available`."""
    find_problem: Callable[[dict[str, Any]], str | None]
    """Returns None for an object that meets the condition, else what it finds instead: a value, the error of a predicate, or ""."""
    type: str = ""
    """The type of the condition; "" if it is none."""
    is_predicate: bool = False
    """Whether the condition calls a function of the user."""


def read_condition(condition: Any) -> WaitCondition:
    """Return the condition that a user passed; raise InvalidType or InvalidValue for others."""
    if callable(condition):
        return _predicate(condition)
    if not isinstance(condition, str):
        raise InvalidType(
            f'a condition is a str such as "Available", or a function of the object, not {type(condition).__name__}'
        )
    if condition.startswith(_JSONPATH):
        return _path(condition)
    if condition.lower() == "delete":
        raise InvalidValue("wait does not wait for a deletion: use wait_gone")
    if condition.lower() == "create":
        return WaitCondition(text="created", find_problem=lambda _: None)
    condition_type, equals, status = condition.removeprefix(_CONDITION).partition("=")
    status = status.capitalize() if equals else "True"
    if not condition_type.strip() or status not in _STATUSES:
        raise InvalidValue(
            f'"{condition}" is no condition: write its type, such as "Available" or "Available=False",'
            ' or "jsonpath={.status.phase}=Running", or a function of the object'
        )
    text = f"{condition_type}={status}" if equals else condition_type
    return WaitCondition(
        text=f"was not {text}",
        find_problem=lambda tree: None if has_status(tree, condition_type, status) else "",
        type=condition_type,
    )


def has_status(tree: ReadOnlyTree, condition_type: str, status: str = "True") -> bool:
    """Return whether a condition has a status. A condition that was observed at an older generation does not count."""
    observed_generation = (tree.get("status") or {}).get("observedGeneration", meta.generation(tree))
    if observed_generation < meta.generation(tree):
        return False
    name = condition_type.lower()
    return any(
        condition.get("type", "").lower() == name and condition.get("status") == status
        for condition in conditions.of(tree)
    )


def check_condition(kind: GroupKind, condition: WaitCondition) -> None:
    """Raise InvalidValue for a condition that objects of the kind never have: a phase, or a mistyped one."""
    known = CONDITIONS.get(kind)
    if not condition.type or condition.type.lower() in {name.lower() for name in known or ()}:
        return
    phase = nearest(condition.type, PHASES.get(kind, ()))
    if phase:
        raise InvalidValue(
            f'"{phase}" is a phase of a {kind.kind}, not a condition: write "jsonpath={{.status.phase}}={phase}"'
        )
    if known is None:
        return
    if not known:
        field = _READY_REPLICAS.get(kind.kind)
        hint = (
            f'for its pods, as "jsonpath={{.status.{field}}}=3"'
            if field
            else f'for "create", {_WITHOUT_CONDITIONS}'
        )
        raise InvalidValue(f"a {kind.kind} has no conditions: wait {hint}")
    if candidate := nearest(condition.type, known):
        raise InvalidValue(f'a {kind.kind} has no condition "{condition.type}": did you mean "{candidate}"?')


def _path(condition: str) -> WaitCondition:
    expression = condition.removeprefix(_JSONPATH)
    if expression.startswith("{"):
        path, brace, rest = expression[1:].rpartition("}")
        is_valid = bool(brace) and rest[:1] in {"", "="}
    else:
        path, equals, value = expression.partition("=")
        rest, is_valid = equals + value, True
    if not is_valid or not path or rest == "=":
        raise InvalidValue(f'"{condition}" is not valid: write "jsonpath={{.status.phase}}=Running"')
    try:
        find = jsonpath.parse(path)
    except jsonpath.JSONPathError as error:
        raise InvalidValue(f'"{condition}" is not a valid path: {error}') from error
    expected = rest[1:]

    def find_problem(tree: ReadOnlyTree) -> str | None:
        found = find(tree)
        if not found:
            return f"{path} is not set"
        text = _text_of(found[0])
        return None if not rest or text == expected else f"{path} is {text}, not {expected}"

    return WaitCondition(text="did not meet the condition", find_problem=find_problem)


def _text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _predicate(function: Callable[[dict[str, Any]], object]) -> WaitCondition:
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise InvalidType(f"the condition must be a function of one object: {error}") from error
    except ValueError:
        pass  # a function of C has no signature
    if inspect.iscoroutinefunction(function):
        raise InvalidType("the condition must not be a coroutine function")
    return WaitCondition(
        text="did not meet the condition",
        find_problem=partial(_evaluate, function),
        is_predicate=True,
    )


def _evaluate(function: Callable[[dict[str, Any]], object], tree: dict[str, Any]) -> str | None:
    """Return None if the predicate is met, else its error: it reads a field that the object does not have yet, or an assert failed."""
    __tracebackhide__ = True
    try:
        result = call_function(function, tree)
    except _PREDICATE_ERRORS as error:
        return f"the condition raised {type(error).__name__}: {error}".removesuffix(": ")
    if inspect.isawaitable(result):
        with suppress(AttributeError):
            result.close()  # type: ignore[attr-defined] # a coroutine, which would warn that it was never awaited
        raise InvalidType(
            "the condition must return whether it is met, not a coroutine: call methods that block"
        )
    return None if result else ""
