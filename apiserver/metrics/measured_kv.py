"""A store whose reads and transactions are counted, as upstream counts its requests to etcd."""

from collections.abc import Callable, Mapping

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.storage.stored_object import KeyedResource, Layout
from mockube.component_base.metrics import Distribution, MetricsRegistry, Number
from mockube.etcd.errors import KVError
from mockube.etcd.kv import KV, Delete, Put, PutResult, Range, RangeResult, Txn, TxnResult

from . import families


class MeasuredKV:
    """A `KV` that counts; what is not a read or a change of objects goes to the store directly."""

    def __init__(
        self,
        kv: KV,
        layout: Layout,
        rows: Mapping[GroupResource, KeyedResource],
        monotonic: Callable[[], float],
        metrics: MetricsRegistry,
    ) -> None:
        self._kv = kv
        self._layout = layout
        self._start = len(layout.root)
        self._rows = rows
        self._monotonic = monotonic
        self._totals = metrics.numbers(families.ETCD_REQUESTS)
        self._errors = metrics.numbers(families.ETCD_REQUEST_ERRORS)
        self._durations = metrics.distributions(families.ETCD_REQUEST_DURATION)
        self._series: dict[tuple[str, bytes], tuple[Number, Distribution]] = {}
        self.delete, self.watch, self.compact = kv.delete, kv.watch, kv.compact
        self.grant, self.keep_alive, self.revoke = kv.grant, kv.keep_alive, kv.revoke
        self.time_to_live, self.leases = kv.time_to_live, kv.leases
        self.status, self.close = kv.status, kv.close

    async def range(self, request: Range) -> RangeResult:
        operation = "get" if request.range_end is None else "list"
        began = self._monotonic()
        try:
            return await self._kv.range(request)
        except KVError:
            self._count_error(operation, request.key)
            raise
        finally:
            self._observe(operation, request.key, began)

    async def put(self, request: Put) -> PutResult:
        began = self._monotonic()
        try:
            return await self._kv.put(request)
        except KVError:
            self._count_error("update", request.key)
            raise
        finally:
            self._observe("update", request.key, began)

    async def txn(self, request: Txn) -> TxnResult:
        operation, key = _operation_of(request)
        began = self._monotonic()
        try:
            return await self._kv.txn(request)
        except KVError:
            self._count_error(operation, key)
            raise
        finally:
            self._observe(operation, key, began)

    def _observe(self, operation: str, key: bytes, began: float) -> None:
        series, start = self._series, self._start
        # One segment of a key names a resource of the server, two a custom one.
        end = key.find(b"/", start)
        found = (
            series.get((operation, key[start:end]))
            or series.get((operation, key[start : key.find(b"/", end + 1)]))
            or self._find(operation, key)
        )
        found[0].value += 1
        found[1].observe(self._monotonic() - began)

    def _count_error(self, operation: str, key: bytes) -> None:
        _, name = self._layout.resource_of(key, self._rows)
        self._errors.add(1, operation, name.group, name.resource)

    def _find(self, operation: str, key: bytes) -> tuple[Number, Distribution]:
        folder, name = self._layout.resource_of(key, self._rows)
        labels = (operation, name.group, name.resource)
        series = self._totals.of(*labels), self._durations.of(*labels)
        if folder:
            self._series[operation, folder[:-1]] = series
        return series


def _operation_of(transaction: Txn) -> tuple[str, bytes]:
    """Return upstream's name of what a transaction does to its first key, and the key."""
    for step in transaction.then:
        if isinstance(step, Put):
            compared = transaction.compare[0].operand if transaction.compare else 1
            return "update" if compared else "create", step.key
        if isinstance(step, Delete):
            return "delete", step.key
    key = transaction.then[0].key if transaction.then else b""
    return "get", key
