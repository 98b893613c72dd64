"""Which function carries out which verb, of a resource and of each subresource."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from apimachinery.groups import GroupResource
from apiserver.rest.backend import Backend
from apiserver.rest.call import Call, ListAnswer, ObjectAnswer
from apiserver.rest.create import create
from apiserver.rest.delete import delete, delete_collection
from apiserver.rest.patch import patch
from apiserver.rest.read import get, list_objects
from apiserver.rest.subresources import binding, eviction, scale
from apiserver.rest.update import update

Verb: TypeAlias = Callable[[Backend, Call], Awaitable[ObjectAnswer | ListAnswer]]
Verbs: TypeAlias = Callable[[GroupResource, str, str], Verb | None]
"""Finds a verb by resource, subresource ("" for the resource itself) and name."""

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
"""Of a subresource that is another way in to the same object."""
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
RESOURCES: Mapping[GroupResource, Mapping[str, Verb]] = {
    GroupResource("", "bindings"): {"create": binding.create},
}
"""Of resources that are not objects that are stored."""


def verb(resource: GroupResource, subresource: str, name: str) -> Verb | None:
    if subresource:
        return SUBRESOURCES.get(subresource, {}).get(name)
    return RESOURCES.get(resource, MAIN).get(name)
