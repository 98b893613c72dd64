"""Which volume a claim may have: bound to it, fit for it, the best of those."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from apimachinery import gotext, labels, meta, quantity
from apimachinery.quantity import Quantity
from controller_manager.kinds import PERSISTENT_VOLUME_CLAIMS
from controller_manager.runtime.resource import Tree
from controller_manager.storage.classes import class_name


def is_bound_to(volume: Tree, claim: Tree) -> bool:
    """The volume names this claim: for good with its uid, or as a wish of whoever made the volume."""
    ref = volume["spec"].get("claimRef")
    if ref is None or (ref["namespace"], ref["name"]) != (meta.namespace(claim), meta.name(claim)):
        return False
    return (ref.get("uid") or "") in ("", meta.uid(claim))


def claim_reference(claim: Tree) -> dict[str, Any]:
    """How a volume names its claim for good."""
    return {
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "namespace": meta.namespace(claim),
        "name": meta.name(claim),
        "uid": meta.uid(claim),
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "resourceVersion": meta.resource_version(claim),
    }


def capacity(volume: Tree) -> Quantity:
    return quantity.from_json((volume["spec"].get("capacity") or {}).get("storage"))


def request(claim: Tree) -> Quantity:
    return quantity.from_json(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage"))


def _modes(obj: Tree) -> set[str]:
    return {*(obj["spec"].get("accessModes") or ())}


def _volume_mode(obj: Tree) -> str:
    return obj["spec"].get("volumeMode") or "Filesystem"


def _attributes(obj: Tree) -> str:
    return obj["spec"].get("volumeAttributesClassName") or ""


_MISFITS: Final[tuple[tuple[Callable[[Tree, Tree], bool], str], ...]] = (
    (lambda volume, claim: capacity(volume) < request(claim), "requested PV is too small"),
    (lambda volume, claim: class_name(volume) != class_name(claim), "storageClassName does not match"),
    (
        lambda volume, claim: _attributes(volume) != _attributes(claim),
        "volumeAttributesClassName does not match",
    ),
    (lambda volume, claim: _volume_mode(volume) != _volume_mode(claim), "incompatible volumeMode"),
    (lambda volume, claim: not _modes(claim) <= _modes(volume), "incompatible accessMode"),
)


def misfit(volume: Tree, claim: Tree) -> str:
    """Why a volume cannot be the claim's, in upstream's words; empty if it can."""
    if meta.is_deleting(volume):
        return f"the volume is marked for deletion {gotext.quote(meta.name(volume))}"
    return next((problem for is_wrong, problem in _MISFITS if is_wrong(volume, claim)), "")


def best(volumes: Iterable[Tree], claim: Tree) -> Tree | None:
    """The volume that was made for the claim; or else the free one with the least that it does not need."""
    fitting = [volume for volume in volumes if not misfit(volume, claim)]
    bound = next((volume for volume in fitting if is_bound_to(volume, claim)), None)
    if bound is not None:
        return bound
    selector = claim["spec"].get("selector")
    chosen = labels.EVERYTHING if selector is None else labels.from_label_selector(selector)
    free = [volume for volume in fitting if _is_free(volume) and chosen.matches(meta.labels(volume))]
    return min(free, key=_excess, default=None)


def _is_free(volume: Tree) -> bool:
    available = (volume.get("status") or {}).get("phase") == "Available"
    return available and volume["spec"].get("claimRef") is None


def _excess(volume: Tree) -> tuple[int, Quantity, str]:
    return len(_modes(volume)), capacity(volume), meta.name(volume)
