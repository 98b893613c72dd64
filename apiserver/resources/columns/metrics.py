"""What a HorizontalPodAutoscaler aims at and where it stands: `cpu: 40%/80%, 12/50 (avg) + 1 more...`.

Reads the list of metrics that v2 has; the n-th status is the n-th metric's.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from apimachinery import quantity
from apiserver.resources.columns.lists import shortened
from apiserver.resources.columns.parts import part, text

_UNKNOWN: Final = "<unknown>"


def targets(specs: Sequence[Any], statuses: Sequence[Any]) -> str:
    texts = [_target(spec, status) for spec, status in zip_longest(specs, statuses[: len(specs)])]
    return shortened(texts, most=2, separator=", ") or "<none>"


def _target(spec: Any, status: Any) -> str:
    kind = text(spec, "type")
    if kind not in _SOURCES:
        return "<unknown type>"
    field, describe = _SOURCES[kind]
    return describe(part(spec, field), part(status, field))


def _value(source: Any, status: Any) -> str:
    """A metric of something that is not a pod: its value, or that divided by the number of pods."""
    average = part(source, "target", "averageValue")
    if average is not None:
        current = part(status, "current", "averageValue")
        return f"{_UNKNOWN if current is None else _amount(current)}/{_amount(average)} (avg)"
    current = _UNKNOWN if status is None else _amount(part(status, "current", "value"))
    return f"{current}/{_amount(part(source, 'target', 'value'))}"


def _average(source: Any, status: Any) -> str:
    current = _UNKNOWN if status is None else _amount(part(status, "current", "averageValue"))
    return f"{current}/{_amount(part(source, 'target', 'averageValue'))}"


def _resource(source: Any, status: Any) -> str:
    name = text(source, "name")
    if part(source, "target", "averageValue") is not None:
        return f"{name}: {_average(source, status)}"
    current = _percent(part(status, "current", "averageUtilization"), _UNKNOWN)
    return f"{name}: {current}/{_percent(part(source, 'target', 'averageUtilization'), '<auto>')}"


_SOURCES: Final[Mapping[str, tuple[str, Callable[[Any, Any], str]]]] = {
    "External": ("external", _value),
    "Object": ("object", _value),
    "Pods": ("pods", _average),
    "Resource": ("resource", _resource),
    "ContainerResource": ("containerResource", _resource),
}
"""By a metric's type the field that holds it, and how it is told."""


def _amount(value: Any) -> str:
    return "<nil>" if value is None else str(quantity.from_json(value))


def _percent(value: int | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value}%"
