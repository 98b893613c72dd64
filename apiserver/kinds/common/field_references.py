"""Validation of references to fields and resources of a pod, whose values a container gets as variables or files."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import errors, names, quantity
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree

from .checks import Check, report
from .resource_names import CPU, EPHEMERAL_STORAGE, MEMORY

_VERSION: Final = "v1"

_WITH_SUBSCRIPT: Final[Mapping[str, Callable[[str], str]]] = {
    "metadata.annotations": str.lower,
    "metadata.labels": str,
}
"""The fields that are maps, and the function that normalizes a key before it is checked."""

_FIELDS: Final = frozenset(
    {
        *_WITH_SUBSCRIPT, "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.restartPolicy",
        "spec.serviceAccountName", "spec.schedulerName", "status.phase", "status.hostIP", "status.hostIPs",
        "status.podIP", "status.podIPs", "spec.host",
    }
)  # fmt: skip
_OF_VOLUMES: Final = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
)  # fmt: skip
_OF_VARIABLES: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip

_check_key: Final = report(names.check_label_key)


def _field(supported: tuple[str, ...]) -> Check:
    def check(reference: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        """Return only the first error: the later checks depend on the earlier ones."""
        version, target = reference.get("apiVersion", ""), reference.get("fieldPath", "")
        if not version:
            return (errors.required(path.child("apiVersion")),)
        if not target:
            return (errors.required(path.child("fieldPath")),)
        if version != _VERSION:
            problem = f"error converting fieldPath: unsupported pod version: {version}"
            return (errors.invalid(path.child("fieldPath"), target, problem),)
        name, bracket, key = target.removesuffix("']").partition("['")
        if name and bracket and target.endswith("']"):
            return _check_subscript(target, name, key, path)
        return _check_field(target, supported, path.child("fieldPath"))

    return check


def _check_subscript(target: str, field: str, key: str, path: Path) -> Iterable[FieldError]:
    if field in _WITH_SUBSCRIPT:
        return _check_key(_WITH_SUBSCRIPT[field](key), path)
    problem = f"error converting fieldPath: field label does not support subscript: {target}"
    return (errors.invalid(path.child("fieldPath"), target, problem),)


def _check_field(target: str, supported: tuple[str, ...], path: Path) -> Iterable[FieldError]:
    if target not in _FIELDS:
        problem = f"error converting fieldPath: field label not supported: {target}"
        return (errors.invalid(path, target, problem),)
    name = "spec.nodeName" if target == "spec.host" else target
    return () if name in supported else (errors.not_supported(path, name, supported),)


check_field_of_variable: Final = _field(_OF_VARIABLES)
check_field_of_volume: Final = _field(_OF_VOLUMES)


# --- resources

_RESOURCES: Final = tuple(
    f"{group}.{name}" for group in ("limits", "requests") for name in (CPU, EPHEMERAL_STORAGE, MEMORY)
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")

_UNITS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_UNITS_SHOWN: Final = f"only divisor's values {', '.join(_UNITS)} are supported with the"
_DIVISORS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    CPU: (("1m", "1"), "only divisor's values 1m and 1 are supported with the cpu resource"),
    MEMORY: (_UNITS, f"{_UNITS_SHOWN} memory resource"),
    EPHEMERAL_STORAGE: (_UNITS, f"{_UNITS_SHOWN} local ephemeral storage resource"),
    "hugepages": (_UNITS, f"{_UNITS_SHOWN} hugepages resource"),
}


def _check_divisor(resource: str, divisor: str, path: Path) -> Iterable[FieldError]:
    if not quantity.parse(divisor):
        return ()
    kind = "hugepages" if resource.startswith(_HUGE_PAGES) else resource.partition(".")[2]
    supported, problem = _DIVISORS.get(kind, ((divisor,), ""))
    if divisor in supported:
        return ()
    return (errors.invalid(path.child("divisor"), resource, problem),)


def check_resource_of_variable(reference: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check a reference to a resource in an environment variable. Without a container name it is that of the container."""
    resource = reference.get("resource", "")
    if not resource:
        yield errors.required(path.child("resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield errors.not_supported(path.child("resource"), resource, _RESOURCES)
    yield from _check_divisor(resource, reference.get("divisor") or "0", path)


def check_resource_of_volume(reference: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check a reference to a resource in a volume, which must name a container."""
    if reference.get("containerName"):
        return check_resource_of_variable(reference, path)
    divisor = _check_divisor(reference.get("resource", ""), reference.get("divisor") or "0", path)
    return [errors.required(path.child("containerName")), *divisor]
