"""A store whose reads and transactions for a request are spans of its trace, as upstream's storage has them.

The spans have the events of what happens here: nothing is encrypted, and an object is encoded before its write begins. As
upstream, the transaction of a deletion has no span.
"""

from collections.abc import Callable, Mapping
from typing import Final

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.tracing import spans
from mockube.apiserver.tracing.spans import MAX_TEXT, Attributes, Span
from mockube.etcd.errors import KVError
from mockube.etcd.kv import KV, Put, Range, RangeResult, Txn, TxnResult

from .stored_object import KeyedResource, Layout

_UPDATES: Final = frozenset({"Update", "Patch"})
"""The spans of requests that read an object and replace it, which is one span of the storage."""


class TracedKV:
    """A `KV`; `type_name` returns the name of the Go type of a resource's objects."""

    def __init__(
        self,
        kv: KV,
        layout: Layout,
        rows: Mapping[GroupResource, KeyedResource],
        type_name: Callable[[GroupResource], str],
    ) -> None:
        self._kv = kv
        self._layout = layout
        self._rows = rows
        self._type_name = type_name
        self.put, self.delete, self.watch, self.compact = kv.put, kv.delete, kv.watch, kv.compact
        self.grant, self.keep_alive, self.revoke = kv.grant, kv.keep_alive, kv.revoke
        self.time_to_live, self.leases = kv.time_to_live, kv.leases
        self.status, self.close = kv.status, kv.close

    async def range(self, request: Range) -> RangeResult:
        span = spans.recording()
        if span is None:
            return await self._kv.range(request)
        if request.range_end is not None:
            return await self._list(span, request)
        if span.name in _UPDATES and (span.open_child is None or self._is_of(span.open_child, request.key)):
            return await self._read_to_update(span, request)
        reading = span.child("Get etcd3", self._attributes(span, request.key))
        try:
            result = await self._kv.range(request)
            reading.add_event("Get call succeeded")
        except KVError as error:
            reading.add_event("Get call failed", {"err": str(error)})
            raise
        finally:
            reading.end()
        return result

    async def txn(self, request: Txn) -> TxnResult:
        span = spans.recording()
        put = next((step for step in request.then if isinstance(step, Put)), None)
        if span is None or put is None or put is not request.then[0]:
            return await self._kv.txn(request)
        if span.open_child is not None and self._is_of(span.open_child, put.key):
            return await self._update(span.open_child, request, put)
        attributes = self._attributes(span, put.key, has_type=True)
        if request.compare and request.compare[0].operand:
            return await self._update(span.child("GuaranteedUpdate etcd3", attributes), request, put)
        return await self._create(span.child("Create etcd3", attributes), request, put)

    async def _list(self, span: Span, request: Range) -> RangeResult:
        attributes: Attributes = {
            "audit-id": span.attributes.get("audit-id", ""),
            "key": self._key(request.key).rstrip("/\0"),
            "resourceVersion": str(request.revision) if request.revision else "",
            "limit": request.limit,
        }
        if span.name == "List":
            span.open_child = None  # it does not read the watch cache
        listing = span.child("List(recursive=true) etcd3", attributes)
        try:
            return await self._kv.range(request)
        finally:
            listing.end()

    async def _read_to_update(self, span: Span, request: Range) -> RangeResult:
        event = "Retry value restored"
        if span.open_child is None:
            event = "initial value restored"
            attributes = self._attributes(span, request.key, has_type=True)
            span.open_child = span.child("GuaranteedUpdate etcd3", attributes)
        result = await self._kv.range(request)
        if result.kvs or span.attributes["verb"] == "APPLY":  # which creates a missing object
            span.open_child.add_event(event)
            if span.name == "Patch":
                span.add_event("About to apply patch")
        return result

    async def _update(self, update: Span, request: Txn, put: Put) -> TxnResult:
        update.add_event("Encode succeeded", {"len": len(put.value)})
        update.add_event("Transaction prepared")
        try:
            result = await self._kv.txn(request)
        except KVError as error:
            update.add_event("Txn call failed", {"err": str(error)})
            update.end()
            raise
        update.add_event("Txn call completed")
        if result.succeeded:
            update.add_event("Transaction committed")
            update.end()
        return result

    async def _create(self, creation: Span, request: Txn, put: Put) -> TxnResult:
        creation.add_event("Encode succeeded", {"len": len(put.value)})
        try:
            result = await self._kv.txn(request)
            creation.add_event("Txn call succeeded")
        except KVError as error:
            creation.add_event("Txn call failed", {"err": str(error)})
            raise
        finally:
            creation.end()
        return result

    def _is_of(self, update: Span, key: bytes) -> bool:
        return update.attributes["key"] == self._key(key)

    def _key(self, key: bytes) -> str:
        """Return a key without the prefix of the store, as upstream shows it."""
        return key[len(self._layout.root) - 1 :].decode(errors="replace")[:MAX_TEXT]

    def _attributes(self, span: Span, key: bytes, *, has_type: bool = False) -> Attributes:
        _, name = self._layout.resource_of(key, self._rows)
        attributes: Attributes = {
            "audit-id": span.attributes.get("audit-id", ""),
            "key": self._key(key),
            "group": name.group,
            "resource": name.resource,
        }
        if has_type:
            attributes["type"] = self._type_name(name)
        return attributes
