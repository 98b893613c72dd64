"""The fields of manifests that judgements read, with their types: an object with other ones is refused when it is read. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree

from . import object_kinds

Texts = list[str] | None
AnyMap = dict[str, Any] | None


class Shape(Struct, frozen=True, rename="camel"):
    """Fields of an object; it may have others."""


class Metadata(Shape, frozen=True):
    name: str
    namespace: str | None = None
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class AnyObject(Shape, frozen=True):
    metadata: Metadata


class DefinedNames(Shape, frozen=True):
    kind: str
    plural: str


class VersionSchema(Shape, frozen=True):
    openAPIV3Schema: AnyMap = None  # noqa: N815 - the name of the field


class DefinedVersion(Shape, frozen=True):
    name: str
    served: bool = False
    storage: bool = False
    schema: VersionSchema | None = None


class Conversion(Shape, frozen=True):
    strategy: str = "None"


class DefinitionSpec(Shape, frozen=True):
    group: str
    names: DefinedNames
    versions: list[DefinedVersion]
    conversion: Conversion | None = None


class Definition(Shape, frozen=True):
    spec: DefinitionSpec


class FieldReference(Shape, frozen=True):
    field_path: str | None = None


class VariableSource(Shape, frozen=True):
    field_ref: FieldReference | None = None


class Variable(Shape, frozen=True):
    name: str
    value: str | None = None
    value_from: VariableSource | None = None


class Container(Shape, frozen=True):
    env: list[Variable] | None = None


class PodSpec(Shape, frozen=True):
    containers: list[Container] | None = None
    service_account_name: str | None = None


class Template(Shape, frozen=True):
    spec: PodSpec | None = None


class Strategy(Shape, frozen=True):
    type: str | None = None


class WorkloadSpec(Shape, frozen=True):
    template: Template | None = None
    strategy: Strategy | None = None


class Workload(Shape, frozen=True):
    spec: WorkloadSpec | None = None


class Rule(Shape, frozen=True):
    api_groups: Texts = None
    resources: Texts = None
    operations: Texts = None


class Role(Shape, frozen=True):
    rules: list[Rule] | None = None


class Subject(Shape, frozen=True):
    kind: str
    name: str
    namespace: str | None = None


class RoleReference(Shape, frozen=True):
    kind: str
    name: str


class Binding(Shape, frozen=True):
    role_ref: RoleReference
    subjects: list[Subject] | None = None


class Requirement(Shape, frozen=True):
    key: str
    operator: str
    values: Texts = None


class Selector(Shape, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None


class Webhook(Shape, frozen=True):
    name: str
    rules: list[Rule] | None = None
    namespace_selector: Selector | None = None
    object_selector: Selector | None = None


class WebhookConfiguration(Shape, frozen=True):
    webhooks: list[Webhook] | None = None


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


def _shapes(tree: ReadOnlyTree) -> Iterator[type[Shape]]:
    yield AnyObject
    shapes: Mapping[type[Shape], bool] = {
        Definition: object_kinds.is_definition(tree),
        Workload: object_kinds.is_workload(tree),
        Role: object_kinds.is_role(tree),
        Binding: object_kinds.is_binding(tree),
        WebhookConfiguration: object_kinds.is_webhook(tree),
    }
    yield from (shape for shape, is_one in shapes.items() if is_one)
