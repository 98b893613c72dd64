"""What a server has instead of an object that does not exist: a similar name, or the same name in another namespace."""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import NAMESPACES
from mockube.client.resources import Key, Resource
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base.suggestions import did_you_mean, enumerate_names

MAX_NAMES: Final = 1_000
"""The number of names that are listed for a suggestion."""
MAX_NAMESPACES: Final = 20


async def explain_not_found(
    client: Client, error: NotFound, resource: Resource[ReadOnlyTree], key: Key
) -> NotFound:
    """Return the error with the nearest name, or with the namespaces in which the object is."""
    try:
        if error.details is not None and error.details.kind == "namespaces" != resource.plural:
            suggestion = f": {await _other_namespaces(client, error.details.name)}"
        elif error.details is not None and error.details.name == key.name:
            suggestion = f"{_place(resource, key)}: {await describe_others(client, resource, key)}"
        else:
            return error
    except (ApiError, NoResponse):
        return error
    return NotFound(error.message + suggestion, error.details)


async def describe_others(client: Client, resource: Resource[ReadOnlyTree], key: Key) -> str:
    """Describe the objects that exist instead of one that does not."""
    if resource.namespaced:
        same_name = await client.list(
            resource, field_selector=f"metadata.name={key.name}", limit=MAX_NAMESPACES
        )
        if namespaces := [meta.namespace(tree) for tree in same_name.items]:
            return f"it is in namespace {enumerate_names(namespaces)}"
    names = await _names(client, resource, key.namespace)
    if names:
        return _others(key.name, names)
    if resource.namespaced and not await _exists(client, key.namespace):
        return f'namespace "{key.namespace}" does not exist: {await _other_namespaces(client, key.namespace)}'
    return f"there are no {resource.plural}"


async def _other_namespaces(client: Client, name: str) -> str:
    return _others(name, await _names(client, NAMESPACES, ""))


def _others(name: str, names: Sequence[str]) -> str:
    return did_you_mean(name, names).removeprefix(": ") or f"there are: {enumerate_names(names)}"


def _place(resource: Resource[ReadOnlyTree], key: Key) -> str:
    return f' in namespace "{key.namespace}"' if resource.namespaced else ""


async def _names(client: Client, resource: Resource[ReadOnlyTree], namespace: str) -> list[str]:
    return [meta.name(tree) for tree in (await client.list(resource, namespace, limit=MAX_NAMES)).items]


async def _exists(client: Client, namespace: str) -> bool:
    try:
        await client.get(NAMESPACES, Key("", namespace))
    except NotFound:
        return False
    return True
