"""What kinds demand of their objects beyond their schemas: defaults, validation and warnings, behind the verbs' one door."""

from apimachinery.errors import FieldError
from apiserver.defaults.defaulter import Defaulter
from apiserver.resources.conversion.internal import settle
from apiserver.resources.spec import Resource
from apiserver.storage.stored import Tree
from apiserver.validation import registry
from apiserver.validation.pods.privileged import SUBRESOURCES, check_unprivileged
from apiserver.validation.rules import Tree as View
from apiserver.warnings.registry import warn_create, warn_update


class KindRules:
    def __init__(self, defaulter: Defaulter) -> None:
        self._defaulter = defaulter
        self.check_create = registry.check_create
        self.check_update = registry.check_update
        self.warn_create = warn_create
        self.warn_update = warn_update

    def default(self, api_version: str, kind: str, tree: Tree) -> None:
        self._defaulter.default_object(api_version, kind, tree)
        settle(api_version, kind, tree)


class UnprivilegedRules(KindRules):
    """Those of a cluster in which no container is privileged."""

    def __init__(self, defaulter: Defaulter) -> None:
        super().__init__(defaulter)
        self.check_create = _check_create
        self.check_update = _check_update


def _check_create(resource: Resource, tree: View) -> list[FieldError]:
    return [*registry.check_create(resource, tree), *check_unprivileged(resource.group_kind, tree)]


def _check_update(resource: Resource, subresource: str, new: View, old: View) -> list[FieldError]:
    found = registry.check_update(resource, subresource, new, old)
    if subresource in SUBRESOURCES:
        found += check_unprivileged(resource.group_kind, new)
    return found
