"""Which function carries out which verb, of a resource and of each subresource."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from apiserver.rest.backend import Backend
from apiserver.rest.call import Call, ListAnswer, ObjectAnswer
from apiserver.rest.create import create
from apiserver.rest.delete import delete, delete_collection
from apiserver.rest.patch import patch
from apiserver.rest.read import get, list_objects
from apiserver.rest.update import update

Verb: TypeAlias = Callable[[Backend, Call], Awaitable[ObjectAnswer | ListAnswer]]

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
}


def verb(subresource: str, name: str) -> Verb | None:
    return (SUBRESOURCES.get(subresource, {}) if subresource else MAIN).get(name)
