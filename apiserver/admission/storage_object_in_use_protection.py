"""StorageObjectInUseProtection: new objects get a finalizer, so that they are not deleted while they are in use."""

from collections.abc import Mapping

from mockube.apimachinery import meta
from mockube.apimachinery.wellknown import (
    FINALIZER_PV_PROTECTION,
    FINALIZER_PVC_PROTECTION,
    FINALIZER_VAC_PROTECTION,
)
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Target

from .plugin import CLAIM, Plugin

FINALIZERS: Mapping[Target, str] = {
    ("", "persistentvolumes", ""): FINALIZER_PV_PROTECTION,
    CLAIM: FINALIZER_PVC_PROTECTION,
    ("storage.k8s.io", "volumeattributesclasses", ""): FINALIZER_VAC_PROTECTION,
}


class StorageObjectInUseProtection(Plugin):
    targets = frozenset(FINALIZERS)

    async def mutate(self, _backend: Backend, attributes: AdmissionAttributes) -> None:
        written, finalizer = attributes.object, FINALIZERS[attributes.target]
        assert written is not None
        present = meta.finalizers(written)
        if finalizer not in present:
            written["metadata"]["finalizers"] = [*present, finalizer]
