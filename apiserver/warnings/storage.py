"""Volumes, claims and their classes: fields and annotations that have successors, and drivers that gossip."""

from collections.abc import Iterator
from typing import Final

from apimachinery import meta
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT
from apiserver.validation.rules import Tree
from apiserver.warnings import labels
from apiserver.warnings.kind import Warnings, always
from apiserver.warnings.volumes import of_claim, of_sources

_SPEC: Final = ROOT.child("spec")
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_NO_CLASS: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'
_ANNOTATIONS: Final = {
    _CLASS: _NO_CLASS,
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_NO_RECYCLING: Final = (
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach "
    "is to use dynamic provisioning."
)
_GOSSIP: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
    "possible logging of tokens in volume attributes"
)
_VOLUMES: Final = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
"""Kinds that a PersistentVolume is warned of, in upstream's order."""


def _of_volume(volume: Tree) -> Iterator[str]:
    spec, annotations = volume.get("spec") or {}, meta.annotations(volume)
    for name, problem in _ANNOTATIONS.items():
        if name in annotations:
            yield f"metadata.annotations[{name}]: {problem}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield _NO_RECYCLING
    if required := (spec.get("nodeAffinity") or {}).get("required"):
        path = _SPEC.child("nodeAffinity", "required", "nodeSelectorTerms")
        yield from labels.of_terms(required.get("nodeSelectorTerms"), path)
    for field in _VOLUMES:
        if field in spec:
            yield from of_sources({field: spec[field]}, _SPEC)


def _of_claim(claim: Tree) -> Iterator[str]:
    if _CLASS in meta.annotations(claim):
        yield f"metadata.annotations[{_CLASS}]: {_NO_CLASS}"
    yield from of_claim(claim.get("spec"), _SPEC)


def _of_class(class_: Tree) -> Iterator[str]:
    for index, topology in enumerate(class_.get("allowedTopologies") or ()):
        path = ROOT.child("allowedTopologies").index(index).child("matchLabelExpressions")
        for number, expression in enumerate(topology.get("matchLabelExpressions") or ()):
            if (key := expression.get("key")) in labels.DEPRECATED:
                yield f"{path.index(number).child('key')}: {labels.DEPRECATED[key]}"


def _of_capacity(capacity: Tree) -> Iterator[str]:
    return labels.of_selector(capacity.get("nodeTopology"), ROOT.child("nodeTopology"))


def _create_driver(driver: Tree) -> Iterator[str]:
    spec = driver.get("spec") or {}
    if spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
        yield _GOSSIP


def _update_driver(new: Tree, old: Tree) -> Iterator[str]:
    if (new.get("spec") or {}).get("tokenRequests") != (old.get("spec") or {}).get("tokenRequests"):
        yield from _create_driver(new)


WARNINGS: Final = {
    GroupKind("", "PersistentVolume"): always(_of_volume),
    GroupKind("", "PersistentVolumeClaim"): always(_of_claim),
    GroupKind("storage.k8s.io", "CSIDriver"): Warnings(create=_create_driver, update=_update_driver),
    GroupKind("storage.k8s.io", "CSIStorageCapacity"): always(_of_capacity),
    GroupKind("storage.k8s.io", "StorageClass"): always(_of_class),
}
