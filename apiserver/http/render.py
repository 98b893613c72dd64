"""Answers as bytes, in the form that the client wants.

The usual case, an object or a list as JSON, consists of bytes that exist already: a list's are not even put together
here, as they are many. Everything else is made from trees.
"""

from collections.abc import Callable, Sequence

import orjson

from apimachinery.clock import Clock
from apiserver.http.turns import in_turns
from apiserver.resources.spec import Resource
from apiserver.rest.call import Call, ListAnswer, ObjectAnswer
from apiserver.storage.stored import Stored, Tree
from apiserver.wire import partial, table
from apiserver.wire.negotiate import Format, View, Wanted
from apiserver.wire.protobuf import envelope
from apiserver.wire.write import write


class Renderer:
    """Knows the time, for tables show ages."""

    def __init__(self, printers: table.Printers, clock: Clock) -> None:
        self._printers = printers
        self._clock = clock

    def object(self, call: Call, answer: ObjectAnswer, wanted: Wanted) -> bytes:
        if wanted.view is View.OBJECT:
            if wanted.format is Format.JSON and answer.stored is not None:
                return answer.stored.text
            return write(answer.object(), wanted.format)
        tree = answer.object()
        if tree["kind"] == "Status":
            return write(tree, wanted.format)
        if wanted.view is View.PARTIAL:
            return write(partial.of(tree, wanted.version), wanted.format)
        revision = tree["metadata"].get("resourceVersion")  # what was only tried has none
        shown = {"resourceVersion": revision} if revision else {}
        # Through a subresource it may be shown as something else than the resource's kind.
        printer, version = self._printers(tree["apiVersion"], tree["kind"]), wanted.version
        row = self._row(printer, call.parameter("includeObject"), version)
        return write(table.make(printer, [row(tree)], shown, version=version), wanted.format)

    async def collection(self, call: Call, answer: ListAnswer, wanted: Wanted) -> Sequence[bytes]:
        """In parts that follow one another."""
        if wanted.view is View.TABLE:
            return [await self._table(call, answer, wanted)]
        if wanted.view is View.OBJECT and wanted.format is Format.JSON:
            return _parts(answer)
        return [await _list(answer, wanted)]

    async def _table(self, call: Call, answer: ListAnswer, wanted: Wanted) -> bytes:
        printer, items = self._printer(call.resource), answer.items
        if order := printer.order:
            items = sorted(items, key=lambda stored: order(stored.tree()))
        row = self._row(printer, call.parameter("includeObject"), wanted.version)
        rows = await in_turns(lambda stored: row(stored.tree()), items)
        return write(table.make(printer, rows, answer.metadata, version=wanted.version), wanted.format)

    def event_object(
        self, resource: Resource, include: str, stored: Stored, wanted: Wanted, *, header: bool
    ) -> Tree:
        """An object as a watch's event carries it; a table has its columns in the first event only."""
        tree = stored.tree()
        if wanted.view is View.PARTIAL:
            return partial.of(tree, wanted.version)
        if wanted.view is View.TABLE:
            metadata = {"resourceVersion": tree["metadata"]["resourceVersion"]}
            printer, version = self._printer(resource), wanted.version
            row = self._row(printer, include, version)
            return table.make(printer, [row(tree)], metadata, version=version, header=header)
        return tree

    def _row(self, printer: table.Printer, include: str, version: str) -> Callable[[Tree], Tree]:
        now, checked = self._clock.now(), table.included(include)
        return lambda tree: table.row(printer, tree, now=now, version=version, include=checked)

    def _printer(self, resource: Resource) -> table.Printer:
        return self._printers(resource.api_version, resource.kind)


async def _list(answer: ListAnswer, wanted: Wanted) -> bytes:
    """A list that has to be made object by object."""
    head, shape = _head(answer, wanted), _shape(answer, wanted)
    if wanted.format is Format.PROTOBUF:
        parts = await in_turns(lambda stored: envelope.encode_item(shape(stored)), answer.items)
        return envelope.encode_list(head, parts)
    return write(head | {"items": await in_turns(shape, answer.items)}, wanted.format)


def _head(answer: ListAnswer, wanted: Wanted) -> Tree:
    if wanted.view is View.PARTIAL:
        return partial.head_of_list(answer.metadata, wanted.version)
    return {"kind": answer.kind, "apiVersion": answer.api_version, "metadata": answer.metadata}


def _shape(answer: ListAnswer, wanted: Wanted) -> Callable[[Stored], Tree]:
    """What of an object is an item; protobuf needs the kind to write it."""
    if wanted.view is View.PARTIAL:
        return lambda stored: partial.of(stored.tree(), wanted.version)
    return Stored.tree if answer.named or wanted.format is Format.PROTOBUF else _without_type


def _without_type(stored: Stored) -> Tree:
    return {name: value for name, value in stored.tree().items() if name not in _TYPE_META}


_TYPE_META = frozenset({"kind", "apiVersion"})


def _parts(answer: ListAnswer) -> Sequence[bytes]:
    head = {"kind": answer.kind, "apiVersion": answer.api_version, "metadata": answer.metadata}
    items = [b"," + stored.text if answer.named else stored.item for stored in answer.items]
    if items:
        items[0] = items[0].removeprefix(b",")
    return [b'%b,"items":[' % orjson.dumps(head)[:-1], *items, b"]}"]
