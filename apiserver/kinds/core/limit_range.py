"""LimitRange: limits and defaults for the resources of each pod, container or claim in a namespace."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from mockube.apimachinery import errors, names, quantity
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import resource_names
from mockube.apiserver.kinds.common.checks import Check, field
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.validation import NO_CHECKS, Validation, as_created, from_root
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy, StrategyContext

_POD, _CLAIM = "Pod", "PersistentVolumeClaim"
_CHECK_NAME: Final[Mapping[str, Check]] = {
    _POD: resource_names.check_container_name,
    "Container": resource_names.check_container_name,
}
_TYPES: Final = frozenset({*_CHECK_NAME, _CLAIM})

_ORDERED: Final = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest", "default request value {} is greater than max value {}"),
    (
        "defaultRequest", "default", "defaultRequest", "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)  # fmt: skip
"""The lesser and the greater field, the field of the error's path, the field of its value, and the message."""

_AMOUNTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_FORBIDDEN_FOR_PODS: Final = ("default", "defaultRequest")

_MILLI_LIMIT: Final = 2**63 // 1000
"""Quantities below this are compared in milli-units."""


def _check_type(name: str, path: Path) -> Iterable[FieldError]:
    problems = names.check_label_key(name)
    if not problems and "/" not in name and name not in _TYPES:
        problems = ["must be a standard limit type or fully qualified"]
    return [errors.invalid(path, name, problem) for problem in problems]


def _check_limits(limits: Sequence[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    seen = set()
    for index, limit in enumerate(limits or ()):
        limit_path, type_ = path.index(index), limit.get("type", "")
        yield from _check_type(type_, limit_path.child("type"))
        if type_ in seen:
            yield errors.duplicate(limit_path.child("type"), type_)
        seen.add(type_)
        yield from _check_names(limit, type_, limit_path)
        yield from _check_amounts(limit, type_, limit_path)


def _check_names(limit: ReadOnlyTree, type_: str, path: Path) -> Iterator[FieldError]:
    check = _CHECK_NAME.get(type_, resource_names.check_name)
    for field_name in _AMOUNTS:
        if field_name == _AMOUNTS[-1] and type_ == _CLAIM and not _limits_storage(limit):
            detail = "either minimum or maximum storage value is required, but neither was provided"
            yield errors.required(path.child("limits"), detail)
        amounts = limit.get(field_name) or ()
        if type_ == _POD and field_name in _FORBIDDEN_FOR_PODS:
            if amounts:
                yield errors.forbidden(path.child(field_name), "may not be specified when `type` is 'Pod'")
            continue
        for name in amounts:
            yield from check(name, path.child(field_name).key(name))


def _limits_storage(limit: ReadOnlyTree) -> bool:
    return any(resource_names.STORAGE in (limit.get(name) or ()) for name in ("min", "max"))


# --- comparisons of amounts


def _check_amounts(limit: ReadOnlyTree, type_: str, path: Path) -> Iterator[FieldError]:
    ignored = _FORBIDDEN_FOR_PODS if type_ == _POD else ()
    amounts = {name: limit.get(name) or {} for name in _AMOUNTS if name not in ignored}
    for resource in dict.fromkeys(key for values in amounts.values() for key in values):
        quantities = {
            name: quantity.parse(values[resource]) for name, values in amounts.items() if resource in values
        }
        yield from _check_order(quantities, resource, path)
        yield from _check_ratio(quantities, path.child("maxLimitRequestRatio").key(resource))
        if not resource_names.is_overcommit_allowed(resource):
            yield from _check_equal(quantities, resource, path)


def _check_order(quantities: Mapping[str, Quantity], resource: str, path: Path) -> Iterator[FieldError]:
    for lesser, greater, path_field, value_field, message in _ORDERED:
        if lesser in quantities and greater in quantities and quantities[lesser] > quantities[greater]:
            problem = message.format(quantities[lesser], quantities[greater])
            yield errors.invalid(path.child(path_field).key(resource), str(quantities[value_field]), problem)


def _check_ratio(quantities: Mapping[str, Quantity], path: Path) -> Iterator[FieldError]:
    ratio = quantities.get("maxLimitRequestRatio")
    if ratio is None:
        return
    if ratio < Quantity(1):
        yield errors.invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    if "min" not in quantities or "max" not in quantities or not quantities["min"]:
        return
    in_milli_units = all(
        amount.scaled_value() < _MILLI_LIMIT for amount in (ratio, quantities["min"], quantities["max"])
    )
    scale, unit = (quantity.MILLI, 1000) if in_milli_units else (0, 1)
    max_ratio = quantities["max"].scaled_value(scale) / quantities["min"].scaled_value(scale)
    if ratio.scaled_value(scale) / unit > max_ratio:
        yield errors.invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {max_ratio:f}")


def _check_equal(quantities: Mapping[str, Quantity], resource: str, path: Path) -> Iterable[FieldError]:
    default, request = quantities.get("default"), quantities.get("defaultRequest")
    if default is None or request is None or default == request:
        return ()
    problem = f"default value {default} must equal to defaultRequest value {request} in {resource}"
    return (errors.invalid(path.child("defaultRequest").key(resource), str(request), problem),)


_CREATE: Final = from_root(field("spec", field("limits", _check_limits), absent={}))


def _default_item(item: Tree) -> None:
    """Default a container's limit to the maximum, and its request to the limit or else the minimum."""
    if item["type"] != "Container":
        return
    limits = item.get("max", {}) | item.get("default", {})
    requests = item.get("min", {}) | limits | item.get("defaultRequest", {})
    for name, amounts in (("default", limits), ("defaultRequest", requests)):
        if amounts:
            item[name] = dict(sorted(amounts.items()))


def _set_name(limit_range: Tree, _request: StrategyContext) -> None:
    metadata = limit_range["metadata"]
    metadata["name"] = metadata.get("name") or metadata["uid"]


KIND: Final = Kind(
    resource=Resource(group="", version="v1", name="limitranges", kind="LimitRange", short_names=("limits",)),
    strategy=Strategy(create_on_update=True, prepare_create=_set_name),
    validation=Validation(repeated_checks=NO_CHECKS, create=_CREATE, update=as_created(_CREATE)),
    defaults=defaults_table("io.k8s.api.core.v1", {"LimitRangeItem": _default_item}),
)
