"""DefaultStorageClass and DefaultIngressClass: an object without a class gets the cluster's default, if there is one.

Of several defaults the newest is used; of those with the same creation time, the first by name.
"""

from collections.abc import Sequence

from mockube.apimachinery import meta, wellknown
from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes

from .plugin import CLAIMS, Plugin

STORAGE_CLASSES = GroupResource("storage.k8s.io", "storageclasses")
INGRESS_CLASSES = GroupResource("networking.k8s.io", "ingressclasses")


class DefaultStorageClass(Plugin):
    targets = CLAIMS

    async def mutate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        claim = attributes.object
        assert claim is not None
        has_annotation = wellknown.ANNOTATION_BETA_STORAGE_CLASS in meta.annotations(claim)
        if "storageClassName" in claim["spec"] or has_annotation:
            return
        annotation_names = (
            wellknown.ANNOTATION_DEFAULT_STORAGE_CLASS,
            wellknown.ANNOTATION_BETA_DEFAULT_STORAGE_CLASS,
        )
        if name := _default_class(backend, STORAGE_CLASSES, annotation_names):
            claim["spec"] = claim["spec"] | {"storageClassName": name}


class DefaultIngressClass(Plugin):
    targets = frozenset({("networking.k8s.io", "ingresses", "")})

    async def mutate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        ingress = attributes.object
        assert ingress is not None
        spec = ingress.get("spec", {})
        if "ingressClassName" in spec or wellknown.ANNOTATION_INGRESS_CLASS in meta.annotations(ingress):
            return
        if name := _default_class(backend, INGRESS_CLASSES, (wellknown.ANNOTATION_DEFAULT_INGRESS_CLASS,)):
            ingress["spec"] = spec | {"ingressClassName": name}


def _default_class(backend: Backend, classes: GroupResource, annotation_names: Sequence[str]) -> str:
    """Return the name of the default class; "" if there is none."""
    trees = (stored.tree() for stored in backend.list_cached(classes))
    default = meta.newest_default(trees, annotation_names)
    return "" if default is None else meta.name(default)
