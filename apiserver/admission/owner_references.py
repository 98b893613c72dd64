"""OwnerReferencesPermissionEnforcement: a user needs a permission to make an object the dependent of another."""

from collections.abc import Iterator, Sequence
from typing import Final

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.authz.chain import Attributes, Authorization, Decision
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation

from .plugin import WRITE, Plugin, forbidden
from .rules import Equivalents, rows_of_kind

_EXEMPT: Final = ("", "pods", "status")
_DELETE: Final = "cannot set an ownerRef on a resource you can't delete"
_FINALIZE: Final = (
    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
)


class OwnerReferencesPermissionEnforcement(Plugin):
    operations = WRITE

    def __init__(self, authorization: Authorization, equivalents: Equivalents) -> None:
        self._authorization = authorization
        self._equivalents = equivalents

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        if attributes.target == _EXEMPT or attributes.object is None:
            return
        new, old = _owners(attributes.object), _owners(attributes.old)
        if new == old:
            return
        if attributes.operation is not Operation.CREATE:
            self._require(attributes, _deletion(attributes), _DELETE)
        blocking = [*_newly_blocking(new, old)]
        if not blocking or self._authorization.is_allowed(_finalizing(attributes, "*", "*", "*", "*", "")):
            return
        for owner in blocking:
            for row in self._rows(backend, attributes, owner):
                namespace = attributes.namespace if row.namespaced else ""
                question = _finalizing(
                    attributes, row.group, row.version, row.name, owner.get("name", ""), namespace
                )
                self._require(attributes, question, _FINALIZE)

    def _rows(
        self, backend: Backend, attributes: AdmissionAttributes, owner: ReadOnlyTree
    ) -> Sequence[Resource]:
        api_version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
        rows = rows_of_kind(backend, self._equivalents, api_version, kind)
        if not rows:
            problem = "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for"
            mapping_problem = f"no matches for kind {quote(kind)} in version {quote(api_version)}"
            raise forbidden(attributes, f"{problem} APIVersion {api_version} Kind {kind}: {mapping_problem}")
        return rows

    def _require(self, attributes: AdmissionAttributes, question: Attributes, problem: str) -> None:
        decision, reason = self._authorization.decide(question)
        if decision is not Decision.ALLOW:
            raise forbidden(attributes, f"{problem}: {reason}, <nil>")


def _owners(tree: Tree | None) -> Sequence[ReadOnlyTree]:
    return ((tree or {}).get("metadata") or {}).get("ownerReferences") or []


def _newly_blocking(new: Sequence[ReadOnlyTree], old: Sequence[ReadOnlyTree]) -> Iterator[ReadOnlyTree]:
    before = {owner.get("uid"): owner for owner in old}
    for owner in new:
        if owner.get("blockOwnerDeletion") and not before.get(owner.get("uid"), {}).get("blockOwnerDeletion"):
            yield owner


def _deletion(attributes: AdmissionAttributes) -> Attributes:
    return Attributes.of_row(
        attributes.context.user,
        "delete",
        attributes.resource,
        attributes.namespace,
        attributes.name,
        attributes.subresource,
    )


def _finalizing(
    attributes: AdmissionAttributes, group: str, version: str, resource: str, name: str, namespace: str
) -> Attributes:
    return Attributes(
        user=attributes.context.user,
        verb="update",
        group=group,
        version=version,
        resource=resource,
        subresource="finalizers",
        namespace=namespace,
        name=name,
    )
