"""The metric families of the scheduler: names, labels and buckets of kube-scheduler.

A help text begins with the stability that upstream gives the family.
"""

from typing import Final

from mockube.component_base.metrics import counter, exponential, gauge, histogram

_MILLISECONDS: Final = exponential(0.001, 2, 15)

SCHEDULE_ATTEMPTS: Final = counter(
    "scheduler_schedule_attempts_total", "[STABLE] Attempts to schedule pods, by result.", "result", "profile"
)
SCHEDULING_DURATION: Final = histogram(
    "scheduler_scheduling_attempt_duration_seconds",
    "[STABLE] Duration of attempts in seconds: the decision and the binding.",
    _MILLISECONDS,
    *("result", "profile"),
)
ALGORITHM_DURATION: Final = histogram(
    "scheduler_scheduling_algorithm_duration_seconds",
    "[BETA] Duration of decisions in seconds.",
    _MILLISECONDS,
)
POD_SCHEDULING_SLI: Final = histogram(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "[BETA] Time from the first attempt of a pod to its binding in seconds, by the number of attempts.",
    exponential(0.01, 2, 20),
    "attempts",
)
POD_SCHEDULING_ATTEMPTS: Final = histogram(
    "scheduler_pod_scheduling_attempts",
    "[STABLE] Attempts of the pods that were bound.",
    exponential(1, 2, 5),
)
EXTENSION_POINT_DURATION: Final = histogram(
    "scheduler_framework_extension_point_duration_seconds",
    "[STABLE] Duration of all plugins of an extension point in seconds.",
    exponential(0.0001, 2, 12),
    *("extension_point", "status", "profile"),
)
PENDING_PODS: Final = gauge(
    "scheduler_pending_pods", "[STABLE] Pods that wait to be scheduled, by queue.", "queue"
)
UNSCHEDULABLE_PODS: Final = gauge(
    "scheduler_unschedulable_pods", "[BETA] Pods that a plugin rejected, by plugin.", "plugin", "profile"
)
SCHEDULER_CACHE_SIZE: Final = gauge(
    "scheduler_cache_size", "[ALPHA] Nodes, pods and assumed pods that the scheduler knows.", "type"
)
PREEMPTION_ATTEMPTS: Final = counter(
    "scheduler_preemption_attempts_total", "[STABLE] Preemptions that were tried."
)
PREEMPTION_VICTIMS: Final = histogram(
    "scheduler_preemption_victims", "[STABLE] Pods that a preemption evicted.", exponential(1, 2, 7)
)
