"""Objects between the version that a client speaks and the one that is stored, where those are not the same.

Clients' writes are read, patched and attributed to managers in the client's version; they are admitted, validated and
stored in the stored one.
"""

from collections.abc import Callable

from msgspec.structs import replace

from apiserver.resources.spec import Resource
from apiserver.rest.backend import Backend
from apiserver.rest.body import decode_as
from apiserver.rest.call import ListAnswer, ObjectAnswer
from apiserver.storage.stored import Stored, Tree, canonical


def to_stored(backend: Backend, resource: Resource, tree: Tree) -> Tree:
    conversion = backend.conversion(resource)
    if conversion is None:
        return tree
    made = conversion.to_stored(tree)
    decoded: Tree = decode_as(backend, made).tree
    made = {"kind": made["kind"], "apiVersion": made["apiVersion"]} | decoded
    backend.rules.default(made["apiVersion"], made["kind"], made)
    return made


def from_stored(backend: Backend, resource: Resource, tree: Tree) -> Tree:
    conversion = backend.conversion(resource)
    return tree if conversion is None else conversion.from_stored(tree)


def shower(backend: Backend, resource: Resource) -> Callable[[Stored], Stored] | None:
    """What shows stored objects in the version of a resource; None if they are in it."""
    conversion = backend.conversion(resource)
    if conversion is None:
        return None

    def show(stored: Stored) -> Stored:
        return Stored(stored.key, canonical(conversion.from_stored(stored.tree())), stored.revision)

    return show


def shown(
    backend: Backend, resource: Resource, answer: ObjectAnswer | ListAnswer
) -> ObjectAnswer | ListAnswer:
    """An answer in the version that it was asked for."""
    show = shower(backend, resource)
    if show is None:
        return answer
    if isinstance(answer, ListAnswer):
        return replace(answer, items=list(map(show, answer.items)))
    if answer.stored is not None:
        return replace(answer, stored=show(answer.stored))
    tree = answer.object()
    if tree["apiVersion"] == backend.stored_row(resource).api_version and tree["kind"] == resource.kind:
        return replace(answer, tree=from_stored(backend, resource, tree))
    return answer
