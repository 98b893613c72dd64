"""Which objects a command of kubectl is about: TYPE NAME…, TYPE/NAME…, selectors, or manifests."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.simulated.shell.options import ProgramOptions
from mockube.container_runtime.simulated.shell.process import Process, Sleep

from .client import ApiClient, ServedResource, ServerError, Work
from .connection import KubectlError
from .manifests import read_manifests

_POLL_SECONDS: Final = 1.0


class SelectedObjects(Struct, frozen=True, kw_only=True):
    """Objects of one resource: those with names, or those that selectors match."""

    resource: ServedResource
    namespace: str
    names: tuple[str, ...] = ()


def is_on(options: ProgramOptions, name: str, *, default: bool = False) -> bool:
    """Return whether a switch is on: --wait, --wait=true, or by default."""
    return options.get(name, str(default).lower()) in ("", "true", "1", "t", "T", "TRUE", "True")


def is_true_by_default(options: ProgramOptions, name: str) -> bool:
    return is_on(options, name, default=True)


def select(
    process: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str]
) -> Work[list[SelectedObjects]]:
    """Return what the words of a command select."""
    if "filename" in options:
        objects = yield from read_manifests(process, options)
        selections = list[SelectedObjects]()
        for tree in objects:
            resource = yield from client.resource_of_kind(tree["apiVersion"], tree["kind"])
            namespace = namespace_of(client, options, resource, tree)
            selections.append(
                SelectedObjects(resource=resource, namespace=namespace, names=(_name_of(tree),))
            )
        return selections
    if not words:
        raise KubectlError("error: You must specify the type of resource")
    if "/" in words[0]:
        return (yield from _select_references(client, words))
    selections = []
    for name in words[0].split(","):
        resource = yield from client.resource(name)
        namespace = "" if is_on(options, "all-namespaces") or not resource.is_namespaced else client.namespace
        selections.append(SelectedObjects(resource=resource, namespace=namespace, names=tuple(words[1:])))
    return selections


def _select_references(client: ApiClient, words: Sequence[str]) -> Work[list[SelectedObjects]]:
    selections = list[SelectedObjects]()
    for word in words:
        kind, slash, name = word.partition("/")
        if not slash or not name:
            raise KubectlError("error: there is no need to specify a resource type as a separate argument")
        resource = yield from client.resource(kind)
        namespace = client.namespace if resource.is_namespaced else ""
        selections.append(SelectedObjects(resource=resource, namespace=namespace, names=(name,)))
    return selections


def _name_of(tree: ReadOnlyTree) -> str:
    name = (tree.get("metadata") or {}).get("name")
    if not name:
        raise KubectlError("error: resource name may not be empty")
    return str(name)


def namespace_of(
    client: ApiClient, options: ProgramOptions, resource: ServedResource, tree: ReadOnlyTree
) -> str:
    """Return the namespace of a manifest's object; one that contradicts -n is an error."""
    if not resource.is_namespaced:
        return ""
    namespace = (tree.get("metadata") or {}).get("namespace") or ""
    if namespace and "namespace" in options and namespace != client.namespace:
        raise KubectlError(
            f'error: the namespace from the provided object "{namespace}" does not match the namespace '
            f"\"{client.namespace}\". You must pass '--namespace={namespace}' to perform this operation."
        )
    return namespace or client.namespace


def fetch(
    client: ApiClient, options: ProgramOptions, selection: SelectedObjects, *, ignores_missing: bool = False
) -> Work[list[dict[str, Any]]]:
    """Return the selected objects as the server has them; raise the error of one that does not exist."""
    resource, namespace = selection.resource, selection.namespace
    objects = list[dict[str, Any]]()
    for name in selection.names:
        try:
            objects.append((yield from client.send("GET", resource.path(namespace, name))))
        except ServerError as error:
            if not (ignores_missing and error.reason == "NotFound"):
                raise
    if selection.names:
        return objects
    query = {"labelSelector": options.get("selector"), "fieldSelector": options.get("field-selector")}
    object_list = yield from client.send("GET", resource.path(namespace), query=query)
    kinds = {"apiVersion": resource.api_version, "kind": resource.kind}
    return [kinds | item for item in object_list.get("items") or ()]


def selects_some(options: ProgramOptions, selection: SelectedObjects) -> bool:
    """Return whether a command that changes objects says which: by names, by a selector, or all."""
    return bool(
        selection.names or is_on(options, "all") or {"selector", "field-selector"} & options.values.keys()
    )


def object_path(selection: SelectedObjects, tree: ReadOnlyTree) -> str:
    return selection.resource.path(meta.namespace(tree), meta.name(tree))


def wait_gone(client: ApiClient, path: str, uid: str) -> Work[None]:
    """Wait until the object at a path is another one, or is not there."""
    while True:
        try:
            present = yield from client.send("GET", path)
        except ServerError as error:
            if error.reason == "NotFound":
                return
            raise
        if meta.uid(present) != uid:
            return
        yield Sleep(_POLL_SECONDS)
