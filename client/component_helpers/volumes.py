"""Volumes, claims and storage classes: annotations, capacities, claim templates, and matching of volumes to claims."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from mockube.apimachinery import gotext, labels, meta, quantity
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import storage_class_name
from mockube.apimachinery.wellknown import (
    ANNOTATION_BETA_DEFAULT_STORAGE_CLASS,
    ANNOTATION_BETA_STORAGE_CLASS,
    ANNOTATION_DEFAULT_STORAGE_CLASS,
)
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""An annotation of claims: the node that the scheduler chose for the first consumer."""
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
"""An annotation of claims: the provisioner of the volume."""
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
"""An annotation of volumes: the provisioner that created the volume and deletes it."""

PRE_RESIZE_CAPACITY: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"
"""An annotation of volumes: the capacity before the resize in progress."""

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
IN_TREE_PREFIX: Final = "kubernetes.io/"

MIGRATED_PLUGINS: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""The CSI drivers that replace in-tree plugins, by plugin."""

SIMULATED_PROVISIONER: Final = "simulated.mockube.dev"
"""The provisioner of the storage class that a simulated cluster has."""

SIMULATED_PROVISIONERS: Final = frozenset(
    {
        SIMULATED_PROVISIONER,
        "docker.io/hostpath",
        "efs.csi.aws.com",
        "hostpath.csi.k8s.io",
        "k8s.io/minikube-hostpath",
        "rancher.io/local-path",
        *MIGRATED_PLUGINS.values(),
    }
)
"""The provisioners and CSI drivers that are simulated: those of common clouds and of local clusters."""


def has_storage_class_name(claim: ReadOnlyTree) -> bool:
    """Return whether a claim has a class name, even an empty one: then it gets no default class."""
    return (
        ANNOTATION_BETA_STORAGE_CLASS in meta.annotations(claim)
        or claim["spec"].get("storageClassName") is not None
    )


def default_class(classes: Iterable[ReadOnlyTree]) -> ReadOnlyTree | None:
    """Return the default storage class, the newest if there are several; None if there is none."""
    return meta.newest_default(
        classes, (ANNOTATION_DEFAULT_STORAGE_CLASS, ANNOTATION_BETA_DEFAULT_STORAGE_CLASS)
    )


def waits_for_consumer(storage_class: ReadOnlyTree | None) -> bool:
    return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


def is_bound_to(volume: ReadOnlyTree, claim: ReadOnlyTree) -> bool:
    """Return whether the volume's claimRef names this claim: with its uid, or without a uid as a reservation."""
    ref = volume["spec"].get("claimRef")
    if ref is None or (ref["namespace"], ref["name"]) != (meta.namespace(claim), meta.name(claim)):
        return False
    return (ref.get("uid") or "") in ("", meta.uid(claim))


def attachment_name(volume: ReadOnlyTree, node: str) -> str:
    """Return the name of the VolumeAttachment that attaches a volume of a CSI driver to a node."""
    source = volume["spec"]["csi"]
    text = f"{source['volumeHandle']}{source['driver']}{node}"
    return f"csi-{hashlib.sha256(text.encode()).hexdigest()}"


def claim_reference(claim: ReadOnlyTree) -> dict[str, Any]:
    """Return the `claimRef` that binds a volume to this claim."""
    return {
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "namespace": meta.namespace(claim),
        "name": meta.name(claim),
        "uid": meta.uid(claim),
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "resourceVersion": meta.resource_version(claim),
    }


def capacity(volume: ReadOnlyTree) -> Quantity:
    return quantity.from_json((volume["spec"].get("capacity") or {}).get("storage"))


def status_capacity(claim: ReadOnlyTree) -> Quantity:
    """Return the present capacity of a claim."""
    return quantity.from_json(((claim.get("status") or {}).get("capacity") or {}).get("storage"))


def request(claim: ReadOnlyTree) -> Quantity:
    return quantity.from_json(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage"))


def _access_modes(obj: ReadOnlyTree) -> set[str]:
    return {*(obj["spec"].get("accessModes") or ())}


def _volume_mode(obj: ReadOnlyTree) -> str:
    return obj["spec"].get("volumeMode") or "Filesystem"


def _attributes_class_name(obj: ReadOnlyTree) -> str:
    return obj["spec"].get("volumeAttributesClassName") or ""


# --- claim templates of workloads


def pod_volumes(spec: ReadOnlyTree, claims: Mapping[str, str]) -> dict[str, Any]:
    """Return the `volumes` of a pod: its claims, by the name of their template, and the spec's volumes with other names."""
    if not claims:
        return {}
    claim_volumes = [
        {"name": template, "persistentVolumeClaim": {"claimName": claim}}
        for template, claim in claims.items()
    ]
    others = [volume for volume in spec.get("volumes") or () if volume["name"] not in claims]
    return {"volumes": [*claim_volumes, *others]}


def claim_from_template(
    template: ReadOnlyTree, owner: ReadOnlyTree, name: str, extra_labels: Mapping[str, str], **metadata: Any
) -> dict[str, Any]:
    """Return the claim of a pod of the owner, with the labels of its selector and extra ones."""
    selected = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
    with_name = meta.with_metadata(
        template,
        name=name,
        namespace=meta.namespace(owner),
        labels={**meta.labels(template), **selected, **extra_labels},
        creationTimestamp=None,
        **metadata,
    )
    return {
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "metadata": with_name["metadata"],
        "spec": template.get("spec") or {},
    }


# --- matching of volumes to claims

_MISMATCHES: Final[tuple[tuple[Callable[[ReadOnlyTree, ReadOnlyTree], bool], str], ...]] = (
    (lambda volume, claim: capacity(volume) < request(claim), "requested PV is too small"),
    (
        lambda volume, claim: storage_class_name(volume) != storage_class_name(claim),
        "storageClassName does not match",
    ),
    (
        lambda volume, claim: _attributes_class_name(volume) != _attributes_class_name(claim),
        "volumeAttributesClassName does not match",
    ),
    (lambda volume, claim: _volume_mode(volume) != _volume_mode(claim), "incompatible volumeMode"),
    (lambda volume, claim: not _access_modes(claim) <= _access_modes(volume), "incompatible accessMode"),
)


def mismatch_reason(volume: ReadOnlyTree, claim: ReadOnlyTree) -> str:
    """Return why a volume cannot be bound to a claim, in upstream's words; empty if it can."""
    if meta.is_deleting(volume):
        return f"the volume is marked for deletion {gotext.quote(meta.name(volume))}"
    return next((problem for is_wrong, problem in _MISMATCHES if is_wrong(volume, claim)), "")


def best_match(volumes: Iterable[ReadOnlyTree], claim: ReadOnlyTree) -> ReadOnlyTree | None:
    """Return the volume that is bound to or reserved for a claim, else the smallest available one, or None."""
    fitting = [volume for volume in volumes if not mismatch_reason(volume, claim)]
    reserved = next((volume for volume in fitting if is_bound_to(volume, claim)), None)
    if reserved is not None:
        return reserved
    selector = claim["spec"].get("selector")
    label_selector = labels.EVERYTHING if selector is None else labels.from_label_selector(selector)
    available = [
        volume for volume in fitting if _is_available(volume) and label_selector.matches(meta.labels(volume))
    ]
    return min(available, key=_excess_key, default=None)


def _is_available(volume: ReadOnlyTree) -> bool:
    is_available = (volume.get("status") or {}).get("phase") == "Available"
    return is_available and volume["spec"].get("claimRef") is None


def _excess_key(volume: ReadOnlyTree) -> tuple[int, Quantity, str]:
    return len(_access_modes(volume)), capacity(volume), meta.name(volume)
