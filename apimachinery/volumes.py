"""Access to claims and volumes for both processes: their classes, and the origins of clones."""

from . import meta
from .tree import ReadOnlyTree
from .wellknown import ANNOTATION_BETA_STORAGE_CLASS


def storage_class_name(obj: ReadOnlyTree) -> str:
    """Return the storage class name of a claim or a volume; empty if it has none."""
    annotated = meta.annotations(obj).get(ANNOTATION_BETA_STORAGE_CLASS)
    return annotated if annotated is not None else (obj.get("spec") or {}).get("storageClassName") or ""


def attributes_classes(claim: ReadOnlyTree) -> set[str]:
    """Return the desired volume attributes class of a claim, its present one, and the target of a change in progress."""
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    classes = (
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return {name for name in classes if name}


def cloned_claim(claim: ReadOnlyTree) -> str:
    """Return the name of the claim whose contents a claim has at first; "" if there is none."""
    spec = claim.get("spec") or {}
    source = spec.get("dataSourceRef") or spec.get("dataSource") or {}
    is_claim = source.get("kind") == "PersistentVolumeClaim" and not source.get("apiGroup")
    has_other_namespace = source.get("namespace") not in (None, meta.namespace(claim))
    return str(source["name"]) if is_claim and not has_other_namespace else ""
