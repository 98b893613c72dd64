"""Carry out the actions of a plan: slow start for many alike, preconditions, and an uncached read before an adoption."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar, assert_never

from mockube.apimachinery import meta
from mockube.apimachinery.status import AlreadyExists, ApiError, Conflict, Invalid, NotFound, not_found
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.client import Client, Parsed
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.wire import OutcomeUnknown
from mockube.controller_manager.control.actions import (
    Action,
    Adopt,
    AnyResource,
    Confirm,
    Create,
    Delete,
    EventTemplate,
    ObjectRef,
    Outcome,
    Patch,
    Plan,
    RecordEvent,
    Release,
    Remember,
    RemoveFinalizer,
    SlowStart,
    Update,
    Write,
)
from mockube.controller_manager.control.own_writes import Writes

T = TypeVar("T")
Do = Callable[[T], Awaitable[None]]


async def slow_start(things: Sequence[T], do: Do[T]) -> ApiError | None:
    """Run `do` in batches of 1, 2, 4 …; return the first error of the first batch that fails."""
    started, batch = 0, 1
    error: ApiError | None = None
    while started < len(things) and error is None:
        error = await run_concurrently(things[started : started + batch], do)
        started, batch = started + batch, batch * 2
    return error


async def run_concurrently(things: Sequence[T], do: Do[T]) -> ApiError | None:
    """Run all of them and return the first API error. Any other exception is raised."""
    if len(things) == 1:
        return await _do_one(things[0], do)
    outcomes = await asyncio.gather(*(_do_one(thing, do) for thing in things), return_exceptions=True)
    refusals = []
    for outcome in outcomes:
        if isinstance(outcome, ApiError):
            refusals.append(outcome)
        elif outcome is not None:
            raise outcome
    return refusals[0] if refusals else None


async def _do_one(thing: T, do: Do[T]) -> ApiError | None:
    try:
        await do(thing)
    except ApiError as error:
        return error
    return None


_REMOVED_FINALIZERS = "$deleteFromPrimitiveList/finalizers"

NAMESPACE_TERMINATING = "NamespaceTerminating"
"""The cause in the refusal of everything new in a namespace that is being deleted."""


ExecutableAction = (
    Create | Delete | Update | Patch | SlowStart | Adopt | Release | RemoveFinalizer | RecordEvent | Confirm
)
"""All actions but `Remember`, which sends no request."""


class EventRecorder(Protocol):
    def record(self, about: ReadOnlyTree, type_: str, reason: str, message: str) -> None: ...


def forget(_: object) -> None:
    """Remember nothing."""


class Executor:
    """Of one controller, by its account."""

    def __init__(self, client: Client, recorder: EventRecorder) -> None:
        self._client = client
        self._recorder = recorder

    async def execute(
        self,
        plan: Plan,
        writes: Writes,
        remember: Callable[[object], None] = forget,
        observe: Callable[[Outcome], None] = forget,
    ) -> None:
        """Execute a plan and the plans that follow it; raises the first error, after the plan's last actions.

        `observe` is called with the outcome.
        """
        every: list[Write] = []
        following: Plan | None = plan
        problem: ApiError | None = None
        while following is not None:
            done: list[Write] = []
            writes.observe = done.append
            error = await self._in_order(following.actions, writes, remember)
            later = await self._in_order(following.last(error), writes, remember)
            problem = problem or error or later
            every += done
            following = following.then(Outcome(error=error, writes=tuple(done)))
        observe(Outcome(error=problem, writes=tuple(every)))
        if problem is not None:
            raise problem

    async def _in_order(
        self, actions: Iterable[Action], writes: Writes, remember: Callable[[object], None]
    ) -> ApiError | None:
        for action in actions:
            if isinstance(action, Remember):
                remember(action.memory)
            elif (error := await self._do(action, writes)) is not None:
                return error
        return None

    async def _do(self, action: ExecutableAction, writes: Writes) -> ApiError | None:
        match action:
            case Create():
                return await slow_start(action.bodies, lambda body: self._create(action, body, writes))
            case Delete():
                return await run_concurrently(action.objects, lambda ref: self._delete(action, ref, writes))
            case Update() | Patch():
                return await run_concurrently((action,), lambda change: self._change(change, writes))
            case SlowStart():
                return await slow_start(action.effects, lambda effect: self._effect(effect, writes))
            case Adopt():
                return await self._adopt(action, writes)
            case Release() | RemoveFinalizer():
                return await run_concurrently(action.objects, lambda ref: self._let_go(action, ref, writes))
            case RecordEvent():
                self._recorder.record(action.about, action.type, action.reason, action.message)
                return None
            case Confirm():
                return await run_concurrently((action,), self._confirm)
            case _:
                assert_never(action)

    async def _effect(self, effect: Create | Update | Patch, writes: Writes) -> None:
        if (error := await self._do(effect, writes)) is not None:
            raise error

    async def _create(self, action: Create, body: ReadOnlyTree, writes: Writes) -> None:
        resource = action.resource
        try:
            created = await self._write(writes, resource, self._client.create(resource, body))
        except ApiError as error:
            if _is_terminating(error):
                return
            if not (isinstance(error, AlreadyExists) and meta.name(body)):  # a generated name is retried
                self._record_failure(action.event, meta.name(body), error)
            raise
        writes.note_write(resource, created)
        writes.observe(Write(action, Key.of(created), created))
        self._record_success(action.event, meta.name(created))
        for patch in action.then(created):
            with suppress(ApiError):  # created; a later reconciliation reports a failure
                await self._change(patch, writes)

    async def _delete(self, action: Delete, ref: ObjectRef, writes: Writes) -> None:
        resource, key = action.resource, ref.key
        deletion = self._client.delete(resource, key, uid=ref.uid, propagation=action.propagation)
        try:
            answer = await self._write(writes, resource, deletion)
        except NotFound:
            writes.note_deletion(resource, ref, None)
            writes.observe(Write(action, key, None))
            return
        except (
            Conflict
        ):  # perhaps another one has its name, perhaps it is there: what is seen then is tried again
            raise
        except ApiError as error:
            self._record_failure(action.event, key.name, error)
            raise
        writes.note_deletion(resource, ref, answer)
        writes.observe(Write(action, key, answer))
        self._record_success(action.event, key.name)

    async def _change(self, action: Update | Patch, writes: Writes) -> None:
        name = meta.name(action.body) if isinstance(action, Update) else action.key.name
        try:
            answer = await self._write(writes, action.resource, self._send_change(action))
        except Conflict:  # another writer was faster: no failure, and the next reconciliation retries
            raise
        except ApiError as error:
            self._record_failure(action.event, name, error)
            raise
        writes.note_write(action.resource, answer)
        writes.observe(Write(action, Key.of(answer), answer))
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

    async def _adopt(self, action: Adopt, writes: Writes) -> ApiError | None:
        reference = meta.controller_reference(action.owner)
        added = {"finalizers": [*action.finalizers]} if action.finalizers else {}

        async def adopt(orphan: ObjectRef) -> None:
            body = {"metadata": {"ownerReferences": [reference], "uid": orphan.uid, **added}}
            await self._claim(action.resource, orphan, body, writes, none_left=(NotFound,))

        refused = await run_concurrently((action,), self._check_owner)
        return refused or await run_concurrently(action.orphans, adopt)

    async def _check_owner(self, action: Adopt) -> None:
        """The caches may not show yet that the owner is deleted; objects that it adopts would never be released."""
        resource, owner = action.owner_resource, action.owner
        current_owner = await self._client.get(resource, Key.of(owner))
        if meta.uid(current_owner) != meta.uid(owner):
            raise not_found(resource.group_resource, meta.name(owner))
        if meta.is_deleting(current_owner):
            raise Conflict(f"{meta.namespace(owner)}/{meta.name(owner)} has just been deleted")

    async def _let_go(self, action: Release | RemoveFinalizer, ref: ObjectRef, writes: Writes) -> None:
        if isinstance(action, Release):
            await self._release(action, ref, writes)
        else:
            await self._unfinalize(action, ref, writes)

    async def _release(self, action: Release, ref: ObjectRef, writes: Writes) -> None:
        reference = {"$patch": "delete", "uid": meta.uid(action.owner)}
        removed = {_REMOVED_FINALIZERS: [*action.finalizers]} if action.finalizers else {}
        body = {"metadata": {"ownerReferences": [reference], "uid": ref.uid, **removed}}
        # Invalid: the reference does not exist any more.
        await self._claim(action.resource, ref, body, writes, none_left=(NotFound, Invalid))

    async def _unfinalize(self, action: RemoveFinalizer, ref: ObjectRef, writes: Writes) -> None:
        body = {"metadata": {"uid": ref.uid, _REMOVED_FINALIZERS: [action.finalizer]}}
        patch = self._client.patch(action.resource, ref.key, body, kind="strategic")
        try:
            answer = await self._write(writes, action.resource, patch)
        except NotFound:
            writes.observe(Write(action, ref.key, None))
            return
        writes.note_write(action.resource, answer)
        writes.observe(Write(action, ref.key, answer))

    async def _confirm(self, action: Confirm) -> None:
        resource, selected = action.resource, f"metadata.name={action.name}" if action.name else ""
        objects = await self._client.list(resource, action.namespace, field_selector=selected)
        if not action.holds([resource.view(item) for item in objects.items]):
            raise Conflict(f"the server returned other {resource} than the cache")

    async def _claim(
        self,
        resource: AnyResource,
        object_: ObjectRef,
        body: ReadOnlyTree,
        writes: Writes,
        *,
        none_left: tuple[type[ApiError], ...],
    ) -> None:
        """Change an object's owner reference; an error that means nothing is left to change is ignored."""
        patch = self._client.patch(resource, object_.key, body, kind="strategic")
        try:
            writes.note_write(resource, await self._write(writes, resource, patch))
        except none_left:
            return

    async def _write(self, writes: Writes, resource: AnyResource, write: Awaitable[Parsed]) -> Parsed:
        try:
            return await write
        except OutcomeUnknown:
            writes.note_unknown(resource)
            raise

    def _record_success(self, event: EventTemplate | None, name: str) -> None:
        if event is not None and event.done[0]:
            reason, message = event.done
            self._recorder.record(event.about, "Normal", reason, message.format(name=name))

    def _record_failure(self, event: EventTemplate | None, name: str, error: ApiError) -> None:
        if event is not None and event.failed[0]:
            reason, message = event.failed
            self._recorder.record(event.about, "Warning", reason, message.format(name=name, error=error))


def _is_terminating(error: ApiError) -> bool:
    causes = error.details.causes if error.details is not None else ()
    return any(cause.reason == NAMESPACE_TERMINATING for cause in causes)
