"""What a kind of the group says of itself, and the row, the schema and the columns that are made of it.

The form is that of a CustomResourceDefinition, so that validation with causes, defaults, selectors, tables, apply and OpenAPI are
those of custom resources. docs/decisions/0043-control-api.md says how a kind is added.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.groups import CONTROL, GroupResource
from mockube.apimachinery.schema.model import Schemas
from mockube.apimachinery.tree import Tree
from mockube.apiserver.customresources.compile import compile_definition
from mockube.apiserver.customresources.custom_version import CustomVersion
from mockube.apiserver.customresources.registries import OBJECT_META
from mockube.apiserver.fields import SelectableField
from mockube.apiserver.kinds.api_resource import Subresource
from mockube.apiserver.wire.table import Printer

VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{CONTROL}/{VERSION}"
AGE: Final = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": "The time since the object was created.",
}
"""The column with the age of an object."""


class ControlKind(Struct, frozen=True, kw_only=True):
    """A kind as data. It is cluster-scoped, has no category, and no verb `deletecollection`."""

    name: str
    plural: str
    short_names: tuple[str, ...] = ()
    description: str
    """What `kubectl explain` says of it."""
    spec: Mapping[str, Any]
    """The schema of its spec, with descriptions."""
    status: Mapping[str, Any] | None = None
    """The schema of its status, which only the server writes; None without one."""
    is_spec_required: bool = False
    columns: Sequence[Mapping[str, Any]] = (AGE,)
    """The columns after the name, as a definition has them."""
    summary: Callable[[Tree], Tree] | None = None
    """Returns what columns show that no field of an object has by itself; they find it at `.summary`."""
    selectable: tuple[SelectableField, ...] = ()
    """The fields of field selectors besides metadata.name."""
    verbs: tuple[str, ...]
    unlisted_verbs: tuple[str, ...] = ("delete",)
    """The verbs that discovery omits: what it lists with `delete`, a garbage collector watches and tries to delete."""
    subresources: tuple[Subresource, ...] = ()
    max_objects: int = 1_000
    """How many objects of the kind there may be."""

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(CONTROL, self.plural)

    def definition(self) -> Tree:
        """Return the kind as a CustomResourceDefinition."""
        properties: Tree = {"spec": {"type": "object", **self.spec}}
        if self.status is not None:
            properties["status"] = {"type": "object", **self.status}
        schema: Tree = {"type": "object", "description": self.description, "properties": properties}
        if self.is_spec_required:
            schema["required"] = ["spec"]
        version: Tree = {
            "name": VERSION,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
            "additionalPrinterColumns": list(self.columns),
        }
        if self.status is not None:
            version["subresources"] = {"status": {}}  # so that clients do not write it
        names = {
            "plural": self.plural,
            "singular": self.name.lower(),
            "kind": self.name,
            "listKind": f"{self.name}List",
            "shortNames": list(self.short_names),
        }
        spec = {"group": CONTROL, "names": names, "scope": "Cluster", "versions": [version]}
        return {
            "metadata": {"name": f"{self.plural}.{CONTROL}"},
            "spec": {**spec, "conversion": {"strategy": "None"}},
        }

    def compile(self, schemas: Schemas) -> CustomVersion:
        (compiled,) = compile_definition(self.definition(), partial(schemas.definition, OBJECT_META))
        fields = ("metadata.name", *(field.label for field in self.selectable))
        row = replace(
            compiled.row,
            verbs=self.verbs,
            unlisted_verbs=self.unlisted_verbs,
            subresources=self.subresources,
            selectable=self.selectable,
            refused_label=f"field label not supported: {{label}}, must be one of {', '.join(fields)}",
            virtual=True,
        )
        return replace(compiled, row=row, printer=self._printer(compiled.printer))

    def _printer(self, printer: Printer) -> Printer:
        summary = self.summary
        if summary is None:
            return printer
        cells = printer.cells
        return replace(printer, cells=lambda tree, now: cells({**tree, "summary": summary(tree)}, now))


def compile_kinds(kinds: Sequence[ControlKind], schemas: Schemas) -> Iterator[CustomVersion]:
    for kind in kinds:
        yield kind.compile(schemas)
