"""Answers as bytes, in the form that the client wants.

The usual case, an object or a list as JSON, consists of bytes that exist already: a list's are not even put together
here, as they are many. Everything else is made from trees.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from apimachinery.clock import Clock
from apiserver.resources.spec import Resource
from apiserver.rest.call import Call, ListAnswer, ObjectAnswer
from apiserver.storage.stored import Stored, Tree
from apiserver.wire import partial, table
from apiserver.wire.negotiate import Format, View, Wanted
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
        version = tree["metadata"].get("resourceVersion")  # what was only tried has none
        shown = {"resourceVersion": version} if version else {}
        # Through a subresource it may be shown as something else than the resource's kind.
        made = self._table(call, self._printers(tree["apiVersion"], tree["kind"]), [tree], shown, wanted)
        return write(made, wanted.format)

    def collection(self, call: Call, answer: ListAnswer, wanted: Wanted) -> Sequence[bytes]:
        """In parts that follow one another."""
        if wanted.view is View.OBJECT and wanted.format is Format.JSON:
            return _parts(answer)
        return [self._collection(call, answer, wanted)]

    def _collection(self, call: Call, answer: ListAnswer, wanted: Wanted) -> bytes:
        trees = [stored.tree() for stored in answer.items]
        if wanted.view is View.TABLE:
            printer = self._printer(call.resource)
            return write(self._table(call, printer, trees, answer.metadata, wanted), wanted.format)
        if wanted.view is View.PARTIAL:
            return write(partial.list_of(trees, answer.metadata, wanted.version), wanted.format)
        items = [{name: value for name, value in tree.items() if name not in _TYPE_META} for tree in trees]
        whole = {
            "kind": answer.kind,
            "apiVersion": answer.api_version,
            "metadata": answer.metadata,
            "items": items,
        }
        return write(whole, wanted.format)

    def event_object(
        self, resource: Resource, include: str, stored: Stored, wanted: Wanted, *, header: bool
    ) -> Tree:
        """An object as a watch's event carries it; a table has its columns in the first event only."""
        tree = stored.tree()
        if wanted.view is View.PARTIAL:
            return partial.of(tree, wanted.version)
        if wanted.view is View.TABLE:
            metadata = {"resourceVersion": tree["metadata"]["resourceVersion"]}
            asked = table.Asked(version=wanted.version, include=table.included(include), header=header)
            return table.make(self._printer(resource), [tree], metadata, now=self._clock.now(), asked=asked)
        return tree

    def _table(
        self,
        call: Call,
        printer: table.Printer,
        trees: list[Tree],
        metadata: Mapping[str, Any],
        wanted: Wanted,
    ) -> Tree:
        asked = table.Asked(version=wanted.version, include=table.included(call.parameter("includeObject")))
        return table.make(printer, trees, metadata, now=self._clock.now(), asked=asked)

    def _printer(self, resource: Resource) -> table.Printer:
        return self._printers(resource.api_version, resource.kind)


_TYPE_META = frozenset({"kind", "apiVersion"})


def _parts(answer: ListAnswer) -> Sequence[bytes]:
    head = {"kind": answer.kind, "apiVersion": answer.api_version, "metadata": answer.metadata}
    items = [stored.item for stored in answer.items]
    if items:
        items[0] = items[0].removeprefix(b",")
    return [b'%b,"items":[' % orjson.dumps(head)[:-1], *items, b"]}"]
