"""Why a minor does not have or keep a field: it is newer, it is misspelt, or its feature gate is off. Pure."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Final

from mockube.apimachinery.groups import PODS, GroupResource
from mockube.apimachinery.schema import builtin, minors
from mockube.apimachinery.schema.model import SchemaType, Shape
from mockube.apiserver.kinds.minors import fields
from mockube.apiserver.kinds.registry import NEWEST

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
    similar = _similar(str(path[-1]), parent) if parent is not None and path else ""
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


def _similar(name: str, parent: SchemaType) -> str:
    names = [*parent.fields]
    same = [each for each in names if each.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, names, n=1)), "")


def gate_hint(group: str, resource: str, field: str, minor: str) -> str:
    """Return which feature gate drops a field in a minor, and since when the gate is on; "" if that is not known."""
    gate = _gate(GroupResource(group, resource), ".".join(map(_as_pattern, parse_path(field))))
    if not gate:
        return ""
    later = [
        each
        for each in ALL
        if minors.is_before(minor, each) and gate in fields.gates_off_by_default(minor)
        if gate not in fields.gates_off_by_default(each)
    ]
    since = f" before {later[0]}" if later else ""
    return f": its feature gate {gate} is off{since}"


def _as_pattern(step: str | int) -> str:
    return "*" if isinstance(step, int) else step


def _gate(resource: GroupResource, pattern: str) -> str:
    """Return the gate of a field, or of a field within the dropped one."""
    gates = _gates(resource)
    within = (gate for path, gate in gates.items() if f"{path}.".startswith(f"{pattern}."))
    own = gates.get(pattern) or next(within, "")
    has_pod = resource == PODS or resource in fields.TEMPLATES
    return own or (_FEATURES.get(pattern.rpartition(".")[2], "") if has_pod else "")


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
