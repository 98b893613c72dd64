"""A custom resource in one version, with all that the server does with its objects by its definition alone."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from apimachinery import errors
from apimachinery.errors import ErrorType, FieldError
from apimachinery.paths import ROOT
from apimachinery.schema.model import Type
from apiserver.crd.default import Fill, filler
from apiserver.crd.lists import lists_checker
from apiserver.crd.prune import Prune, root_pruner
from apiserver.crd.schema import Schema, has_rules
from apiserver.crd.types import kind_type
from apiserver.crd.validate import checker
from apiserver.resources.spec import Resource
from apiserver.resources.strategy import Strategy
from apiserver.storage.stored import Tree
from apiserver.validation.rules import Check
from apiserver.wire.table import Printer

_BLOCKING: Final = frozenset(
    (
        ErrorType.NOT_SUPPORTED,
        ErrorType.REQUIRED,
        ErrorType.TOO_LONG,
        ErrorType.TOO_MANY,
        ErrorType.TYPE_INVALID,
    )
)
"""Errors with which upstream does not come to look at rules."""
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Custom:
    """What walks objects is made of the schema when it is first needed: most kinds of a cluster are seldom used."""

    row: Resource
    schema: Schema
    strategy: Strategy
    printer: Printer
    metadata: Callable[[], Type]
    """Finds the type of every object's metadata."""
    served: bool = True
    """A version that is not served may still be the one that is stored."""

    @property
    def definition_name(self) -> str:
        """What OpenAPI calls the kind: `io.kruise.apps.v1alpha1.CloneSet`."""
        group = ".".join(reversed(self.row.group.split(".")))
        return f"{group}.{self.row.version}.{self.row.kind}"

    @cached_property
    def type(self) -> Type:
        return kind_type(self.definition_name, self.schema, self.metadata())

    @cached_property
    def prune(self) -> Prune:
        return root_pruner(self.schema)

    def default(self, tree: Tree) -> None:
        if self._fill is not None:
            self._fill(tree)

    def check(self, tree: Mapping[str, Any]) -> Iterable[FieldError]:
        """What is wrong with an object's content; with nothing wrong in its values, its lists are looked at."""
        found = [*self._check(tree, ROOT)] or [*self._check_lists(tree, ROOT)]
        if self._has_rules and any(error.type in _BLOCKING for error in found):
            found.append(errors.invalid(ROOT, None, _NOT_CHECKED))
        return found

    @cached_property
    def _fill(self) -> Fill | None:
        return filler(self.schema)

    @cached_property
    def _has_rules(self) -> bool:
        return has_rules(self.schema)

    @cached_property
    def _check(self) -> Check:
        return checker(self.schema)

    @cached_property
    def _check_lists(self) -> Check:
        return lists_checker(self.schema) or (lambda _tree, _path: ())
