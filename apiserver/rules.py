"""What kinds demand of their objects beyond their schemas: defaults and validation, behind the verbs' one door."""

from apiserver.defaults.defaulter import Defaulter
from apiserver.resources.conversion.internal import settle
from apiserver.storage.stored import Tree
from apiserver.validation import registry


class KindRules:
    def __init__(self, defaulter: Defaulter) -> None:
        self._defaulter = defaulter
        self.check_create = registry.check_create
        self.check_update = registry.check_update

    def default(self, api_version: str, kind: str, tree: Tree) -> None:
        self._defaulter.default_object(api_version, kind, tree)
        settle(api_version, kind, tree)
