"""What kinds demand of their objects beyond their schemas: defaults and validation, behind the verbs' one door."""

from collections.abc import Sequence

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import ROOT
from apiserver.defaults.defaulter import Defaulter
from apiserver.resources.spec import Resource
from apiserver.storage.stored import Tree


class KindRules:
    def __init__(self, defaulter: Defaulter) -> None:
        self.default = defaulter.default_object

    def check_create(self, resource: Resource, tree: Tree) -> Sequence[FieldError]:
        if not tree["metadata"].get("name"):
            return [errors.required(ROOT.child("metadata", "name"), "name or generateName is required")]
        return []

    def check_update(
        self, resource: Resource, subresource: str, new: Tree, old: Tree
    ) -> Sequence[FieldError]:
        return []
