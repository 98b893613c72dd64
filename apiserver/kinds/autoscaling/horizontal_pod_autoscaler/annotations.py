"""The annotations in which autoscaling/v1 stores fields of v2 as JSON, decoded as Go does."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from mockube.apimachinery import gotext, quantity
from mockube.apimachinery.timestamps import TimestampError, parse_time

_QUANTITY, _TIME = object(), object()
_OBJECT: Final = {"kind": str, "name": str, "apiVersion": str}
_SELECTOR: Final = {
    "matchLabels": {"*": str},
    "matchExpressions": [{"key": str, "operator": str, "values": [str]}],
}


def _sources(side: str) -> list[Any]:
    """Return the shape of a list of metrics; `side` is the prefix of their value fields: `target` or `current`."""
    utilization, average, value = f"{side}AverageUtilization", f"{side}AverageValue", f"{side}Value"
    named = {"metricName": str, "selector": _SELECTOR}
    measured = {"name": str, utilization: int, average: _QUANTITY}
    return [
        {
            "type": str,
            "object": {"target": _OBJECT, **named, value: _QUANTITY, "averageValue": _QUANTITY},
            "pods": {**named, average: _QUANTITY},
            "resource": measured,
            "containerResource": {**measured, "container": str},
            "external": {
                "metricName": str,
                "metricSelector": _SELECTOR,
                value: _QUANTITY,
                average: _QUANTITY,
            },
        }
    ]


SPECS: Final = _sources("target")
STATUSES: Final = _sources("current")
CONDITIONS: Final = [{"type": str, "status": str, "lastTransitionTime": _TIME, "reason": str, "message": str}]
_RULES: Final = {
    "stabilizationWindowSeconds": int,
    "selectPolicy": str,
    "policies": [{"type": str, "value": int, "periodSeconds": int}],
    "tolerance": _QUANTITY,
}
BEHAVIOR: Final = {"scaleUp": _RULES, "scaleDown": _RULES}


class WrongTypeError(ValueError):
    """A value has another type than in Go."""


def read(text: str, shape: Any) -> Any:
    """Decode a JSON text of a shape; return None for null, for invalid JSON and for other shapes."""
    try:
        return _read(orjson.loads(text), shape)
    except (orjson.JSONDecodeError, WrongTypeError):
        return None


def _read(value: Any, shape: Any) -> Any:
    if value is None:
        return None
    if isinstance(shape, list):
        _check(isinstance(value, list))
        return [member for item in value if (member := _read(item, shape[0])) is not None]
    if isinstance(shape, dict):
        _check(isinstance(value, dict))
        return _fields(value, shape)
    if shape is int:
        _check(type(value) is int and -(2**31) <= value < 2**31)
        return value
    if shape is _QUANTITY:
        return _quantity(value)
    _check(isinstance(value, str))
    if shape is _TIME:
        try:
            parse_time(value)
        except TimestampError as error:
            raise WrongTypeError from error
    return value


def _fields(value: Mapping[str, Any], shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known fields. The case of their names is ignored."""
    if "*" in shape:
        return {name: _read(each, shape["*"]) or "" for name, each in value.items()}
    names = {name.lower(): name for name in shape}
    fields = {}
    for name, each in value.items():
        field_name = name if name in shape else names.get(name.lower())
        if field_name is not None and (member := _read(each, shape[field_name])) is not None:
            fields[field_name] = member
    return {name: fields[name] for name in shape if name in fields}


def _quantity(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    try:
        return str(quantity.parse(text))
    except quantity.QuantityError as error:
        raise WrongTypeError from error


def _check(has_type: bool) -> None:  # noqa: FBT001 - a condition
    if not has_type:
        raise WrongTypeError


def write_behavior(behavior: Mapping[str, Any]) -> str:
    """Encode a behavior as Go encodes a struct without JSON tags: all fields, with capitalized names."""
    return gotext.marshal(
        {"ScaleUp": _rules(behavior.get("scaleUp")), "ScaleDown": _rules(behavior.get("scaleDown"))}
    )


def _rules(rules: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if rules is None:
        return None
    go_rules = {_capitalize(name): rules.get(name) for name in _RULES}
    policies = rules.get("policies")
    if policies is not None:
        go_rules["Policies"] = [
            {
                "Type": policy.get("type", ""),
                "Value": policy.get("value", 0),
                "PeriodSeconds": policy.get("periodSeconds", 0),
            }
            for policy in policies
        ]
    return go_rules


def _capitalize(name: str) -> str:
    return name[0].upper() + name[1:]
