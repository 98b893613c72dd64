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


class Metadata(Shape):
    name: str
    namespace: str | None = None
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class AnyObject(Shape):
    metadata: Metadata


class DefinedNames(Shape):
    kind: str
    plural: str


class VersionSchema(Shape):
    openAPIV3Schema: AnyMap = None  # noqa: N815 - the name of the field


class DefinedVersion(Shape):
    name: str
    served: bool = False
    storage: bool = False
    schema: VersionSchema | None = None


class Conversion(Shape):
    strategy: str = "None"


class DefinitionSpec(Shape):
    group: str
    names: DefinedNames
    versions: list[DefinedVersion]
    conversion: Conversion | None = None


class Definition(Shape):
    spec: DefinitionSpec


class FieldReference(Shape):
    field_path: str | None = None


class VariableSource(Shape):
    field_ref: FieldReference | None = None


class Variable(Shape):
    name: str
    value: str | None = None
    value_from: VariableSource | None = None


class Container(Shape):
    env: list[Variable] | None = None


class PodSpec(Shape):
    containers: list[Container] | None = None
    service_account_name: str | None = None


class Template(Shape):
    spec: PodSpec | None = None


class Strategy(Shape):
    type: str | None = None


class WorkloadSpec(Shape):
    template: Template | None = None
    strategy: Strategy | None = None


class Workload(Shape):
    spec: WorkloadSpec | None = None


class Rule(Shape):
    api_groups: Texts = None
    resources: Texts = None
    operations: Texts = None


class Role(Shape):
    rules: list[Rule] | None = None


class Subject(Shape):
    kind: str
    name: str
    namespace: str | None = None


class RoleReference(Shape):
    kind: str
    name: str


class Binding(Shape):
    role_ref: RoleReference
    subjects: list[Subject] | None = None


class Requirement(Shape):
    key: str
    operator: str
    values: Texts = None


class Selector(Shape):
    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None


class Webhook(Shape):
    name: str
    rules: list[Rule] | None = None
    namespace_selector: Selector | None = None
    object_selector: Selector | None = None


class WebhookConfiguration(Shape):
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
