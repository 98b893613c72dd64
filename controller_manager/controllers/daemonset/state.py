"""A DaemonSet, the nodes and its pods on each, at one time. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import intstr, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.controllers.daemonset.placement import Fit, fit_of, is_updated, target_node

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Failures(Struct, frozen=True):
    """When the failed pods of nodes were last deleted, and how long the next one is left alone: twice as long each time."""

    by_node: Mapping[tuple[int, str], tuple[timedelta, datetime]] = field(default_factory=dict)
    """By the observed generation and the node."""

    initial = timedelta(seconds=1)
    max_delay = timedelta(minutes=15)

    def delay(self, key: tuple[int, str], now: datetime) -> timedelta:
        """How long to leave a failed pod alone; nothing if it may be deleted."""
        delay, since = self.by_node.get(key, (timedelta(), _NEVER))
        return delay if now - since < delay else timedelta()

    def with_deletion(self, key: tuple[int, str], now: datetime) -> "Failures":
        delay, since = self.by_node.get(key, (timedelta(), _NEVER))
        is_old = not delay or now - since > 2 * self.max_delay
        delay = self.initial if is_old else min(2 * delay, self.max_delay)
        recent = {
            other: entry for other, entry in self.by_node.items() if now - entry[1] <= 2 * self.max_delay
        }
        return Failures({**recent, key: (delay, now)})


class DaemonState(Struct, frozen=True, kw_only=True, dict=True):
    daemon_set: ReadOnlyTree
    nodes: Sequence[ReadOnlyTree]
    pods: Mapping[str, Sequence[PodView]]
    """By node, but for those that have ended and are being deleted."""
    all_pods: Sequence[PodView]
    revision_hash: str
    now: datetime

    @property
    def spec(self) -> ReadOnlyTree:
        spec: ReadOnlyTree = self.daemon_set["spec"]
        return spec

    @cached_property
    def fits(self) -> Mapping[str, Fit]:
        fit = fit_of(self.daemon_set)
        return {meta.name(node): fit(node) for node in self.nodes}

    @property
    def desired_count(self) -> int:
        return sum(fit.should_run for fit in self.fits.values())

    @property
    def min_ready_seconds(self) -> int:
        return self.spec.get("minReadySeconds") or 0

    def is_available(self, pod: PodView) -> bool:
        return pod.is_available(self.min_ready_seconds, self.now)

    def is_updated(self, pod: PodView) -> bool:
        return is_updated(self.daemon_set, pod, self.revision_hash)

    def max_surge(self, total: int) -> int:
        return self._share("maxSurge", total)

    def unavailable(self, total: int) -> int:
        return self._share("maxUnavailable", total)

    def _share(self, name: str, total: int) -> int:
        strategy = self.spec.get("updateStrategy") or {}
        value = (strategy.get("rollingUpdate") or {}).get(name)
        if strategy.get("type") != "RollingUpdate" or value is None:
            return 0
        return intstr.scaled_value(value, total, round_up=True)


def pods_by_node(pods: Iterable[PodView]) -> Mapping[str, Sequence[PodView]]:
    by_node: dict[str, list[PodView]] = {}
    for pod in pods:
        if not (pod.is_terminal and pod.deleting) and (node := target_node(pod)):
            by_node.setdefault(node, []).append(pod)
    return by_node


def oldest_first(pods: Iterable[PodView]) -> list[PodView]:
    """Pods on a node before pods that only have an affinity for one."""
    return sorted(
        pods, key=lambda pod: (not pod.node, meta.creation_timestamp(pod.object) or _NEVER, pod.key.name)
    )
