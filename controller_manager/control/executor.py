"""Execute the actions of a plan: slow start of similar actions, preconditions, an uncached read before an adoption."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar, assert_never

from mockube.apimachinery import meta
from mockube.apimachinery.status import AlreadyExists, ApiError, Conflict, Invalid, NotFound, not_found
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import AnyResource, Key
from mockube.client.verbs import Client, Parsed
from mockube.client.wire import OutcomeUnknown

from .actions import (
    Action,
    Adopt,
    CompletedWrite,
    Confirm,
    Create,
    Delete,
    EventTemplate,
    ObjectRef,
    Patch,
    Plan,
    PlanResult,
    RecordEvent,
    Release,
    Remember,
    RemoveFinalizer,
    SlowStart,
    Update,
)
from .own_writes import KeyWrites

T = TypeVar("T")
Function = Callable[[T], Awaitable[None]]


async def slow_start(items: Sequence[T], function: Function[T]) -> ApiError | None:
    """Call the function for the items in batches of 1, 2, 4 …; return the first error of the first batch that fails."""
    started, batch = 0, 1
    error: ApiError | None = None
    while started < len(items) and error is None:
        error = await run_concurrently(items[started : started + batch], function)
        started, batch = started + batch, batch * 2
    return error


async def run_concurrently(items: Sequence[T], function: Function[T]) -> ApiError | None:
    """Call the function for all items concurrently; return the first API error. Any other exception is raised."""
    if len(items) == 1:
        return await _call_one(items[0], function)
    outcomes = await asyncio.gather(*(_call_one(item, function) for item in items), return_exceptions=True)
    api_errors = []
    for outcome in outcomes:
        if isinstance(outcome, ApiError):
            api_errors.append(outcome)
        elif outcome is not None:
            raise outcome
    return api_errors[0] if api_errors else None


async def _call_one(item: T, function: Function[T]) -> ApiError | None:
    try:
        await function(item)
    except ApiError as error:
        return error
    return None


_REMOVED_FINALIZERS = "$deleteFromPrimitiveList/finalizers"

NAMESPACE_TERMINATING = "NamespaceTerminating"
"""The cause in the error of a creation in a namespace that is being deleted."""


ExecutableAction = (
    Create | Delete | Update | Patch | SlowStart | Adopt | Release | RemoveFinalizer | RecordEvent | Confirm
)
"""All actions but `Remember`, which sends no request."""


class EventRecorder(Protocol):
    """Records Events about objects."""

    def record(self, about: ReadOnlyTree, type_: str, reason: str, message: str) -> None: ...


def ignore(_: object) -> None:
    """Do nothing: the default of callbacks."""


class Executor:
    """Executes the plans of one controller with the client of its service account."""

    def __init__(self, client: Client, recorder: EventRecorder) -> None:
        self._client = client
        self._recorder = recorder

    async def execute(
        self,
        plan: Plan,
        writes: KeyWrites,
        remember: Callable[[object], None] = ignore,
        observe: Callable[[PlanResult], None] = ignore,
    ) -> None:
        """Execute a plan and the plans that follow it; raises the first error, after the last actions of the plan.

        `remember` is called with new memory of the key, and `observe` with the outcome.
        """
        all_writes: list[CompletedWrite] = []
        current_plan: Plan | None = plan
        first_error: ApiError | None = None
        while current_plan is not None:
            plan_writes = writes.begin_plan()
            error = await self._execute_in_order(current_plan.actions, writes, remember)
            last_error = await self._execute_in_order(current_plan.last(error), writes, remember)
            first_error = first_error or error or last_error
            all_writes += plan_writes
            current_plan = current_plan.then(PlanResult(error=error, writes=tuple(plan_writes)))
        observe(PlanResult(error=first_error, writes=tuple(all_writes)))
        if first_error is not None:
            raise first_error

    async def _execute_in_order(
        self, actions: Iterable[Action], writes: KeyWrites, remember: Callable[[object], None]
    ) -> ApiError | None:
        for action in actions:
            if isinstance(action, Remember):
                remember(action.memory)
            elif (error := await self._execute_action(action, writes)) is not None:
                return error
        return None

    async def _execute_action(self, action: ExecutableAction, writes: KeyWrites) -> ApiError | None:
        match action:
            case Create():
                return await slow_start(action.bodies, lambda body: self._create(action, body, writes))
            case Delete():
                return await run_concurrently(action.objects, lambda ref: self._delete(action, ref, writes))
            case Update() | Patch():
                return await run_concurrently((action,), lambda change: self._change(change, writes))
            case SlowStart():
                return await slow_start(action.effects, lambda effect: self._execute_effect(effect, writes))
            case Adopt():
                return await self._adopt(action, writes)
            case Release() | RemoveFinalizer():
                return await run_concurrently(
                    action.objects, lambda ref: self._release_or_remove_finalizer(action, ref, writes)
                )
            case RecordEvent():
                self._recorder.record(action.about, action.type, action.reason, action.message)
                return None
            case Confirm():
                return await run_concurrently((action,), self._confirm)
            case _:
                assert_never(action)

    async def _execute_effect(self, effect: Create | Update | Patch, writes: KeyWrites) -> None:
        if (error := await self._execute_action(effect, writes)) is not None:
            raise error

    async def _create(self, action: Create, body: ReadOnlyTree, writes: KeyWrites) -> None:
        resource = action.resource
        try:
            created = await self._write(writes, resource, self._client.create(resource, body))
        except ApiError as error:
            if _is_terminating(error):
                return
            # No Event if the object exists already; with a generated name, that is a failure.
            if not (isinstance(error, AlreadyExists) and meta.name(body)):
                self._record_failure(action.event, meta.name(body), error)
            raise
        writes.note_write(resource, created)
        writes.completed.append(CompletedWrite(action, Key.of(created), created))
        self._record_success(action.event, meta.name(created))
        for patch in action.then(created):
            with suppress(ApiError):  # a later reconciliation retries, and reports a failure
                await self._change(patch, writes)

    async def _delete(self, action: Delete, ref: ObjectRef, writes: KeyWrites) -> None:
        resource, key = action.resource, ref.key
        deletion = self._client.delete(resource, key, uid=ref.uid, propagation=action.propagation)
        try:
            response = await self._write(writes, resource, deletion)
        except NotFound:
            writes.note_deletion(resource, ref, None)
            writes.completed.append(CompletedWrite(action, key, None))
            return
        except Conflict:  # the precondition failed: no Event, and the next reconciliation sees the new object
            raise
        except ApiError as error:
            self._record_failure(action.event, key.name, error)
            raise
        writes.note_deletion(resource, ref, response)
        writes.completed.append(CompletedWrite(action, key, response))
        self._record_success(action.event, key.name)

    async def _change(self, action: Update | Patch, writes: KeyWrites) -> None:
        name = meta.name(action.body) if isinstance(action, Update) else action.key.name
        try:
            response = await self._write(writes, action.resource, self._send_change(action))
        except Conflict:  # another client changed the object: no Event, and the next reconciliation retries
            raise
        except ApiError as error:
            self._record_failure(action.event, name, error)
            raise
        writes.note_write(action.resource, response)
        writes.completed.append(CompletedWrite(action, Key.of(response), response))
        self._record_success(action.event, name)

    def _send_change(self, action: Update | Patch) -> Awaitable[Parsed]:
        if isinstance(action, Update):
            return self._client.update(action.resource, action.body, subresource=action.subresource)
        resource, key, subresource = action.resource, action.key, action.subresource
        if action.kind == "apply":
            manager = action.field_manager
            return self._client.patch(
                resource,
                key,
                action.body,
                kind="apply",
                subresource=subresource,
                field_manager=manager,
                force=True,
            )
        return self._client.patch(resource, key, action.body, kind=action.kind, subresource=subresource)

    async def _adopt(self, action: Adopt, writes: KeyWrites) -> ApiError | None:
        reference = meta.controller_reference(action.owner)
        added = {"finalizers": [*action.finalizers]} if action.finalizers else {}

        async def adopt(orphan: ObjectRef) -> None:
            body = {"metadata": {"ownerReferences": [reference], "uid": orphan.uid, **added}}
            await self._change_owner(action.resource, orphan, body, writes, ignored_errors=(NotFound,))

        owner_error = await run_concurrently((action,), self._check_owner)
        return owner_error or await run_concurrently(action.orphans, adopt)

    async def _check_owner(self, action: Adopt) -> None:
        """Read the owner from the server, and raise an error if it is deleted: it would never release what it adopts."""
        resource, owner = action.owner_resource, action.owner
        current_owner = await self._client.get(resource, Key.of(owner))
        if meta.uid(current_owner) != meta.uid(owner):
            raise not_found(resource.group_resource, meta.name(owner))
        if meta.is_deleting(current_owner):
            raise Conflict(f"{meta.namespaced_name(owner)} has just been deleted")

    async def _release_or_remove_finalizer(
        self, action: Release | RemoveFinalizer, ref: ObjectRef, writes: KeyWrites
    ) -> None:
        if isinstance(action, Release):
            await self._release(action, ref, writes)
        else:
            await self._remove_finalizer(action, ref, writes)

    async def _release(self, action: Release, ref: ObjectRef, writes: KeyWrites) -> None:
        reference = {"$patch": "delete", "uid": meta.uid(action.owner)}
        removed = {_REMOVED_FINALIZERS: [*action.finalizers]} if action.finalizers else {}
        body = {"metadata": {"ownerReferences": [reference], "uid": ref.uid, **removed}}
        # Invalid: the reference does not exist any more.
        await self._change_owner(action.resource, ref, body, writes, ignored_errors=(NotFound, Invalid))

    async def _remove_finalizer(self, action: RemoveFinalizer, ref: ObjectRef, writes: KeyWrites) -> None:
        body = {"metadata": {"uid": ref.uid, _REMOVED_FINALIZERS: [action.finalizer]}}
        patch = self._client.patch(action.resource, ref.key, body, kind="strategic")
        try:
            response = await self._write(writes, action.resource, patch)
        except NotFound:
            writes.completed.append(CompletedWrite(action, ref.key, None))
            return
        writes.note_write(action.resource, response)
        writes.completed.append(CompletedWrite(action, ref.key, response))

    async def _confirm(self, action: Confirm) -> None:
        resource, field_selector = action.resource, f"metadata.name={action.name}" if action.name else ""
        objects = await self._client.list(resource, action.namespace, field_selector=field_selector)
        if not action.holds([resource.view(item) for item in objects.items]):
            raise Conflict(f"the {resource} at the server differ from the cache")

    async def _change_owner(
        self,
        resource: AnyResource,
        object_: ObjectRef,
        body: ReadOnlyTree,
        writes: KeyWrites,
        *,
        ignored_errors: tuple[type[ApiError], ...],
    ) -> None:
        """Change an object's owner reference, and ignore errors that mean that nothing is left to change."""
        patch = self._client.patch(resource, object_.key, body, kind="strategic")
        try:
            writes.note_write(resource, await self._write(writes, resource, patch))
        except ignored_errors:
            return

    async def _write(self, writes: KeyWrites, resource: AnyResource, write: Awaitable[Parsed]) -> Parsed:
        try:
            return await write
        except OutcomeUnknown:
            writes.note_unknown(resource)
            raise

    def _record_success(self, event: EventTemplate | None, name: str) -> None:
        if event is not None and event.on_success[0]:
            reason, message = event.on_success
            self._recorder.record(event.about, "Normal", reason, message.format(name=name))

    def _record_failure(self, event: EventTemplate | None, name: str, error: ApiError) -> None:
        if event is not None and event.on_failure[0]:
            reason, message = event.on_failure
            self._recorder.record(event.about, "Warning", reason, message.format(name=name, error=error))


def _is_terminating(error: ApiError) -> bool:
    causes = error.details.causes if error.details is not None else ()
    return any(cause.reason == NAMESPACE_TERMINATING for cause in causes)
