"""How long a Job waits before it replaces a failed pod: 10 seconds, twice as long each time, up to 10 minutes. Pure."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import after, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView

INITIAL_DELAY: Final = timedelta(seconds=10)
MAX_DELAY: Final = timedelta(minutes=10)
_DOUBLINGS: Final = 6
"""After so many the delay is as long as it gets."""
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Failures(Struct, frozen=True):
    """The failures of a Job's pods since the last success."""

    count: int = 0
    last: datetime | None = None

    def with_pods(self, succeeded: Sequence[PodView], failed: Sequence[PodView]) -> "Failures":
        """With what has ended since."""
        times = sorted(map(finish_time, failed))
        if succeeded:
            success = max(map(finish_time, succeeded))
            later = [time for time in times if time > success]
            return Failures(len(later), later[-1] if later else None)
        return Failures(self.count + len(times), times[-1]) if times else self

    def time_left(self, now: datetime) -> timedelta:
        return backoff_left(self.count, self.last or now, now)


def backoff_left(failures: int, last: datetime, now: datetime) -> timedelta:
    """How long to wait after so many failures, the last of which was then."""
    if failures == 0:
        return timedelta()
    delay = min(INITIAL_DELAY * (1 << min(failures - 1, _DOUBLINGS)), MAX_DELAY)
    return max(timedelta(), after(last, delay) - now)


def finish_time(pod: PodView) -> datetime:
    """When the pod ended, as exactly as its status has it."""
    return (
        _containers_finished(pod.object)
        or _became_unready(pod.object)
        or _was_deleted(pod.object)
        or meta.creation_timestamp(pod.object)
        or _NEVER
    )


def _containers_finished(pod: ReadOnlyTree) -> datetime | None:
    """When the last container ended, sidecars among them; None unless all have."""
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    inits = spec.get("initContainers") or ()
    sidecars = {container["name"] for container in inits if container.get("restartPolicy") == "Always"}
    beside = [
        container_status
        for container_status in status.get("initContainerStatuses") or ()
        if container_status["name"] in sidecars
    ]
    times = [*map(_finish_time, (*(status.get("containerStatuses") or ()), *beside))]
    ended = [time for time in times if time is not None]
    return max(ended) if ended and len(ended) == len(times) else None


def _finish_time(status: ReadOnlyTree) -> datetime | None:
    terminated = (status.get("state") or {}).get("terminated") or {}
    return _time(terminated.get("finishedAt"))


def _became_unready(pod: ReadOnlyTree) -> datetime | None:
    ready = conditions.get(pod, "Ready")
    return _time(ready.get("lastTransitionTime")) if ready and ready["status"] == "False" else None


def _was_deleted(pod: ReadOnlyTree) -> datetime | None:
    deadline = meta.deletion_timestamp(pod)
    if deadline is None:
        return None
    return after(deadline, -span_of(meta.deletion_grace_period_seconds(pod) or 0))


def _time(text: str | None) -> datetime | None:
    return parse_time(text) if text else None


def shortest_span(spans: Iterable[timedelta]) -> timedelta | None:
    """The shortest of them that is not over."""
    return min((span for span in spans if span > timedelta()), default=None)
