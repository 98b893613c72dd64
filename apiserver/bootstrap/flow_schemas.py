"""Set the condition Dangling of each FlowSchema: whether its priority level is missing, as upstream's filter does."""

import logging
from collections.abc import Mapping

import orjson

from mockube.apimachinery import conditions, gotext
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.apply import apply
from mockube.apiserver.registry.registry import WRONG_TYPE_ERRORS, Registry
from mockube.apiserver.registry.request_context import Body, RequestContext
from mockube.apiserver.registry.resource_watchers import watched_resources
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import SERVER
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.errors import KVError

LOG = logging.getLogger(__name__)

MANAGER = "api-priority-and-fairness-config-consumer-v1"
_QUERY: Mapping[str, list[str]] = {"fieldManager": [MANAGER], "force": ["true"]}


class FlowSchemaStatus:
    """Updates the status of FlowSchemas; its `run` is a task of the server."""

    def __init__(self, registry: Registry, schemas: Resource, levels: Resource) -> None:
        self._registry = registry
        self._schemas = schemas
        self._levels = levels
        self._checked_revisions: dict[bytes, int] = {}
        """The revisions of the schemas whose status is up to date, by key."""
        self._level_names: frozenset[str] = frozenset()
        """The names of the levels when the status was checked."""

    async def run(self) -> None:
        """Update the status of all schemas after each change of a schema or a level, until cancelled."""
        with watched_resources(self._registry, (self._schemas, self._levels)) as changed:
            while True:
                await changed.wait()
                changed.clear()
                await self._update_all()

    async def _update_all(self) -> None:
        levels = frozenset(
            stored.key.rpartition(b"/")[2].decode()
            for stored in self._registry.list_cached(self._levels.group_resource)
        )
        if levels != self._level_names:
            self._checked_revisions, self._level_names = {}, levels
        revisions = {}
        for stored in self._registry.list_cached(self._schemas.group_resource):
            await yield_to_loop()
            if self._checked_revisions.get(stored.key) == stored.revision or await self._update_status(
                stored
            ):
                revisions[stored.key] = stored.revision
        self._checked_revisions = revisions

    async def _update_status(self, stored: StoredObject) -> bool:
        """Return whether the status is up to date; otherwise write it."""
        try:
            tree = stored.tree()
            level = tree["spec"]["priorityLevelConfiguration"]["name"]
            dangling = _dangling_condition(level, exists=level in self._level_names)
            if conditions.has_condition(tree, dangling):
                return True
        except WRONG_TYPE_ERRORS as error:
            self._registry.watch_cache.report_malformed(stored, error)
            return True
        now = format_time(self._registry.clock.now())
        try:
            await apply(self._registry, self._context(tree, dangling | {"lastTransitionTime": now}))
        except (ApiError, KVError) as error:
            LOG.debug("the status of %s was not stored: %s", tree["metadata"]["name"], error)
        return False

    def _context(self, tree: Tree, condition: Tree) -> RequestContext:
        name = tree["metadata"]["name"]
        config = {
            "apiVersion": self._schemas.api_version,
            "kind": self._schemas.kind,
            "metadata": {"name": name},
            "status": {"conditions": [condition]},
        }
        return RequestContext(
            verb="patch",
            resource=self._schemas,
            subresource=self._schemas.subresource("status"),
            name=name,
            query=_QUERY,
            body=Body(data=orjson.dumps(config), media_type="application/apply-patch+yaml"),
            user=SERVER,
        )


def _dangling_condition(level: str, *, exists: bool) -> Tree:
    named = f"This FlowSchema references the PriorityLevelConfiguration object named {gotext.quote(level)}"
    return {
        "type": "Dangling",
        "status": "False" if exists else "True",
        "reason": "Found" if exists else "NotFound",
        "message": f"{named} and it exists" if exists else f"{named} but there is no such object",
    }
