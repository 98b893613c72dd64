"""Sets the condition Available of each APIService, as kube-aggregator does."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from mockube.apimachinery import conditions
from mockube.apimachinery.groups import SERVICES
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.metrics.aggregation import UnavailableServices
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.registry import WRONG_TYPE_ERRORS, Registry
from mockube.apiserver.registry.request_context import RequestContext, WriteOptions
from mockube.apiserver.registry.resource_watchers import watched_keys
from mockube.apiserver.registry.subresources.service_endpoints import slices_of_service
from mockube.apiserver.registry.update import guaranteed_update
from mockube.apiserver.registry.write import Write
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import SERVER
from mockube.component_base.clock import Clock, Timer
from mockube.etcd.errors import KVError

from .remotes import RemoteAPIService, RemoteDocuments, Remotes, remote_of

LOG = logging.getLogger(__name__)

RECHECK_SECONDS: Final = 30.0
"""The interval of checking an available server."""
RETRY_SECONDS: Final = (0.1, 30.0)
"""The backoff of checking an unavailable server: initial and maximum."""
PAUSE_SECONDS: Final = 0.05
"""The minimum interval between two checks."""


class ServerUnreachable(Exception):
    """Another server could not be reached, or returned an error."""


class Inspect(Protocol):
    async def __call__(self, remote: RemoteAPIService) -> RemoteDocuments:
        """Fetch the documents of a server, or raise `ServerUnreachable`."""


class Availability:
    """Checks APIServices; `run` is a task of the server."""

    def __init__(
        self,
        registry: Registry,
        api_services: Resource,
        others: Sequence[Resource],
        remotes: Remotes,
        inspect: Inspect,
        metrics: UnavailableServices,
    ) -> None:
        self._registry = registry
        self._api_services = api_services
        self._others = others
        """Services and EndpointSlices."""
        self._remotes = remotes
        self._metrics = metrics
        self._inspect = inspect
        self._remote_services: dict[bytes, StoredObject] = {}
        """The APIServices of other servers, by key."""
        self._wait = RETRY_SECONDS[0]
        self._timer: Timer | None = None

    async def run(self) -> None:
        """Check APIServices after each change, until cancelled. Services are watched while there are other servers."""
        has_remotes = False
        try:
            while True:
                has_remotes = await self._watch(has_remotes=has_remotes)
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def _watch(self, *, has_remotes: bool) -> bool:
        """Check until the first other server appears or the last one disappears; return whether there are any."""
        resources = (self._api_services, *self._others) if has_remotes else (self._api_services,)
        with watched_keys(self._registry, resources) as (changed, watchers):
            while True:
                await changed.wait()
                changed.clear()
                for watcher in watchers[1:]:
                    watcher.take()  # it does not matter which have changed
                has_remotes_now, all_available = await self._check_all(
                    watchers[0].take(known_keys=self._remote_services)
                )
                if has_remotes_now != has_remotes:
                    return has_remotes_now
                if has_remotes_now:
                    self._schedule_recheck(changed, all_available=all_available)
                    await self._registry.clock.coalescing.sleep(PAUSE_SECONDS)

    def _schedule_recheck(self, changed: asyncio.Event, *, all_available: bool) -> None:
        self._wait = RETRY_SECONDS[0] if all_available else min(2 * self._wait, RETRY_SECONDS[1])
        if self._timer is not None:
            self._timer.cancel()
        delay = RECHECK_SECONDS if all_available else self._wait
        clock = self._registry.clock.routine if all_available else self._registry.clock
        self._timer = clock.call_later(delay, changed.set)

    async def _check_all(self, keys: Sequence[bytes]) -> tuple[bool, bool]:
        """Check the changed APIServices, and those of all other servers.

        Return whether there are other servers, and whether all of them are available.
        """
        present = self._registry.resource_cache(self._api_services.group_resource).objects
        for key in keys:
            stored = present.get(key)
            self._remote_services.pop(key, None)
            if stored is not None and b'"service":' in stored.value:
                self._remote_services[key] = stored
            elif stored is not None:
                await self._try_to_check(stored)
            else:
                self._metrics.forget(key.rpartition(b"/")[2].decode())
        results = await asyncio.gather(*map(self._try_to_check, self._remote_services.values()))
        return bool(self._remote_services), all(results)

    async def _try_to_check(self, stored: StoredObject) -> bool:
        try:
            return await self._check(stored.tree())
        except WRONG_TYPE_ERRORS as error:
            self._registry.watch_cache.report_malformed(stored, error)
            return True

    async def _check(self, tree: Tree) -> bool:
        available = await self._available(tree)
        is_available = bool(available["status"] == "True")
        self._metrics.record(tree["metadata"]["name"], "" if is_available else available["reason"])
        if not conditions.has_condition(tree, available):
            await self._write_condition(tree, available)
        return is_available

    async def _write_condition(self, tree: Tree, available: Tree) -> None:
        context = RequestContext(
            verb="update",
            resource=self._api_services,
            subresource=self._api_services.subresource("status"),
            name=tree["metadata"]["name"],
            user=SERVER,
            user_agent="kube-apiserver",
        )

        def change(_: Write, old: Tree) -> Tree:
            new = _with_condition(old, available, self._registry.clock)
            return metadata.manage_change(self._registry, context, new, old, WriteOptions())

        try:
            await guaranteed_update(Write(registry=self._registry, context=context, change=change))
        except (ApiError, KVError) as error:
            LOG.warning("availability of %s was not stored: %s", context.name, error)

    async def _available(self, tree: Tree) -> Tree:
        remote = remote_of(tree)
        if remote is None:
            return _condition("True", "Local", "Local APIServices are always available")
        reason, problem = self._problem_of_service(remote)
        documents = self._remotes.documents.setdefault(remote.name, RemoteDocuments())
        before = documents.resources, documents.index
        if not problem and not self._remotes.is_simulated(remote):
            try:
                documents = self._remotes.documents[remote.name] = await self._inspect(remote)
            except ServerUnreachable as error:
                reason, problem = "FailedDiscoveryCheck", str(error)
        if problem:
            documents.resources = None
        if before != (documents.resources, documents.index):
            self._remotes.notify()
        if problem:
            return _condition("False", reason, problem)
        return _condition("True", "Passed", "all checks passed")

    def _problem_of_service(self, remote: RemoteAPIService) -> tuple[str, str]:
        namespace, name, number = remote.service
        subject = f'service/{name} in "{namespace}"'
        service = self._registry.find_cached(SERVICES, namespace, name)
        if service is None:
            return "ServiceNotFound", f"{subject} is not present"
        spec = service.tree()["spec"]
        if (
            spec.get("type") != "ClusterIP"
        ):  # as upstream, no other one is examined (remote_available_controller.go)
            return "", ""
        port = next((candidate for candidate in spec.get("ports") or () if candidate["port"] == number), None)
        if port is None:
            return "ServicePortError", f"{subject} is not listening on port {number}"
        slices = [*slices_of_service(self._registry, namespace, name)]
        if not slices:
            return "EndpointsNotFound", f"cannot find endpointslices for {subject}"
        port_name = port.get("name") or ""
        if not any(_has_endpoint(endpoint_slice, port_name) for endpoint_slice in slices):
            problem = f'endpointslices for {subject} have no addresses with port name "{port_name}"'
            return "MissingEndpoints", problem
        return "", ""


def _has_endpoint(tree: ReadOnlyTree, port: str) -> bool:
    ready = ((endpoint.get("conditions") or {}).get("ready") for endpoint in tree.get("endpoints") or ())
    ports = (
        slice_port.get("name") or ""
        for slice_port in tree.get("ports") or ()
        if slice_port.get("port") is not None
    )
    return any(is_ready is not False for is_ready in ready) and port in ports


def _condition(status: str, reason: str, message: str) -> Tree:
    return {"type": "Available", "status": status, "reason": reason, "message": message}


def _with_condition(tree: Tree, available: Tree, clock: Clock) -> Tree:
    status = tree.get("status") or {}
    new_conditions = conditions.set_condition(conditions.of(tree), available, clock.now())
    return tree | {"status": status | {"conditions": new_conditions}}
