"""Minimal pods, samples and inputs of HorizontalPodAutoscalers."""

from datetime import UTC, datetime, timedelta

from mockube.apimachinery.timestamps import format_time
from mockube.client.podview import PodView
from mockube.controller_manager.controllers.horizontalpodautoscaler.replicas import (
    PodMetric,
    ScalingContext,
    Tolerances,
)

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def pod(
    name,
    *,
    phase="Running",
    ready="True",
    started=timedelta(hours=1),
    changed=timedelta(minutes=50),
    deleting=False,
    requests=("1",),
    spec=None,
    labels=None,
):
    """`started` and `changed` are ages; each container of the pod requests this much CPU."""
    containers = [
        {"name": f"c{index}", "resources": {"requests": {"cpu": cpu}} if cpu else {}}
        for index, cpu in enumerate(requests)
    ]
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "labels": labels or {}}
    if deleting:
        metadata["deletionTimestamp"] = format_time(NOW)
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": format_time(NOW - changed)}
    status = {"phase": phase, "startTime": format_time(NOW - started), "conditions": [condition]}
    return PodView.of(
        {"metadata": metadata, "spec": {"containers": containers, **(spec or {})}, "status": status}
    )


def samples(*values, window=MINUTE, ago=timedelta()):
    """Samples of the pods p0, p1 …; None is a pod without one."""
    return {
        f"p{index}": PodMetric(value, NOW - ago, window)
        for index, value in enumerate(values)
        if value is not None
    }


def situation(*pods, spec_replicas=None, status_replicas=None, tolerances=(0.1, 0.1)):
    return ScalingContext(
        spec_replicas=len(pods) if spec_replicas is None else spec_replicas,
        status_replicas=len(pods) if status_replicas is None else status_replicas,
        pods=pods,
        tolerances=Tolerances(*tolerances),
        cpu_initialization_period=2 * MINUTE,
        initial_readiness_delay=timedelta(seconds=10),
        now=NOW,
    )
