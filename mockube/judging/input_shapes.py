"""The fields of manifests that judgements read, with their types: an object with other ones is refused when it is read. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree

from . import object_kinds

Texts = list[str] | None
AnyMap = dict[str, Any] | None


class _Shape(Struct, frozen=True, rename="camel"):
    """Fields of an object; it may have others."""


class _Metadata(_Shape, frozen=True):
    name: str
    namespace: str | None = None
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _AnyObject(_Shape, frozen=True):
    metadata: _Metadata


class _DefinedNames(_Shape, frozen=True):
    kind: str
    plural: str


class _VersionSchema(_Shape, frozen=True):
    openAPIV3Schema: AnyMap = None  # noqa: N815 - the name of the field


class _DefinedVersion(_Shape, frozen=True):
    name: str
    served: bool = False
    storage: bool = False
    schema: _VersionSchema | None = None


class _Conversion(_Shape, frozen=True):
    strategy: str = "None"


class _DefinitionSpec(_Shape, frozen=True):
    group: str
    names: _DefinedNames
    versions: list[_DefinedVersion]
    conversion: _Conversion | None = None


class _Definition(_Shape, frozen=True):
    spec: _DefinitionSpec


class _FieldReference(_Shape, frozen=True):
    field_path: str | None = None


class _VariableSource(_Shape, frozen=True):
    field_ref: _FieldReference | None = None


class _Variable(_Shape, frozen=True):
    name: str
    value: str | None = None
    value_from: _VariableSource | None = None


class _Container(_Shape, frozen=True):
    env: list[_Variable] | None = None


class _PodSpec(_Shape, frozen=True):
    containers: list[_Container] | None = None
    service_account_name: str | None = None


class _Template(_Shape, frozen=True):
    spec: _PodSpec | None = None


class _Strategy(_Shape, frozen=True):
    type: str | None = None


class _WorkloadSpec(_Shape, frozen=True):
    template: _Template | None = None
    strategy: _Strategy | None = None


class _Workload(_Shape, frozen=True):
    spec: _WorkloadSpec | None = None


class _Rule(_Shape, frozen=True):
    api_groups: Texts = None
    resources: Texts = None
    operations: Texts = None


class _Role(_Shape, frozen=True):
    rules: list[_Rule] | None = None


class _Subject(_Shape, frozen=True):
    kind: str
    name: str
    namespace: str | None = None


class _RoleReference(_Shape, frozen=True):
    kind: str
    name: str


class _Binding(_Shape, frozen=True):
    role_ref: _RoleReference
    subjects: list[_Subject] | None = None


class _Requirement(_Shape, frozen=True):
    key: str
    operator: str
    values: Texts = None


class _Selector(_Shape, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Requirement] | None = None


class _Webhook(_Shape, frozen=True):
    name: str
    rules: list[_Rule] | None = None
    namespace_selector: _Selector | None = None
    object_selector: _Selector | None = None


class _WebhookConfiguration(_Shape, frozen=True):
    webhooks: list[_Webhook] | None = None


_MALFORMED: Final = " - at `$"


def malformation(tree: ReadOnlyTree) -> str:
    """Return what is wrong with a field that judgements read; "" if nothing."""
    for shape in _shapes(tree):
        try:
            msgspec.convert(tree, shape)
        except msgspec.ValidationError as error:
            message, separator, path = str(error).partition(_MALFORMED)
            return f"{path.rstrip('`').lstrip('.')}: {message}" if separator else message
    return ""


def _shapes(tree: ReadOnlyTree) -> Iterator[type[_Shape]]:
    yield _AnyObject
    shapes: Mapping[type[_Shape], bool] = {
        _Definition: object_kinds.is_definition(tree),
        _Workload: object_kinds.is_workload(tree),
        _Role: object_kinds.is_role(tree),
        _Binding: object_kinds.is_binding(tree),
        _WebhookConfiguration: object_kinds.is_webhook(tree),
    }
    yield from (shape for shape, is_one in shapes.items() if is_one)
