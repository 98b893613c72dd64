"""PersistentVolumeClaimResize: a claim grows only if its storage class allows volume expansion."""

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.wellknown import ANNOTATION_BETA_STORAGE_CLASS
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes

from .plugin import CLAIMS, UPDATE, Plugin, forbidden

STORAGE_CLASSES = GroupResource("storage.k8s.io", "storageclasses")


class PersistentVolumeClaimResize(Plugin):
    operations = UPDATE
    targets = CLAIMS

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        new, old = attributes.object, attributes.old
        assert new is not None
        assert old is not None
        if quantity.parse(_size(new)) <= quantity.parse(_size(old)):
            return
        if old.get("status", {}).get("phase") != "Bound":
            raise forbidden(attributes, "Only bound persistent volume claims can be expanded")
        if not await _can_grow(backend, new, old):
            raise forbidden(
                attributes,
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
                "must support resize",
            )


def _size(claim: Tree) -> str:
    size: str = (claim["spec"].get("resources", {}).get("requests") or {}).get("storage", "0")
    return size


def _class(claim: Tree) -> str:
    beta = meta.annotations(claim).get(ANNOTATION_BETA_STORAGE_CLASS, "")
    name: str = beta or claim["spec"].get("storageClassName") or ""
    return name


async def _can_grow(backend: Backend, new: Tree, old: Tree) -> bool:
    name = _class(new)
    if not name or name != _class(old):
        return False
    stored = await backend.find(backend.rows[STORAGE_CLASSES], "", name)
    return stored is not None and bool(stored.tree().get("allowVolumeExpansion"))
