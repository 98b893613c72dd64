"""The metric families of a kubelet: its own, and those of cAdvisor.

Families of amounts that are not simulated, such as traffic and reads of disks, have the value 0.
"""

from typing import Final

from mockube.component_base.metrics import counter, exponential, gauge, histogram
from mockube.kubelet.pod_lifecycle.probe_totals import BUCKETS

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

# --- /metrics

_STATIC: Final = "static is true if the pod is not from the apiserver."
ACTIVE_PODS: Final = gauge("kubelet_active_pods", f"[ALPHA] Pods that have not ended. {_STATIC}", "static")
DESIRED_PODS: Final = gauge("kubelet_desired_pods", f"[ALPHA] Pods that are to run. {_STATIC}", "static")
NODE_NAME: Final = gauge("kubelet_node_name", "[ALPHA] The node's name. The count is always 1.", "node")
RUNNING_CONTAINERS: Final = gauge(
    "kubelet_running_containers", "[ALPHA] Containers, by state.", "container_state"
)
RUNNING_PODS: Final = gauge("kubelet_running_pods", "[ALPHA] Pods that have a running pod sandbox.")
START_TIME: Final = gauge(
    "process_start_time_seconds",
    "[ALPHA] Start time of the kubelet since unix epoch in seconds: the creation of its Node.",
)
POD_WORKER_DURATION: Final = histogram(
    "kubelet_pod_worker_duration_seconds",
    "[ALPHA] Duration of the synchronization of a pod in seconds, by operation.",
    _SECONDS,
    "operation_type",
)
_POD_START_BUCKETS: Final = (
    *(0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0, 300.0),
    *(360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0),
)
POD_START_DURATION: Final = histogram(
    "kubelet_pod_start_duration_seconds",
    "[ALPHA] Time from the first sight of a pod until it runs in seconds.",
    _POD_START_BUCKETS,
)
POD_START_SLI_DURATION: Final = histogram(
    "kubelet_pod_start_sli_duration_seconds",
    "[ALPHA] Time from the creation of a pod until it runs in seconds, without image pulls.",
    _POD_START_BUCKETS,
)
POD_START_TOTAL_DURATION: Final = histogram(
    "kubelet_pod_start_total_duration_seconds",
    "[ALPHA] Time from the creation of a pod until it runs in seconds.",
    _POD_START_BUCKETS,
)
RUNTIME_OPERATIONS: Final = counter(
    "kubelet_runtime_operations_total", "[ALPHA] Operations of the simulated runtime.", "operation_type"
)
RUNTIME_OPERATION_DURATION: Final = histogram(
    "kubelet_runtime_operations_duration_seconds",
    "[ALPHA] Duration of operations of the simulated runtime in seconds; they take no time.",
    exponential(0.005, 2.5, 14),
    "operation_type",
)
CGROUP_MANAGER_DURATION: Final = histogram(
    "kubelet_cgroup_manager_duration_seconds",
    "[ALPHA] Duration of operations on pods' control groups in seconds; simulated ones take no time.",
    _SECONDS,
    "operation_type",
)
PLEG_RELIST_DURATION: Final = histogram(
    "kubelet_pleg_relist_duration_seconds",
    "[ALPHA] Duration of relists of pods in seconds; simulated ones take no time.",
    _SECONDS,
)
PLEG_RELIST_INTERVAL: Final = histogram(
    "kubelet_pleg_relist_interval_seconds",
    "[ALPHA] Interval between relists of pods in seconds; that of simulated ones is one second.",
    _SECONDS,
)
STORAGE_OPERATION_DURATION: Final = histogram(
    "storage_operation_duration_seconds",
    "[BETA] Duration of mounts of volumes in seconds; simulated ones take no time.",
    (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0),
    *("volume_plugin", "operation_name", "status", "migrated"),
)
TOTAL_VOLUMES: Final = gauge(
    "volume_manager_total_volumes",
    "[ALPHA] Volumes of the node's pods: the desired ones, and the mounted ones.",
    *("plugin_name", "state"),
)
_CLAIM: Final = ("namespace", "persistentvolumeclaim")
VOLUME_CAPACITY: Final = gauge(
    "kubelet_volume_stats_capacity_bytes", "[ALPHA] Capacity of a volume in bytes.", *_CLAIM
)
VOLUME_AVAILABLE: Final = gauge(
    "kubelet_volume_stats_available_bytes", "[ALPHA] Available bytes of a volume.", *_CLAIM
)
VOLUME_USED: Final = gauge(
    "kubelet_volume_stats_used_bytes", "[ALPHA] Used bytes of a volume; 0 in mockube.", *_CLAIM
)
VOLUME_INODES: Final = gauge("kubelet_volume_stats_inodes", "[ALPHA] Inodes of a volume.", *_CLAIM)
VOLUME_INODES_FREE: Final = gauge(
    "kubelet_volume_stats_inodes_free", "[ALPHA] Free inodes of a volume.", *_CLAIM
)
VOLUME_INODES_USED: Final = gauge(
    "kubelet_volume_stats_inodes_used", "[ALPHA] Used inodes of a volume; 0 in mockube.", *_CLAIM
)

# --- /metrics/cadvisor

_GROUP: Final = ("container", "id", "image", "name", "namespace", "pod")

CPU_USAGE: Final = counter(
    "container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.", *_GROUP, "cpu"
)
LAST_SEEN: Final = gauge("container_last_seen", "Last time a container was seen by the exporter", *_GROUP)
CONTAINER_START_TIME: Final = gauge(
    "container_start_time_seconds", "Start time of the container since unix epoch in seconds.", *_GROUP
)
MEMORY: Final = tuple(
    gauge(f"container_memory_{name}", text, *_GROUP)
    for name, text in (
        ("rss", "Size of RSS in bytes."),
        ("usage_bytes", "Current memory usage in bytes, including all memory."),
        ("working_set_bytes", "Current working set in bytes."),
    )
)
UNUSED_MEMORY: Final = tuple(
    gauge(f"container_memory_{name}", text, *_GROUP)
    for name, text in (
        ("cache", "Number of bytes of page cache memory; 0 in mockube."),
        ("swap", "Container swap usage in bytes; 0 in mockube."),
    )
)
CFS_PERIODS: Final = counter(
    "container_cpu_cfs_periods_total", "Number of elapsed enforcement period intervals.", *_GROUP
)
CFS_THROTTLED: Final = counter(
    "container_cpu_cfs_throttled_periods_total",
    "Number of throttled period intervals; 0 in mockube.",
    *_GROUP,
)
FILE_SYSTEM: Final = tuple(
    counter(f"container_fs_{name}", f"Cumulative count of {text}; 0 in mockube.", *_GROUP, "device")
    for name, text in (
        ("reads_bytes_total", "bytes read"),
        ("reads_total", "reads completed"),
        ("writes_bytes_total", "bytes written"),
        ("writes_total", "writes completed"),
    )
)
NETWORK: Final = tuple(
    counter(
        f"container_network_{direction}_{name}_total",
        f"Cumulative count of {text} {verb}; 0 in mockube.",
        *("id", "image", "interface", "name", "namespace", "pod"),
    )
    for direction, verb in (("receive", "received"), ("transmit", "transmitted"))
    for name, text in (
        ("bytes", "bytes"),
        ("errors", "errors while packets were"),
        ("packets", "packets"),
        ("packets_dropped", "packets dropped while they were"),
    )
)
SPEC_CPU_PERIOD: Final = gauge("container_spec_cpu_period", "CPU period of the container.", *_GROUP)
SPEC_CPU_QUOTA: Final = gauge("container_spec_cpu_quota", "CPU quota of the container.", *_GROUP)
SPEC_CPU_SHARES: Final = gauge("container_spec_cpu_shares", "CPU share of the container.", *_GROUP)
SPEC_MEMORY_LIMIT: Final = gauge(
    "container_spec_memory_limit_bytes", "Memory limit for the container.", *_GROUP
)
VERSION_INFO: Final = gauge(
    "cadvisor_version_info",
    "A metric with a constant '1' value labeled by kernel version, OS version, docker version and cadvisor version.",
    *("cadvisorRevision", "cadvisorVersion", "dockerVersion", "kernelVersion", "osVersion"),
)
_MACHINE: Final = ("boot_id", "machine_id", "system_uuid")
MACHINE_CORES: Final = gauge("machine_cpu_cores", "Number of logical CPU cores.", *_MACHINE)
MACHINE_MEMORY: Final = gauge("machine_memory_bytes", "Amount of memory installed on the machine.", *_MACHINE)

# --- /metrics/probes

_PROBE: Final = ("container", "namespace", "pod", "probe_type")
PROBE_DURATION: Final = histogram(
    "prober_probe_duration_seconds", "[ALPHA] Duration in seconds for a probe response.", BUCKETS, *_PROBE
)
PROBES: Final = counter(
    "prober_probe_total",
    "[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result.",
    *(*_PROBE, "pod_uid", "result"),
)

# --- /metrics/resource

_USAGE_LABELS: Final = {
    "container": ("container", "namespace", "pod"),
    "node": (),
    "pod": ("namespace", "pod"),
}
USAGE: Final = {
    subject: (
        counter(
            f"{subject}_cpu_usage_seconds_total",
            f"[STABLE] Cumulative cpu time consumed by the {subject} in core-seconds",
            *labels,
        ),
        gauge(
            f"{subject}_memory_working_set_bytes",
            f"[STABLE] Current working set of the {subject} in bytes",
            *labels,
        ),
    )
    for subject, labels in _USAGE_LABELS.items()
}
CONTAINER_STARTED: Final = gauge(
    "container_start_time_seconds",
    "[STABLE] Start time of the container since unix epoch in seconds",
    *_USAGE_LABELS["container"],
)
SCRAPE_ERROR: Final = gauge(
    "resource_scrape_error", "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise"
)
