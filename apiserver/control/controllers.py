"""Controller: a work queue of the controller manager, and what was reconciled last. Only the manager knows it, which is asked each time."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from mockube.apimachinery import status
from mockube.apimachinery.status import ServiceUnavailable
from mockube.apiserver.authz.rbac.policy import RBACPolicy
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.request_context import ListResult, ObjectResult, RequestContext
from mockube.apiserver.registry.selection import select_by
from mockube.apiserver.storage.stored_object import StoredObject, canonical_custom

from .access import UserRights
from .kind import API_VERSION, ControlKind
from .schemas import column, integer, object_of, seconds, text
from .strategy import ControlStrategy

ReadControllers: TypeAlias = Callable[[], Awaitable[bytes]]
"""Returns the status of each queue by its name, as JSON; raises ServiceUnavailable if no manager is known or responds."""

_NEWEST: Final = object_of(
    "What one worker did for one key.",
    {
        "namespace": text("The namespace of the object."),
        "name": text("The name of the object."),
        "time": text("When it began.", format="date-time"),
        "seconds": seconds("How long it took, by the clock of the machine."),
        "result": text("success, requeue_after or error."),
        "error": text(
            "Why it failed; nothing if another client changed the object, or if it has to wait. Of errors about Secrets, and of those that "
            "are not foreseen, the class alone."
        ),
        "actions": {
            "type": "array",
            "description": "What was done, such as create pods: 3. Empty if there was nothing to do, or if the controller is one whose "
            "decisions are not known.",
            "items": {"type": "string"},
        },
    },
)
CONTROLLER: Final = ControlKind(
    name="Controller",
    plural="controllers",
    description="Controller is a work queue of the controller manager, with the newest reconciliations. Its name is that of the queue in "
    "the metrics.",
    spec={"description": "Nothing."},
    status={
        "description": "The queue, as it is now. Numbers count from the start of the manager.",
        "properties": {
            "depth": integer("The keys that wait in the queue."),
            "adds": integer("The keys that were added."),
            "retries": integer("The retries of keys that failed."),
            "reconciliations": integer("The reconciliations that ended."),
            "seconds": seconds("How long all reconciliations took."),
            "waitSeconds": seconds("How long all keys waited."),
            "running": integer("The keys that workers reconcile now."),
            "longestRunningSeconds": seconds("How long the first of them has taken until now."),
            "newest": {
                "type": "array",
                "description": "The newest reconciliations, the newest first: of objects in the namespaces of which the reader may list every "
                "resource.",
                "items": _NEWEST,
            },
        },
    },
    columns=(
        column("Depth", ".status.depth", "The keys that wait.", type_="integer"),
        column("Running", ".status.running", "The keys that workers reconcile now.", type_="integer"),
        column("Adds", ".status.adds", "The keys that were added.", type_="integer"),
        column("Retries", ".status.retries", "The retries of failed keys.", type_="integer"),
        column("Reconciliations", ".status.reconciliations", "Those that ended.", type_="integer"),
        column("Seconds", ".status.seconds", "How long all reconciliations took.", type_="number"),
    ),
    verbs=("get", "list"),
    unlisted_verbs=(),
)


class Controllers(ControlStrategy):
    """The queues of the manager as objects."""

    kind = CONTROLLER

    def __init__(self, read: ReadControllers, cluster: Registry, policy: RBACPolicy) -> None:
        self._read, self._cluster, self._policy = read, cluster, policy

    def verbs(self) -> OwnVerbs:
        return {(CONTROLLER.group_resource, ""): {"get": self.get, "list": self.list}}

    async def get(self, _registry: Registry, context: RequestContext) -> ObjectResult:
        queues = await self._queues()
        if context.name not in queues:
            raise status.not_found(context.resource.group_resource, context.name)
        return ObjectResult(
            stored=await self._stored(context.name, queues[context.name], self._rights(context))
        )

    async def list(self, registry: Registry, context: RequestContext) -> ListResult:
        _, chosen = await select_by(registry, context)
        queues, rights = await self._queues(), self._rights(context)
        items = [await self._stored(name, queue, rights) for name, queue in queues.items()]
        return ListResult(
            api_version=context.resource.api_version,
            kind=context.resource.list_kind,
            items=[item for item in items if chosen.matches is None or chosen.matches(item)],
            metadata={},
        )

    async def _queues(self) -> Mapping[str, Any]:
        try:
            return msgspec.json.decode(await self._read(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise ServiceUnavailable(
                f"the controller manager has no valid page of its controllers: {error}"
            ) from error

    def _rights(self, context: RequestContext) -> UserRights:
        return UserRights(self._cluster, self._policy, context)

    async def _stored(self, name: str, queue: Mapping[str, Any], rights: UserRights) -> StoredObject:
        newest = [
            each for each in queue.get("newest", ()) if await rights.may_list_all(each.get("namespace", ""))
        ]
        tree = {
            "kind": CONTROLLER.name,
            "apiVersion": API_VERSION,
            "metadata": {"name": name},
            "spec": {},
            "status": {**queue, "newest": newest},
        }
        return StoredObject.without_revision(canonical_custom(tree))
