"""Clock: the time of the cluster, which can stand still, run faster, and be advanced.

There is one, `cluster`. The controller manager follows it, in the process of the server as its clock, in another one by the
stream of `/mockube/clock`. What belongs to the machine, as the deadlines of requests, has the machine's time.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import orjson

from mockube.apimachinery import errors, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.timestamps import format_micro_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Subresource
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.read import get, list_objects
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.request_context import (
    Body,
    ListResult,
    ObjectResult,
    RequestContext,
    write_options,
)
from mockube.apiserver.request.endpoints import RESOURCE_VERBS
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.stored_object import StoredObject, canonical_custom
from mockube.apiserver.user import SERVER
from mockube.apiserver.wire.negotiation import MediaType
from mockube.component_base.clock import MAX_SPEED, MIN_SPEED, ClusterClock, never

from .advances import (
    ADVANCE_KIND,
    UNTIL_SECONDS,
    AdvanceBy,
    check_advance,
    condition_of,
    read_advance,
)
from .kind import AGE, API_VERSION, ControlKind
from .quiet import QuietTime
from .schemas import column, integer, text
from .strategy import ControlStrategy

NAME: Final = "cluster"
"""The name of the only Clock."""
ADVANCE: Final = "advance"
_SPEC: Final = ROOT.child("spec")

CLOCK: Final = ControlKind(
    name="Clock",
    plural="clocks",
    description="Clock is the time of the cluster, of its server, its controllers and its nodes. There is one, with the name cluster. Its "
    "subresource advance gets a ClockAdvance with spec.seconds, spec.until, or both.",
    spec={
        "description": "How time passes.",
        "properties": {
            "paused": {
                "type": "boolean",
                "description": "Whether time stands still. It can still be advanced.",
            },
            "rate": {
                "type": "number",
                "minimum": 0,
                "maximum": MAX_SPEED,
                "description": f"The seconds of the cluster in a second of the machine, at least {MIN_SPEED:g}. The default is 1.",
            },
        },
    },
    status={
        "description": "What the clock shows.",
        "properties": {
            "time": text("The time of the cluster.", format="date-time"),
            "pendingTimers": integer(
                "The number of callbacks of the server's process that wait for their time."
            ),
            "nextTimerSeconds": {
                "type": "number",
                "description": "The seconds of the cluster until the first of them.",
            },
        },
    },
    is_spec_required=True,
    columns=(
        column("Time", ".status.time", "The time of the cluster."),
        column("Paused", ".spec.paused", "Whether time stands still.", type_="boolean"),
        column(
            "Rate", ".spec.rate", "The seconds of the cluster in a second of the machine.", type_="number"
        ),
        column("Timers", ".status.pendingTimers", "The callbacks that wait.", type_="integer"),
        AGE,
    ),
    verbs=("get", "list", "patch", "update", "watch"),
    unlisted_verbs=(),
    subresources=(Subresource(name=ADVANCE, verbs=("create",), kind=ADVANCE_KIND),),
    max_objects=1,
)


class Clocks(ControlStrategy):
    """The object, and the clock that it controls."""

    kind = CLOCK
    prefix: bytes

    def __init__(
        self,
        clock: ClusterClock,
        advance: AdvanceBy,
        cluster: Registry,
        quiet_time: QuietTime,
        refusal: str = "",
    ) -> None:
        """`advance` advances the clock of the cluster; `refusal` is why the clock cannot be changed, "" if it can."""
        self._clock, self._refusal = clock, refusal
        self._cluster, self._quiet_time = cluster, quiet_time
        self._advance_by = advance
        self._advancing = asyncio.Lock()

    def use_advance(self, advance: AdvanceBy) -> None:
        """Advance the clock by another function from now on."""
        self._advance_by = advance

    async def check(self, new: ReadOnlyTree, _old: ReadOnlyTree | None) -> Iterable[FieldError]:
        return [*self._check(new["spec"])]

    def _check(self, spec: ReadOnlyTree) -> Iterator[FieldError]:
        is_changed = spec.get("paused") or spec.get("rate", 1) != 1
        if is_changed and self._refusal:
            yield errors.forbidden(_SPEC, self._refusal)
        # The schema has no such minimum: as upstream, one that is no integer is rounded for integers.
        if (rate := spec.get("rate", 1)) < MIN_SPEED:
            problem = f"must be at least {MIN_SPEED:g}: set paused to let time stand still"
            yield errors.invalid(_SPEC.child("rate"), rate, problem)

    async def begin(self, registry: Registry) -> None:
        cache = registry.resource_cache(CLOCK.group_resource)
        self.prefix = cache.prefix
        cache.watchers.add(self)
        spec = {"paused": self._clock.is_paused, "rate": self._clock.speed}
        tree = {"apiVersion": API_VERSION, "kind": CLOCK.name, "metadata": {"name": NAME}, "spec": spec}
        body = Body(data=orjson.dumps(tree), media_type=MediaType.JSON.value)
        row = registry.rows[CLOCK.group_resource]
        await create(registry, RequestContext(verb="create", resource=row, body=body, user=SERVER))
        await registry.watch_cache.fresh()

    def handle_change(self, change: Change) -> None:
        """Let time pass as the object says."""
        if change.kind is ChangeKind.DELETED:
            return
        spec = change.after.tree()["spec"]
        rate, is_paused = spec.get("rate") or 1.0, bool(spec.get("paused"))
        if rate != self._clock.speed:
            self._clock.set_speed(rate)
        if is_paused != self._clock.is_paused:
            (self._clock.pause if is_paused else self._clock.resume)()

    def handle_missed_change(self) -> None:
        """Do nothing: the next change is handled."""

    # --- verbs

    def verbs(self) -> OwnVerbs:
        return {
            (CLOCK.group_resource, ""): {**RESOURCE_VERBS, "get": self.get, "list": self.list},
            (CLOCK.group_resource, ADVANCE): {"create": self.advance},
        }

    async def get(self, registry: Registry, context: RequestContext) -> ObjectResult:
        result = await get(registry, context)
        assert result.stored is not None
        return ObjectResult(stored=self._with_status(result.stored))

    async def list(self, registry: Registry, context: RequestContext) -> ListResult:
        result = await list_objects(registry, context)
        return ListResult(
            api_version=result.api_version,
            kind=result.kind,
            items=[self._with_status(stored) for stored in result.items],
            metadata=result.metadata,
            named=result.named,
        )

    def _with_status(self, stored: StoredObject) -> StoredObject:
        tree = {**stored.tree(), "status": self._status()}
        return StoredObject(stored.key, canonical_custom(tree), stored.revision)

    def _status(self) -> Tree:
        clock = self._clock
        document: Tree = {"time": format_micro_time(clock.now()), "pendingTimers": clock.pending_count}
        due = clock.next_due()
        return document if due is None else {**document, "nextTimerSeconds": round(max(due, 0.0), 3)}

    async def advance(self, _registry: Registry, context: RequestContext) -> ObjectResult:
        if context.name != NAME:
            raise status.not_found(CLOCK.group_resource, context.name)
        is_dry_run = write_options(context, "CreateOptions").dry_run
        tree = read_advance(context.body.data)
        field_errors = [*self._check_advance(tree)]
        if field_errors:
            raise status.invalid(GroupKind(CLOCK.group_resource.group, ADVANCE_KIND), NAME, field_errors)
        spec = tree["spec"]
        is_over, report = await self._until(spec, context), {}
        if not is_dry_run:
            async with self._advancing:
                began = self._clock.now()
                if not ("until" in spec and is_over()):
                    await self._advance_by(float(spec.get("seconds", UNTIL_SECONDS)), is_over)
                report["seconds"] = (self._clock.now() - began).total_seconds()
        if "until" in spec:
            report["isReached"] = is_over()
        head = {"kind": ADVANCE_KIND, "apiVersion": API_VERSION, "metadata": {"name": NAME}}
        return ObjectResult(code=201, tree={**head, "spec": spec, "status": {**self._status(), **report}})

    def _check_advance(self, tree: Tree) -> Iterator[FieldError]:
        if self._refusal:
            yield errors.forbidden(_SPEC, self._refusal)
        yield from check_advance(tree.get("spec"), self._cluster)

    async def _until(self, spec: Tree, context: RequestContext) -> Callable[[], bool]:
        """Return what says that an advance is over before its seconds are."""
        until = spec.get("until")
        if until is None:
            return never
        if "condition" not in until:
            return lambda: self._quiet_time.is_idle
        return await condition_of(until["condition"], self._cluster, context)
