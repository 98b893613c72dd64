"""Volumes, claims and storage classes as several controllers and the scheduler see them: names, classes and matching."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from mockube.apimachinery import gotext, labels, meta, quantity
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_DEFAULT_STORAGE_CLASS
from mockube.controller_manager.client.kinds import PERSISTENT_VOLUME_CLAIMS

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""On a claim: the node of its first consumer, chosen by the scheduler."""
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
"""On a claim: the provisioner of its volume."""
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
"""On a volume: the provisioner that created it, and will delete it."""
BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
BETA_DEFAULT_CLASS: Final = "storageclass.beta.kubernetes.io/is-default-class"

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
IN_TREE_PREFIX: Final = "kubernetes.io/"

MIGRATED: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""The drivers that do what plugins inside Kubernetes did."""


def class_name(obj: ReadOnlyTree) -> str:
    """Of a claim or a volume; empty if it has none."""
    annotated = meta.annotations(obj).get(BETA_STORAGE_CLASS)
    return annotated if annotated is not None else obj["spec"].get("storageClassName") or ""


def has_storage_class_name(claim: ReadOnlyTree) -> bool:
    """Whether a class is set, also the empty one: such a claim gets no default."""
    return BETA_STORAGE_CLASS in meta.annotations(claim) or claim["spec"].get("storageClassName") is not None


def default_class(classes: Iterable[ReadOnlyTree]) -> ReadOnlyTree | None:
    """Of several the newest."""
    defaults = sorted(filter(_is_default, classes), key=meta.name)
    return max(
        defaults,
        key=lambda storage_class: meta.metadata(storage_class).get("creationTimestamp") or "",
        default=None,
    )


def _is_default(storage_class: ReadOnlyTree) -> bool:
    present = meta.annotations(storage_class)
    return "true" in (present.get(ANNOTATION_DEFAULT_STORAGE_CLASS), present.get(BETA_DEFAULT_CLASS))


def waits_for_consumer(storage_class: ReadOnlyTree | None) -> bool:
    return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


def is_bound_to(volume: ReadOnlyTree, claim: ReadOnlyTree) -> bool:
    """Whether the volume names this claim: bound with its uid, or reserved by the volume's creator."""
    ref = volume["spec"].get("claimRef")
    if ref is None or (ref["namespace"], ref["name"]) != (meta.namespace(claim), meta.name(claim)):
        return False
    return (ref.get("uid") or "") in ("", meta.uid(claim))


def claim_reference(claim: ReadOnlyTree) -> dict[str, Any]:
    """Return the permanent name of a volume's claim."""
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


def request(claim: ReadOnlyTree) -> Quantity:
    return quantity.from_json(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage"))


def _modes(obj: ReadOnlyTree) -> set[str]:
    return {*(obj["spec"].get("accessModes") or ())}


def _volume_mode(obj: ReadOnlyTree) -> str:
    return obj["spec"].get("volumeMode") or "Filesystem"


def _attributes(obj: ReadOnlyTree) -> str:
    return obj["spec"].get("volumeAttributesClassName") or ""


_MISFITS: Final[tuple[tuple[Callable[[ReadOnlyTree, ReadOnlyTree], bool], str], ...]] = (
    (lambda volume, claim: capacity(volume) < request(claim), "requested PV is too small"),
    (lambda volume, claim: class_name(volume) != class_name(claim), "storageClassName does not match"),
    (
        lambda volume, claim: _attributes(volume) != _attributes(claim),
        "volumeAttributesClassName does not match",
    ),
    (lambda volume, claim: _volume_mode(volume) != _volume_mode(claim), "incompatible volumeMode"),
    (lambda volume, claim: not _modes(claim) <= _modes(volume), "incompatible accessMode"),
)


def mismatch_reason(volume: ReadOnlyTree, claim: ReadOnlyTree) -> str:
    """Why a volume cannot be the claim's, in upstream's words; empty if it can."""
    if meta.is_deleting(volume):
        return f"the volume is marked for deletion {gotext.quote(meta.name(volume))}"
    return next((problem for is_wrong, problem in _MISFITS if is_wrong(volume, claim)), "")


def best_match(volumes: Iterable[ReadOnlyTree], claim: ReadOnlyTree) -> ReadOnlyTree | None:
    """The volume that was made for the claim; or else the free one with the least that it does not need."""
    fitting = [volume for volume in volumes if not mismatch_reason(volume, claim)]
    bound = next((volume for volume in fitting if is_bound_to(volume, claim)), None)
    if bound is not None:
        return bound
    selector = claim["spec"].get("selector")
    chosen = labels.EVERYTHING if selector is None else labels.from_label_selector(selector)
    free = [volume for volume in fitting if _is_free(volume) and chosen.matches(meta.labels(volume))]
    return min(free, key=_excess_key, default=None)


def _is_free(volume: ReadOnlyTree) -> bool:
    available = (volume.get("status") or {}).get("phase") == "Available"
    return available and volume["spec"].get("claimRef") is None


def _excess_key(volume: ReadOnlyTree) -> tuple[int, Quantity, str]:
    return len(_modes(volume)), capacity(volume), meta.name(volume)
