"""The queues of a manager with their newest reconciliations, as the API server reads them for the kind Controller."""

import msgspec

from mockube.apimachinery.timestamps import format_micro_time
from mockube.client.metrics.process import Metrics
from mockube.client.metrics.queues import QueueStats

PATH = "/debug/controllers"


def controllers_page(metrics: Metrics) -> bytes:
    """Return the status of each queue by its name, as JSON."""
    return msgspec.json.encode(
        {name: _status_of(metrics, name, queue) for name, queue in sorted(metrics.queues.by_name().items())}
    )


def _status_of(metrics: Metrics, name: str, queue: QueueStats) -> dict[str, object]:
    running = queue.processing_times()
    waited, worked = queue.queue_durations, queue.work_durations
    return {
        "depth": queue.depth,
        "adds": int(queue.adds.value),
        "retries": int(queue.retries.value),
        "reconciliations": worked.count,
        "seconds": round(worked.total, 6),
        "waitSeconds": round(waited.total, 6),
        "running": len(running),
        "longestRunningSeconds": round(max(running, default=0.0), 6),
        "newest": [
            {**each.tree(), "time": format_micro_time(each.began)}
            for each in metrics.recent.of(name).newest()
        ],
    }
