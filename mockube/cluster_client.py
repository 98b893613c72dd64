"""A client of a running control plane: apply manifests, wait for conditions of objects, or until the cluster is usable.

It works with any API server. Resources are found by discovery, which is repeated for an unknown kind, so that new
CustomResourceDefinitions are found.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson
from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.yaml_decode import load_all
from mockube.component_base.clock import Clock, RealClock
from mockube.component_base.supervision import timeout
from mockube.controller_manager.cache.reflector import parse_watch_event, split_lines
from mockube.controller_manager.client.client import Client, ListOptions, Parsed
from mockube.controller_manager.client.connect import ClientOptions, connect
from mockube.controller_manager.client.discovery import discover
from mockube.controller_manager.client.kubeconfig import read
from mockube.controller_manager.client.resources import Key, Resource
from mockube.controller_manager.client.wire import NoResponse
from mockube.resizing import desired_node_count

NAME: Final = "mockube"
"""The field manager and the User-Agent."""

DEFAULT_TIMEOUT: Final = 86400.0
_RETRY_SECONDS: Final = 0.1
"""The time after which a request without a response is repeated."""

Condition: TypeAlias = str | Callable[[ReadOnlyTree], object]
"""The type of a condition that must be True, or a predicate of the object."""


class KindNotServed(Exception):
    """The server does not serve this kind."""


class ServerClient:
    """A client of one server. Its errors are the classes of `mockube.apimachinery.status`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._clock = RealClock()
        self._resources: Sequence[Resource[ReadOnlyTree]] = ()

    async def apply(self, manifests: str | Path) -> list[Parsed]:
        """Apply the objects of a YAML text or file with server-side apply, and return the resulting objects."""
        return [await self._apply(tree) for tree in objects(manifests)]

    async def wait(
        self,
        kind: str,
        name: str,
        condition: Condition,
        *,
        seconds: float,
        namespace: str = "default",
    ) -> Parsed:
        """Wait until an object meets a condition, and return it; raise TimeoutError if it does not in time."""
        last: Parsed | None = None
        try:
            async with timeout(self._clock, seconds):
                key = Key(namespace, name)
                resource = await self._resource(*_kind_and_group(kind))
                while True:
                    async for last in self._watch(resource, _selector(resource, key), seconds):
                        if satisfies(last, condition):
                            return last
        except TimeoutError as error:
            raise TimeoutError(_timeout_message(kind, name, condition, seconds, last)) from error

    async def wait_gone(self, kind: str, name: str, *, seconds: float, namespace: str = "default") -> None:
        """Wait until the object does not exist; raise TimeoutError if it still does after the time."""
        key = Key(namespace, name)
        try:
            async with timeout(self._clock, seconds):
                resource = await self._resource(*_kind_and_group(kind))
                options = ListOptions(field_selector=_selector(resource, key))
                while (object_list := await self._client.list(resource, **options)).items:
                    await self._wait_for_change(resource, key, object_list.resource_version, seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{kind} {name} still exists after {seconds:g} seconds") from error

    async def get(self, kind: str, name: str, *, namespace: str = "default") -> Parsed:
        resource = await self._resource(*_kind_and_group(kind))
        return await self._client.get(resource, Key(namespace if resource.namespaced else "", name))

    async def list(self, kind: str, *, namespace: str = "default", labels: str = "") -> list[Parsed]:
        """Return the objects that match a label selector; "" as the namespace means all namespaces."""
        resource = await self._resource(*_kind_and_group(kind))
        searched_namespace = namespace if resource.namespaced else ""
        return (await self._client.list(resource, searched_namespace, label_selector=labels)).items

    async def delete(self, kind: str, name: str, *, namespace: str = "default") -> None:
        resource = await self._resource(*_kind_and_group(kind))
        await self._client.delete(resource, Key(namespace if resource.namespaced else "", name))

    async def wait_usable(self, nodes: int, *, seconds: float) -> None:
        """Wait until pods can be created and scheduled: `nodes` nodes are ready, and the default ServiceAccount exists."""
        async with timeout(self._clock, seconds):
            ready: set[str] = set()
            while len(ready) < nodes:
                async for node in self._watch(await self._resource("Node", ""), "", seconds):
                    if conditions.is_true(node, "Ready"):
                        ready.add(meta.name(node))
                    if len(ready) >= nodes:
                        break
            await self.wait("ServiceAccount", "default", meta.name, seconds=seconds)

    async def _apply(self, tree: ReadOnlyTree) -> Parsed:
        group, _, version = meta.api_version(tree).rpartition("/")
        resource = replace(await self._resource(meta.kind(tree), group), version=version)
        key = Key(meta.namespace(tree) or "default", meta.name(tree))
        return await self._client.patch(resource, key, tree, kind="apply", field_manager=NAME, force=True)

    async def _resource(self, kind: str, group: str | None) -> Resource[ReadOnlyTree]:
        """Return a resource by its kind or plural name; the first one with that name if the group is None."""
        if (resource := _find_kind(self._resources, kind, group)) is None:
            self._resources = (await discover(self._client)).with_verbs("get")
            resource = _find_kind(self._resources, kind, group)
        if resource is None:
            name = f"{kind}.{group}" if group else kind
            raise KindNotServed(f'the server doesn\'t have a resource type "{name}"')
        return replace(resource, metadata_only=False)

    async def _wait_for_change(
        self, resource: Resource[ReadOnlyTree], key: Key, version: str, seconds: float
    ) -> None:
        """Wait for the next watch event of an object, or the end of the watch."""
        query = {"fieldSelector": _selector(resource, key), "resourceVersion": version}
        async with self._client.watch(resource, query, timeout_seconds=seconds) as stream:
            async for _ in stream.chunks():
                return

    async def _watch(
        self, resource: Resource[ReadOnlyTree], selector: str, seconds: float
    ) -> AsyncIterator[Parsed]:
        """Yield the matching objects, and each of them again after a change, until the watch ends."""
        async with self._client.watch(
            resource, {"fieldSelector": selector}, timeout_seconds=seconds
        ) as stream:
            async for batch in split_lines(stream.chunks()):
                for line in batch:
                    event_type, tree, _ = parse_watch_event(line)
                    if event_type != "DELETED":
                        yield tree


async def wait_usable(
    kubeconfig: Path,
    nodes: int,
    *,
    clock: Clock,
    report: Callable[[str], None],
    seconds: float = DEFAULT_TIMEOUT,
) -> int:
    """Wait until a new control plane is usable, and return its number of nodes.

    Every node is ready, and the default ServiceAccount exists. The store may request another number of nodes than the
    flag. Requests are repeated until the server responds; the caller checks whether the server has exited.
    """
    while True:
        try:
            options = ClientOptions(access=read(kubeconfig), clock=clock, agent=NAME)
            async with connect(options) as client:
                desired = await desired_node_count(client, nodes)
                report("API server ready")
                await ServerClient(client).wait_usable(desired, seconds=seconds)
                report("1 node ready" if desired == 1 else f"{desired} nodes ready")
                return desired
        except NoResponse:
            await clock.sleep(_RETRY_SECONDS)


def _find_kind(
    resources: Sequence[Resource[ReadOnlyTree]], kind: str, group: str | None
) -> Resource[ReadOnlyTree] | None:
    for resource in resources:
        if kind in {resource.kind, resource.plural} and group in {resource.group, None}:
            return resource
    return None


def _selector(resource: Resource[ReadOnlyTree], key: Key) -> str:
    namespace_selector = f",metadata.namespace={key.namespace}" if resource.namespaced else ""
    return f"metadata.name={key.name}{namespace_selector}"


def objects(manifests: str | Path) -> Iterator[Parsed]:
    """Yield the objects of all documents and of the lists in them; empty documents are skipped."""
    text = manifests.read_text() if isinstance(manifests, Path) else manifests
    for loaded in load_all(text.encode()):
        document = loaded.tree
        if document and "items" in document:  # a list of any kind; no object has such a field
            yield from document.get("items") or ()
        elif document:
            yield document


def _timeout_message(
    kind: str, name: str, condition: Condition, seconds: float, last: Mapping[str, Any] | None
) -> str:
    problem = f"was not {condition}" if isinstance(condition, str) else "did not meet the condition"
    if last is None:
        return f"{kind} {name} was not created within {seconds:g} seconds"
    status = orjson.dumps(last.get("status") or {}).decode()
    return f"{kind} {name} {problem} within {seconds:g} seconds; its status is {status}"


def _kind_and_group(name: str) -> tuple[str, str | None]:
    """Split a name such as `Deployment`, `deployments` or `Deployment.apps` into kind and group; None for no group."""
    kind, dot, group = name.partition(".")
    return kind, group if dot else None


def satisfies(tree: ReadOnlyTree, condition: Condition) -> bool:
    """Return whether an object meets a condition. A condition that was observed at an older generation is not met."""
    if not isinstance(condition, str):
        return bool(condition(tree))
    status: dict[str, Any] = tree.get("status") or {}
    observed_generation = status.get("observedGeneration", meta.generation(tree))
    return observed_generation >= meta.generation(tree) and conditions.is_true(tree, condition)
