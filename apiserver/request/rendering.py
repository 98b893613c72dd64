"""Renders responses in the client's output format.

An object or a list as JSON, the usual case, consists of bytes that exist already; those of a list are not joined here,
because they can be many. All other formats are encoded from trees.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

import orjson

from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.event_loop import QUICK_SLICE, Worker, yield_between_batches
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.autoscaling.scale import CUSTOM_PRINTER
from mockube.apiserver.registry.registry import MAX_WARNINGS, CorruptObject
from mockube.apiserver.registry.request_context import ListResult, ObjectResult, RequestContext
from mockube.apiserver.storage.stored_object import MAX_ITEM_BYTES, StoredObject
from mockube.apiserver.wire import partial, table, yaml_codec
from mockube.apiserver.wire.frames import encode_object
from mockube.apiserver.wire.negotiation import MediaType, OutputFormat, View
from mockube.apiserver.wire.protobuf import envelope
from mockube.component_base.clock import Clock

from .response import LazyParts, Parts

_T = TypeVar("_T")


Report = Callable[[StoredObject, Exception], None]
"""Counts and logs an object that cannot be rendered."""


class Renderer:
    """Renders objects and lists. It needs the clock for the ages in tables.

    A stored object may have fields of other types than its kind's, if another program wrote it. Such an object is
    reported, and omitted from a list with a warning.
    """

    def __init__(
        self,
        printers: table.Printers,
        clock: Clock,
        report: Report = lambda _, __: None,
        worker: Worker | None = None,
    ) -> None:
        self._worker = worker or Worker()
        self._printers = printers
        self._clock = clock
        self._report = report

    async def object(self, context: RequestContext, answer: ObjectResult, output: OutputFormat) -> bytes:
        """Render an object, in the worker's thread if it is large. One that is stored in the output format needs no rendering."""
        size = context.work.size if answer.stored is None else _size(answer.stored)
        return await self._worker.run(size, self._object, context, answer, output)

    def _object(self, context: RequestContext, answer: ObjectResult, output: OutputFormat) -> bytes:
        try:
            return self._render(context, answer, output)
        except ApiError:
            raise
        except Exception as error:
            if answer.stored is None:
                raise
            self._report(answer.stored, error)
            raise CorruptObject(answer.stored.key, answer.stored.revision, error) from error

    def _render(self, context: RequestContext, answer: ObjectResult, output: OutputFormat) -> bytes:
        if output.view is View.OBJECT:
            size = context.work.bytes if answer.stored is None else _size(answer.stored)
            return encode_object(answer.object(), output.format, size)
        tree = answer.object()
        if tree["kind"] == "Status":
            return encode_object(tree, output.format)
        if output.view is View.PARTIAL:
            _check_view(context, tree["apiVersion"], tree["kind"], output, is_list=False)
            return encode_object(partial.to_partial_metadata(tree, output.version), output.format)
        revision = tree["metadata"].get("resourceVersion")  # a dry run has none
        metadata = {"resourceVersion": revision} if revision else {}
        # A subresource may return another kind than the resource's.
        printer = self._printers(tree["apiVersion"], tree["kind"])
        if context.resource.custom and not context.is_unstructured:
            printer = CUSTOM_PRINTER
        version = output.version
        row = self._row(printer, context.parameter("includeObject"), version)
        return encode_object(table.make_table(printer, [row(tree)], metadata, version=version), output.format)

    async def collection(self, context: RequestContext, answer: ListResult, output: OutputFormat) -> Parts:
        """Render a list; return its parts in order."""
        if output.view is View.TABLE:
            return await self._table(context, answer, output)
        if output.view is View.OBJECT and output.format is MediaType.JSON:
            return await _parts(answer)
        return await self._list(context, answer, output)

    async def _list(
        self, context: RequestContext, answer: ListResult, output: OutputFormat
    ) -> Sequence[bytes]:
        """Render a list object by object."""
        if output.view is View.PARTIAL:
            _check_view(context, answer.api_version, answer.kind, output, is_list=True)
            if not answer.items and output.format is not MediaType.PROTOBUF:
                return [encode_object(_head(answer, output) | {"items": None}, output.format)]
        shape, encode = _shape(answer, output), _ITEMS[output.format]
        items = await self._make_each(context, lambda stored: encode(shape(stored)), answer.items)
        return _join_items(_head(answer, output), "items", items, output.format)

    async def _make_each(
        self, context: RequestContext, make: Callable[[StoredObject], _T], items: Sequence[StoredObject]
    ) -> list[_T]:
        """Return the result of `make` for each object; those that fail are omitted and named in warnings."""
        omitted: list[StoredObject] = []

        def make_or_report(stored: StoredObject) -> _T | None:
            try:
                return make(stored)
            except Exception as error:  # noqa: BLE001 - wrong types may cause any error
                self._report(stored, error)
                omitted.append(stored)
                return None

        results = await yield_between_batches(make_or_report, items, size=_size, worker=self._worker)
        rendered = [result for result in results if result is not None]
        for stored in omitted[:MAX_WARNINGS]:
            context.report.warn(
                f"{stored.key.decode(errors='replace')} cannot be read and is omitted: delete it by name"
            )
        return rendered

    async def _table(
        self, context: RequestContext, answer: ListResult, output: OutputFormat
    ) -> Sequence[bytes]:
        printer, items = self._printer(context.resource), answer.items
        if of_list := printer.of_list:
            printer = of_list(await self._make_each(context, lambda stored: stored.tree(), items))
        if order := printer.order:
            keys = await self._make_each(context, lambda stored: (order(stored.tree()), stored), items)
            items = [stored for _, stored in sorted(keys, key=itemgetter(0))]
        row = self._row(printer, context.parameter("includeObject"), output.version)
        encode = _ITEMS[output.format]
        rows = await self._make_each(context, lambda stored: encode(row(stored.tree())), items)
        head = table.make_table(printer, (), _without_empty(answer.metadata), version=output.version)
        if not rows and printer.has_no_rows:
            return [encode_object(head | {"rows": None}, output.format)]
        del head["rows"]
        return _join_items(head, "rows", rows, output.format)

    def event_object(
        self, resource: Resource, include: str, tree: Tree, output: OutputFormat, *, header: bool
    ) -> Tree:
        """Return the object of a watch event; only the table of the first event has columns."""
        if output.view is View.PARTIAL:
            return partial.to_partial_metadata(tree, output.version)
        if output.view is View.TABLE:
            metadata = {"resourceVersion": tree["metadata"]["resourceVersion"]}
            printer, version = self._printer(resource), output.version
            row = self._row(printer, include, version)
            return table.make_table(printer, [row(tree)], metadata, version=version, header=header)
        return tree

    def _row(self, printer: table.Printer, include: str, version: str) -> Callable[[Tree], Tree]:
        now, checked = self._clock.now(), table.parse_include_object(include)
        return lambda tree: table.row(printer, tree, now=now, version=version, include=checked)

    def _printer(self, resource: Resource) -> table.Printer:
        return self._printers(resource.api_version, resource.kind)


def _check_view(
    context: RequestContext, api_version: str, kind: str, output: OutputFormat, *, is_list: bool
) -> None:
    custom = context.resource.custom
    if context.resource.custom and not context.is_unstructured:  # its Go package is named after the version
        api_version, custom = f"{api_version.rpartition('/')[2]}/", False
    partial.check_view(api_version, kind, is_list=is_list, wants_list=output.is_list, custom=custom)


def _size(stored: StoredObject) -> int:
    return len(stored.value)


_ITEMS: Mapping[MediaType, Callable[[Tree], bytes]] = {
    MediaType.JSON: lambda tree: b"," + orjson.dumps(tree),
    MediaType.YAML: yaml_codec.dump_item,
    MediaType.PROTOBUF: envelope.encode_item,
}
"""The encoders of a list's items."""


def _join_items(head: Tree, field: str, items: Sequence[bytes], format_: MediaType) -> Sequence[bytes]:
    """Join encoded items into a list without encoding them again."""
    if format_ is MediaType.PROTOBUF:
        return envelope.encode_list(head, items)
    if format_ is MediaType.YAML:
        return yaml_codec.dump_list(head, field, items)
    first = [items[0][1:]] if items else []
    return [b'%b,"%b":[' % (orjson.dumps(head)[:-1], field.encode()), *first, *items[1:], b"]}"]


def _head(answer: ListResult, output: OutputFormat) -> Tree:
    if output.view is View.PARTIAL:
        return partial.list_head(_without_empty(answer.metadata), output.version)
    return {"kind": answer.kind, "apiVersion": answer.api_version, "metadata": answer.metadata}


def _without_empty(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return metadata without empty fields, which only lists of custom objects have."""
    return {name: value for name, value in metadata.items() if value != ""}


def _shape(answer: ListResult, output: OutputFormat) -> Callable[[StoredObject], Tree]:
    """Return a function that converts an object to a list item; protobuf needs its kind."""
    if output.view is View.PARTIAL:
        return lambda stored: partial.to_partial_metadata(stored.tree(), output.version)
    return StoredObject.tree if answer.named or output.format is MediaType.PROTOBUF else _without_type


def _without_type(stored: StoredObject) -> Tree:
    return {name: value for name, value in stored.tree().items() if name not in _TYPE_META}


MAX_KEPT_ITEMS, MAX_KEPT_BYTES = 2_000, MAX_ITEM_BYTES // 2
"""The items of a larger list are encoded again for each list, and share the text of the objects: kept ones would double the
memory of the objects, and those that are dropped too soon would be in the memory once for each slow client.
"""
_TYPE_META = frozenset({"kind", "apiVersion"})


def _is_large(items: Sequence[StoredObject]) -> bool:
    return len(items) > MAX_KEPT_ITEMS or sum([stored.size for stored in items]) > MAX_KEPT_BYTES


async def _parts(answer: ListResult) -> Parts:
    """Return the parts of a list in JSON. All requests share them, so that many or slow clients need no more memory."""
    head = {"kind": answer.kind, "apiVersion": answer.api_version, "metadata": answer.metadata}
    start = b'%b,"items":[' % orjson.dumps(head)[:-1]
    if _is_large(answer.items):
        return await _lazy_parts(start, answer.items, named=answer.named)
    items: list[bytes | memoryview]
    if answer.named:
        parts = await yield_between_batches(StoredObject.named_item, answer.items, count=QUICK_SLICE)
        items = [part for each in parts for part in each]
    else:
        items = [*await yield_between_batches(attrgetter("item"), answer.items, count=QUICK_SLICE)]
    if items:
        items[0] = items[0][1:]  # no comma
    return [start, *items, b"]}"]


async def _lazy_parts(start: bytes, items: Sequence[StoredObject], *, named: bool) -> LazyParts:
    """Return the parts of a large list, which are made from the objects while they are written."""
    size_of = StoredObject.named_item_size if named else StoredObject.item_size
    parts_of = StoredObject.named_item_parts if named else StoredObject.item_parts
    sizes = await yield_between_batches(size_of, items, count=QUICK_SLICE)

    def make() -> Iterator[bytes | memoryview]:
        each = chain.from_iterable(map(parts_of, items))
        yield start
        yield next(each)[1:]  # no comma
        yield from each
        yield b"]}"

    return LazyParts(make, len(start) + sum(sizes) - 1 + 2)
