"""StorageObjectInUseProtection: what is in use is not deleted: it carries a finalizer from the beginning."""

from collections.abc import Mapping

from apimachinery import meta
from apimachinery.groups import GroupResource
from apimachinery.wellknown import FINALIZER_PV_PROTECTION, FINALIZER_PVC_PROTECTION, FINALIZER_VAC_PROTECTION
from apiserver.admission.plugin import Plugin
from apiserver.rest.attributes import Attributes
from apiserver.rest.backend import Backend

FINALIZERS: Mapping[GroupResource, str] = {
    GroupResource("", "persistentvolumes"): FINALIZER_PV_PROTECTION,
    GroupResource("", "persistentvolumeclaims"): FINALIZER_PVC_PROTECTION,
    GroupResource("storage.k8s.io", "volumeattributesclasses"): FINALIZER_VAC_PROTECTION,
}


class StorageObjectInUseProtection(Plugin):
    async def mutate(self, _backend: Backend, attributes: Attributes) -> None:
        finalizer = FINALIZERS.get(attributes.resource.group_resource)
        if finalizer and attributes.object is not None and not attributes.subresource:
            present = meta.finalizers(attributes.object)
            if finalizer not in present:
                attributes.object["metadata"]["finalizers"] = [*present, finalizer]
