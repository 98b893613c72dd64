"""What the server itself writes into an object's metadata, whatever the object."""

from datetime import datetime

from mockube.apimachinery import chance as chances
from mockube.apimachinery import status
from mockube.apimachinery.chance import Chance
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.call import Call

MAX_GENERATED_BASE = 63 - chances.SUFFIX_LENGTH
_SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def of(tree: Tree) -> Tree:
    """An object's metadata, made if it was not sent."""
    metadata: Tree = tree.setdefault("metadata", {})
    return metadata


def begin(tree: Tree, call: Call, *, now: datetime, chance: Chance) -> None:
    """Give a new object what only the server may: whatever the client said of it is dropped."""
    metadata = of(tree)
    for field in _SYSTEM:
        metadata.pop(field, None)
    match_namespace(tree, call)
    metadata["uid"] = chances.uid(chance)
    metadata["creationTimestamp"] = format_time(now)


def match_namespace(tree: Tree, call: Call) -> None:
    """An object is in the namespace of its URL; it may leave out which, but not name another. The cluster's are in none."""
    metadata = of(tree)
    given = metadata.pop("namespace", "")
    if not call.resource.namespaced:
        return
    if given not in ("", call.namespace):
        raise status.BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = call.namespace


def match_name(tree: Tree, name: str) -> None:
    """An object sent to a name's URL has that name; it may leave it out."""
    metadata = of(tree)
    given = metadata.setdefault("name", name)
    if given != name:
        raise status.BadRequest(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )


def generated_name(base: str, chance: Chance) -> str:
    return base[:MAX_GENERATED_BASE] + chances.suffix(chance)


def keep(new: Tree, old: Tree) -> None:
    """Put back what an update can never change."""
    mine, theirs = of(new), of(old)
    mine.setdefault("uid", theirs.get("uid"))
    for field in ("creationTimestamp", "deletionTimestamp", "generation"):
        if field in theirs:
            mine[field] = theirs[field]
        else:
            mine.pop(field, None)
    if "deletionGracePeriodSeconds" in theirs:
        mine.setdefault("deletionGracePeriodSeconds", theirs["deletionGracePeriodSeconds"])
    mine.pop("selfLink", None)
