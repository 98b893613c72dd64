"""Pod templates: the semantic equality of two, and the pod of one.

Pure. The hash in names is `workloads.template_hash`; equality never uses it, since hashes collide and change with the
types of a newer Kubernetes.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_POD_TEMPLATE_HASH
from mockube.controller_manager.client.kinds import PODS
from mockube.controller_manager.workloads.template_hash import POD_TEMPLATE, Field, GoType, Shape, go_type


def pod_of(template: ReadOnlyTree, owner: ReadOnlyTree) -> ReadOnlyTree:
    """The pod that the owner's controller makes of the template; the server gives it its name."""
    template_metadata = meta.metadata(template)
    metadata = {
        "generateName": f"{meta.name(owner)}-",
        "namespace": meta.namespace(owner),
        "labels": template_metadata.get("labels"),
        "annotations": template_metadata.get("annotations"),
        "ownerReferences": [meta.controller_reference(owner)],
        "finalizers": template_metadata.get("finalizers"),
    }
    return {
        "kind": PODS.kind,
        "apiVersion": PODS.api_version,
        "metadata": {field: value for field, value in metadata.items() if value},
        "spec": template.get("spec") or {},
    }


def without_hash(template: ReadOnlyTree) -> ReadOnlyTree:
    """The template as a Deployment has it."""
    if LABEL_POD_TEMPLATE_HASH not in meta.labels(template):
        return template
    return meta.with_labels(template, {LABEL_POD_TEMPLATE_HASH: None})


def equal_ignoring_hash(template: ReadOnlyTree, other: ReadOnlyTree) -> bool:
    """Whether they mean the same to Go: what is empty is absent, and quantities are numbers."""
    template, other = without_hash(template), without_hash(other)
    return template == other or canonical_template(template) == canonical_template(other)


def canonical_template(template: ReadOnlyTree) -> Any:
    """What is equal for templates that mean the same, and for no others."""
    return _canonical(template, go_type(POD_TEMPLATE))


def _canonical(value: Any, kind: GoType) -> Any:
    return _MEANINGS[kind.shape](value, kind)


def _struct(value: Any, kind: GoType) -> Any:
    tree = value or {}
    fields = {
        field.name: _field(tree, field) for field in kind.fields if field.json in tree or not field.json
    }
    return {name: field_value for name, field_value in fields.items() if field_value} or None


def _field(tree: Mapping[str, Any], field: Field) -> Any:
    return _canonical(tree[field.json] if field.json else tree, go_type(field.type))


def _pointer(value: Any, kind: GoType) -> Any:
    # To point at nothing and to point at a zero are two things: `emptyDir: {}` is a volume.
    return None if value is None else (_canonical(value, go_type(kind.element)),)


def _list(value: Any, kind: GoType) -> Any:
    return [_canonical(item, go_type(kind.element)) for item in value or ()]


def _map(value: Any, kind: GoType) -> Any:
    return {key: _canonical(item, go_type(kind.element)) for key, item in (value or {}).items()}


def _unchanged_value(value: Any, _: GoType) -> Any:
    return value


_MEANINGS: Final[Mapping[Shape, Callable[[Any, GoType], Any]]] = {
    Shape.STRUCT: _struct,
    Shape.POINTER: _pointer,
    Shape.LIST: _list,
    Shape.MAP: _map,
    Shape.QUANTITY: lambda value, _: quantity.from_json(value),
    Shape.BOOLEAN: _unchanged_value,
    Shape.NUMBER: _unchanged_value,
    Shape.TEXT: _unchanged_value,
    Shape.TIME: _unchanged_value,
    Shape.INT_OR_STRING: _unchanged_value,
    Shape.RAW: _unchanged_value,
}
