"""The state of a DaemonSet: the nodes, and its pods by node."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import intstr, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView

from .placement import Fit, fit_of, is_updated, target_node

_MIN_TIME: Final = datetime.min.replace(tzinfo=UTC)


class FailedPodsBackoff(Struct, frozen=True):
    """The backoff of deleting failed pods, by node: the delay doubles with each deletion."""

    by_node: Mapping[tuple[int, str], tuple[timedelta, datetime]] = field(default_factory=dict)
    """The delay and the time of the last deletion, by observed generation and node."""

    initial = timedelta(seconds=1)
    max_delay = timedelta(minutes=15)

    def delay(self, key: tuple[int, str], now: datetime) -> timedelta:
        """Return how long a failed pod is not deleted; 0 if it may be deleted now."""
        delay, since = self.by_node.get(key, (timedelta(), _MIN_TIME))
        return delay if now - since < delay else timedelta()

    def with_deletion(self, key: tuple[int, str], now: datetime) -> "FailedPodsBackoff":
        delay, since = self.by_node.get(key, (timedelta(), _MIN_TIME))
        is_old = not delay or now - since > 2 * self.max_delay
        delay = self.initial if is_old else min(2 * delay, self.max_delay)
        recent = {
            other: entry for other, entry in self.by_node.items() if now - entry[1] <= 2 * self.max_delay
        }
        return FailedPodsBackoff({**recent, key: (delay, now)})


class DaemonState(Struct, frozen=True, kw_only=True, dict=True):
    daemon_set: ReadOnlyTree
    nodes: Sequence[ReadOnlyTree]
    pods: Mapping[str, Sequence[PodView]]
    """The pods by node, without those that have ended and are being deleted."""
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
        return self._rolling_update_limit("maxSurge", total)

    def max_unavailable(self, total: int) -> int:
        return self._rolling_update_limit("maxUnavailable", total)

    def _rolling_update_limit(self, name: str, total: int) -> int:
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
    """Return pods by age; pods on a node precede pods that only have an affinity for one."""
    return sorted(
        pods, key=lambda pod: (not pod.node, meta.creation_timestamp(pod.object) or _MIN_TIME, pod.key.name)
    )
