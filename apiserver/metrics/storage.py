"""The store: its size, its objects, the requests to it, the results of consistency checks, and the audit log."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

from mockube.apimachinery.groups import GroupResource
from mockube.component_base.metrics import MetricsRegistry
from mockube.etcd.errors import KVError
from mockube.etcd.kv import KV

from . import families


def count_objects(counts: Callable[[], Mapping[GroupResource, int]], metrics: MetricsRegistry) -> None:
    """Collect the numbers of objects, which `counts` returns."""
    objects, by_group = metrics.numbers(families.STORAGE_OBJECTS), metrics.numbers(families.RESOURCE_OBJECTS)

    def update() -> None:
        found = counts()
        objects.replace(((str(resource),), count) for resource, count in found.items())
        by_group.replace(((resource.group, resource.resource), count) for resource, count in found.items())

    metrics.on_collect(update)


def report_revision(
    revision: Callable[[], int], resources: Mapping[bytes, GroupResource], metrics: MetricsRegistry
) -> None:
    """Collect the revision of the watch cache, which all resources share."""
    revisions = metrics.numbers(families.CACHE_REVISION)

    def update() -> None:
        value = revision()
        revisions.replace(((name.group, name.resource), value) for name in resources.values())

    metrics.on_collect(update)


async def measure_store(kv: KV, metrics: MetricsRegistry) -> None:
    """Set the size of the store; there is none if it cannot be reached."""
    size = metrics.numbers(families.STORAGE_SIZE)
    try:
        size.replace([(("etcd-0",), (await kv.status()).size)])
    except KVError:
        size.replace(())


class ConsistencyMetrics:
    """The results of consistency checks by resource; `resources` maps prefixes of the store to resources."""

    def __init__(self, resources: Mapping[bytes, GroupResource], metrics: MetricsRegistry) -> None:
        self._resources = resources
        self._checks = metrics.numbers(families.CONSISTENCY_CHECKS)

    def count(self, prefix: bytes, status: str) -> None:
        resource = self._resources.get(prefix)
        if resource is not None:  # the objects of the control API are no resource of upstream
            self._checks.add(1, resource.group, resource.resource, status)


def count_unreadable(
    failures: Mapping[bytes, int], resources: Mapping[bytes, GroupResource], metrics: MetricsRegistry
) -> None:
    """Collect the numbers of stored values that could not be read as objects, by prefix."""
    errors = metrics.numbers(families.DECODE_ERRORS)

    def update() -> None:
        found = [(resources.get(folder), count) for folder, count in failures.items()]
        errors.replace(
            ((resource.group, resource.resource), count) for resource, count in found if resource is not None
        )

    metrics.on_collect(update)


# --- the audit log


class AuditLogCounts(Protocol):
    events: int
    errors: int
    levels: Counter[str]


def count_audit(counts: AuditLogCounts | None, metrics: MetricsRegistry) -> None:
    """Collect the numbers of the audit log; without a log they are zero."""
    events, errors, levels = (
        metrics.numbers(family)
        for family in (families.AUDIT_EVENTS, families.AUDIT_ERRORS, families.AUDIT_LEVELS)
    )
    metrics.numbers(families.AUDIT_REJECTED).of()
    events.of()
    if counts is None:
        return

    def update() -> None:
        events.set(counts.events)
        errors.replace([(("log",), counts.errors)] if counts.errors else [])
        levels.replace(((level,), count) for level, count in counts.levels.items())

    metrics.on_collect(update)
