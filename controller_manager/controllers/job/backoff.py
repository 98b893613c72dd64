"""The backoff after failures of a Job's pods: 10 seconds, twice as long after each failure, up to 10 minutes."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView

INITIAL_DELAY: Final = timedelta(seconds=10)
MAX_DELAY: Final = timedelta(minutes=10)
"""MaxJobPodFailureBackOff of pkg/controller/job/job_controller.go."""
_MAX_DOUBLINGS: Final = 6
"""The number of doublings after which the delay exceeds its maximum."""
_MIN_TIME: Final = datetime.min.replace(tzinfo=UTC)


class Failures(Struct, frozen=True):
    """The failures of a Job's pods since the last success."""

    count: int = 0
    last: datetime | None = None

    def with_pods(self, succeeded: Sequence[PodView], failed: Sequence[PodView]) -> "Failures":
        """Return the failures after more pods have ended."""
        times = sorted(map(finish_time, failed))
        if succeeded:
            success = max(map(finish_time, succeeded))
            after_success = [time for time in times if time > success]
            return Failures(len(after_success), after_success[-1] if after_success else None)
        return Failures(self.count + len(times), times[-1]) if times else self

    def backoff_left_at(self, now: datetime) -> timedelta:
        return backoff_left(self.count, self.last or now, now)


def backoff_left(failures: int, last: datetime, now: datetime) -> timedelta:
    """Return the rest of the backoff after a number of failures; `last` is the time of the last one."""
    if failures == 0:
        return timedelta()
    delay = min(INITIAL_DELAY * (1 << min(failures - 1, _MAX_DOUBLINGS)), MAX_DELAY)
    return max(timedelta(), after(last, delay) - now)


def finish_time(pod: PodView) -> datetime:
    """Return the time when the pod ended, from the most exact field of its status."""
    return (
        _containers_finish_time(pod.object)
        or _unready_time(pod.object)
        or _deletion_time(pod.object)
        or meta.creation_timestamp(pod.object)
        or _MIN_TIME
    )


def _containers_finish_time(pod: ReadOnlyTree) -> datetime | None:
    """Return the time when the last container or sidecar ended; None unless all have ended."""
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    inits = spec.get("initContainers") or ()
    sidecars = {container["name"] for container in inits if container.get("restartPolicy") == "Always"}
    sidecar_statuses = [
        container_status
        for container_status in status.get("initContainerStatuses") or ()
        if container_status["name"] in sidecars
    ]
    times = [*map(_finish_time, (*(status.get("containerStatuses") or ()), *sidecar_statuses))]
    known_times = [time for time in times if time is not None]
    return max(known_times) if known_times and len(known_times) == len(times) else None


def _finish_time(status: ReadOnlyTree) -> datetime | None:
    terminated = (status.get("state") or {}).get("terminated") or {}
    return _time(terminated.get("finishedAt"))


def _unready_time(pod: ReadOnlyTree) -> datetime | None:
    ready = conditions.get(pod, "Ready")
    return _time(ready.get("lastTransitionTime")) if ready and ready["status"] == "False" else None


def _deletion_time(pod: ReadOnlyTree) -> datetime | None:
    deadline = meta.deletion_timestamp(pod)
    if deadline is None:
        return None
    return after(deadline, -span_of(meta.deletion_grace_period_seconds(pod) or 0))


def _time(text: str | None) -> datetime | None:
    return parse_time(text) if text else None


def shortest_span(spans: Iterable[timedelta]) -> timedelta | None:
    """Return the shortest positive span."""
    return min((span for span in spans if span > timedelta()), default=None)
