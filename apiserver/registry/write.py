"""One write of an object, as its stages make it, and the runner of stages. `stages` lists those of a stored object in order."""

from collections.abc import Awaitable, Callable, Iterable
from functools import cache, partial
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeAlias, TypeVar

from msgspec import Struct, field

from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.event_loop import LARGE
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import Conversion, NotConverted
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.storage.stored_object import StoredObject

from .registry import NO_ALLOCATIONS, Allocations, Registry
from .request_context import AdmissionAttributes, ObjectResult, RequestContext, WriteOptions


class Write(Struct, kw_only=True):
    """What a request to create or change one object asks for, and what its stages have made of it so far.

    Each attempt to change an object fills a `Write` of its own. The functions get it as an argument: if they held it, only the
    garbage collector, which seldom runs, would free it with all its objects.
    """

    registry: Registry
    context: RequestContext
    options: WriteOptions = WriteOptions()
    change: "Callable[[Write, Tree], Tree] | None" = None
    """Returns the new object for the old one, which it must not change, both in the client's version, with its managers."""
    make: "Callable[[Write], Tree] | None" = None
    """Returns the object to create; None if a missing object is not created. The server's fields are not set yet."""
    uid: str = ""
    """The UID that the object must have, if the client sent one."""
    manages_new: bool = True
    """Whether the client's manager is recorded in a new object; `make` of an apply records it."""

    row: Resource = field(default=None)  # type: ignore[assignment]
    """The row of the version in which the object is admitted and validated."""
    strategy: Strategy = field(default=None)  # type: ignore[assignment]
    """The strategy of that row."""
    conversion: Conversion | None = None
    """How objects are converted between the client's version and the stored one; None if those are the same."""

    stored: StoredObject | None = None
    """The stored object that is changed; None if the object is created."""

    # What the stages make, in their order:
    type_error: ApiError | None = None
    """The error of a body of another kind that has no struct upstream; upstream returns it when it validates objects."""
    stored_tree: Tree | None = None
    old: Tree | None = None
    """The stored object in the version in which it is admitted and validated."""
    client_old: Tree | None = None
    """The stored object in the client's version."""
    patched: Any = None
    """The result of a patch, before it is decoded as the object's kind."""
    new: Tree = field(default_factory=dict)
    attributes: AdmissionAttributes = field(default=None)  # type: ignore[assignment]
    """Those of the new object for admission; made by the stage `admit`."""
    allocations: Allocations = NO_ALLOCATIONS
    to_store: Tree = field(default_factory=dict)
    """The new object in the stored version."""
    value: bytes = b""
    """The text of that object."""
    result: ObjectResult | None = None
    """Set by the last stage; None if another write came between, or an allocation is in use, so that stages are repeated."""

    def __post_init__(self) -> None:
        if self.row is None:  # a copy has them
            self.row = self.registry.admitted_row(self.context.resource)
            self.strategy = self.registry.scheme.strategy(self.row)
            self.conversion = self.registry.scheme.conversion(self.context.resource)

    @property
    def subresource(self) -> str:
        return self.context.subresource.name if self.context.subresource else ""


class Staged(Protocol):
    """A record that stages fill: a `Write`, or a deletion."""

    registry: Registry
    context: RequestContext
    result: ObjectResult | None


_S = TypeVar("_S", bound=Staged)
_R = TypeVar("_R")

Stage: TypeAlias = Callable[[_S], Awaitable[None] | None]
"""A plain function computes; an async one waits for others: for webhooks, for the store, for memory."""

_waits: Callable[[Stage[Any]], bool] = cache(iscoroutinefunction)


async def run(record: _S, stages: Iterable[Stage[_S]]) -> None:
    """Run stages in order, until one sets the result. What computes on a large object runs in the worker, all else on the loop."""
    worker, context = record.registry.worker, record.context
    is_small, warnings = context.work.size < LARGE, context.report.warnings
    for stage in stages:
        if _waits(stage):
            await stage(record)  # type: ignore[misc] # it returns None only if it does not wait
        else:
            count = len(warnings)
            try:
                if is_small:  # as the worker decides, without a coroutine for each stage
                    stage(record)
                else:
                    await worker.run(context.work.size, stage, record)
            except NotConverted as needed:
                # Only stages that read sent and old objects need another version, and they change nothing before that.
                del warnings[count:]
                await needed.prepare()
                await with_conversions(context, partial(worker.run, context.work.size, stage, record))
        if record.result is not None:
            return


async def with_conversions(context: RequestContext, work: Callable[[], Awaitable[_R]]) -> _R:
    """Return the result of work without side effects, which is repeated after the conversion of an object that it needs."""
    warnings = len(context.report.warnings)
    while True:
        try:
            return await work()
        except NotConverted as needed:
            del context.report.warnings[warnings:]
            await needed.prepare()
