"""The tables of verbs: the function of each verb of a resource and of each subresource."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.registry.call import Call, ListAnswer, ObjectAnswer
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.delete import delete, delete_collection
from mockube.apiserver.registry.patch import patch
from mockube.apiserver.registry.read import get, list_objects
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.subresources import binding, eviction, scale
from mockube.apiserver.registry.update import update

Verb: TypeAlias = Callable[[Registry, Call], Awaitable[ObjectAnswer | ListAnswer]]
OwnVerbs: TypeAlias = dict[tuple[GroupResource, str], Mapping[str, Verb]]
"""The verbs, by name, of resources and subresources ("" for the resource itself) that have verbs of their own."""

MAIN: Mapping[str, Verb] = {
    "create": create,
    "delete": delete,
    "deletecollection": delete_collection,
    "get": get,
    "list": list_objects,
    "patch": patch,
    "update": update,
}
WHOLE: Mapping[str, Verb] = {"get": get, "patch": patch, "update": update}
"""The verbs of subresources that read and write a part of the same object."""
SUBRESOURCES: Mapping[str, Mapping[str, Verb]] = {
    "status": WHOLE,
    "ephemeralcontainers": WHOLE,
    "resize": WHOLE,
    "approval": WHOLE,
    "finalize": WHOLE,
    "binding": {"create": binding.create},
    "eviction": {"create": eviction.create},
    "scale": {"get": scale.get, "patch": scale.patch, "update": scale.update},
}
BINDINGS: OwnVerbs = {(GroupResource("", "bindings"), ""): {"create": binding.create}}


def find_verb(own_verbs: OwnVerbs, resource: GroupResource, subresource: str, name: str) -> Verb | None:
    verbs = own_verbs.get((resource, subresource))
    if verbs is None:
        verbs = SUBRESOURCES.get(subresource, {}) if subresource else MAIN
    return verbs.get(name)
