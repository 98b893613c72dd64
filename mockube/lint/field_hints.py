"""Why a minor does not have or keep a field: it is newer, it is misspelt, or its feature gate is off. Pure."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from mockube.apimachinery.groups import PODS, GroupResource
from mockube.apimachinery.schema import builtin, minors
from mockube.apimachinery.schema.model import SchemaType, Shape
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.kinds.minors import fields
from mockube.component_base.suggestions import nearest

from .dropped_fields import DroppedField
from .minor_ranges import ALL
from .positions import FieldPath, parse_path

_FEATURES: Final = {
    "restartPolicyRules": "ContainerRestartRules",
    "image": "ImageVolume",
    "sleep": "PodLifecycleSleepAction",
    "procMount": "ProcMountType",
}
"""The gates of features of pods that have more than one field, by the name of the field that is dropped."""


def unknown_field_hint(schema: SchemaType | None, api_version: str, kind: str, field: str, minor: str) -> str:
    """Return the minor that has an unknown field, or a similar field; "" if there is neither."""
    path = parse_path(field)
    having = [each for each in ALL if _has_field(builtin.load(each).kind(api_version, kind), path)]
    later = [each for each in having if minors.is_before(minor, each)]
    if later:
        return f" (new in {later[0]})"
    if having:
        return f" (removed in {ALL[ALL.index(having[-1]) + 1]})"
    parent = _type_at(schema, path[:-1])
    similar = nearest(str(path[-1]), parent.fields) if parent is not None and path else ""
    return f' (did you mean "{similar}"?)' if similar else ""


def _has_field(schema: SchemaType | None, path: FieldPath) -> bool:
    return _type_at(schema, path) is not None


def _type_at(schema: SchemaType | None, path: FieldPath) -> SchemaType | None:
    """Return the type of a field; None if the type has no such field."""
    for step in path:
        if schema is None:
            return None
        if schema.shape is Shape.STRUCT:
            field = schema.fields.get(str(step))
            schema = None if field is None else field.type
        elif schema.shape in (Shape.LIST, Shape.MAP):
            schema = schema.element
        else:
            return None
    return schema


def is_kept_if_zero(schema: SchemaType | None, path: str) -> bool:
    """Return whether a server tells a zero in a field from an absent field."""
    *parent_path, name = parse_path(path)
    parent = _type_at(schema, tuple(parent_path))
    field = None if parent is None else parent.fields.get(str(name))
    return field is not None and field.pointer


def gated_field(resource: GroupResource, field: DroppedField) -> tuple[str, str]:
    """Return the path of the field that a feature gate drops, and the gate; "" if the gate is not known."""
    path = field.inner_path
    while len(path) >= len(field.path):
        gate = _gates(resource).get(_pattern(path)) or _gate_of_feature(resource, path)
        if gate:
            return path, gate
        path = path.rpartition(".")[0]
    if isinstance(field.value, dict) and _is_pod(resource):  # such as an image volume, which has a name, too
        return field.path, next((_FEATURES[name] for name in field.value if name in _FEATURES), "")
    return field.path, ""


def gate_hint(gate: str, minor: str) -> str:
    """Return that a gate is off in a minor, and in which it is on."""
    if not gate:
        return ""
    is_off = fields.gates_off_by_default
    later = [each for each in ALL if minors.is_before(minor, each) and gate not in is_off(each)]
    since = f" before {later[0]}" if later and gate in is_off(minor) else ""
    return f": its feature gate {gate} is off{since}"


def _pattern(path: str) -> str:
    return ".".join("*" if isinstance(step, int) else step for step in parse_path(path))


def _gate_of_feature(resource: GroupResource, path: str) -> str:
    return _FEATURES.get(path.rpartition(".")[2], "") if _is_pod(resource) else ""


def _is_pod(resource: GroupResource) -> bool:
    """Return whether objects are pods or have a template of pods."""
    return resource == PODS or resource in fields.TEMPLATES


@cache
def _gates(resource: GroupResource) -> Mapping[str, str]:
    """Return the gates of a resource's fields that are off in some minor, by path."""
    return {path: gate for gate, path in (*_older_gates(resource), *_gates_of_newest(resource))}


def _older_gates(resource: GroupResource) -> Iterator[tuple[str, str]]:
    template = fields.TEMPLATES.get(resource)
    prefix = "spec" if resource == PODS else f"{template}.spec" if template else None
    if prefix is not None:
        yield from ((gate, f"{prefix}.{path}") for gate, paths in fields.POD_SPEC.items() for path in paths)
    yield from ((gate, path) for gate, paths in fields.OTHERS.get(resource, {}).items() for path in paths)


def _gates_of_newest(resource: GroupResource) -> Iterator[tuple[str, str]]:
    for kind in NEWEST.all:
        if kind.resource.group_resource == resource and kind.strategy is not None:
            for gate in kind.strategy.disabled.gates:
                yield from ((gate.name, path) for path in gate.paths)
