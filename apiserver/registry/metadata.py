"""What the server itself writes into an object's metadata, whatever the object."""

from datetime import datetime

from mockube.apimachinery import gotext, randomness, status
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.call import Call

MAX_GENERATED_BASE = 63 - randomness.SUFFIX_LENGTH
AFTER_ADMISSION = " after mutating admission happens"
_SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def ensure_metadata(tree: Tree) -> Tree:
    """An object's metadata, made if it was not sent."""
    metadata: Tree = tree.setdefault("metadata", {})
    return metadata


def set_system_fields(tree: Tree, call: Call, *, now: datetime, random: Random) -> None:
    """Set a new object's system fields. A create drops what the client sent in them."""
    metadata = ensure_metadata(tree)
    metadata.pop("selfLink", None)
    match_namespace(tree, call)
    metadata["uid"] = randomness.uid(random)
    metadata["creationTimestamp"] = format_time(now)


def clear_system(tree: Tree) -> None:
    """Drop the system fields of an object."""
    metadata = ensure_metadata(tree)
    for field in _SYSTEM:
        metadata.pop(field, None)


_DUPLICATES = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)


def without_duplicate_owners(tree: Tree, call: Call, *, when: str = "") -> Tree:
    """Return the object with each owner reference once; add a warning for duplicates."""
    references = (tree.get("metadata") or {}).get("ownerReferences") or ()
    if len(references) < 2 or len({reference.get("uid") for reference in references}) == len(references):
        return tree
    owners_by_uid: dict[str, list[Tree]] = {}
    unique_references, duplicates = [], []
    for reference in references:
        uid = reference.get("uid", "")
        same = owners_by_uid.setdefault(uid, [])
        if reference in same:
            duplicates.append(uid)
        else:
            same.append(reference)
            unique_references.append(reference)
    if not duplicates:
        return tree
    call.warn(_DUPLICATES.format(when=when, uids=", ".join(duplicates)))
    return {**tree, "metadata": {**tree["metadata"], "ownerReferences": unique_references}}


def check_new(tree: Tree, call: Call, *, dry_run: bool) -> None:
    """What an update or apply makes was not there before: it cannot be a certain object, and has had no version.

    A dry run shows the version that was sent all the same.
    """
    metadata = ensure_metadata(tree)
    if uid := metadata.get("uid"):
        problem = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status.conflict(call.resource.group_resource, call.name, problem)
    version(metadata.get("resourceVersion", ""))
    if not dry_run:
        metadata.pop("resourceVersion", None)


def version(text: str) -> int:
    """Return the resourceVersion that a client sent, as a number; 0 if it sent none."""
    try:
        return gotext.parse_uint(text) if text else 0
    except gotext.NumberError as error:
        raise ApiError(str(error)) from error


def match_namespace(tree: Tree, call: Call) -> None:
    """Set the namespace of the URL; refuse another one. Cluster-scoped objects have none."""
    metadata = ensure_metadata(tree)
    object_namespace = metadata.pop("namespace", "")
    if not call.resource.namespaced:
        return
    if object_namespace not in ("", call.namespace):
        raise status.BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = call.namespace


def match_name(tree: Tree, name: str) -> None:
    """Refuse an object whose name is not that of the URL."""
    object_name = ensure_metadata(tree).get("name")
    if not object_name:
        problem = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise status.BadRequest(problem)
    if object_name != name:
        raise status.BadRequest(
            f"the name of the object ({object_name}) does not match the name on the URL ({name})"
        )


def generated_name(base: str, random: Random) -> str:
    return base[:MAX_GENERATED_BASE] + randomness.suffix(random)


def keep(new: Tree, old: Tree) -> None:
    """Put back what an update can never change."""
    new_metadata, old_metadata = ensure_metadata(new), ensure_metadata(old)
    new_metadata["uid"] = new_metadata.get("uid") or old_metadata.get("uid")
    for field in ("creationTimestamp", "generation"):
        if field in old_metadata:
            new_metadata[field] = old_metadata[field]
        else:
            new_metadata.pop(field, None)
    if "deletionTimestamp" in old_metadata:
        new_metadata["deletionTimestamp"] = old_metadata["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old_metadata:
        new_metadata.setdefault("deletionGracePeriodSeconds", old_metadata["deletionGracePeriodSeconds"])
    new_metadata.pop("selfLink", None)
