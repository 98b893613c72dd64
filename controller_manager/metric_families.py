"""The metric families of single controllers: names, labels and buckets of kube-controller-manager.

A help text begins with the stability that upstream gives the family. Those of requests, queues and reflectors are in
`client/metrics/families.py`.
"""

from typing import Final

from mockube.component_base.metrics import counter, exponential, gauge, histogram

_MILLISECONDS: Final = exponential(0.001, 2, 15)

# --- controllers

_JOB: Final = "job_controller"
_JOB_LABELS: Final = ("completion_mode", "result", "action")
JOB_SYNCS: Final = counter(f"{_JOB}_job_syncs_total", "[STABLE] Reconciliations of Jobs.", *_JOB_LABELS)
JOB_SYNC_DURATION: Final = histogram(
    f"{_JOB}_job_sync_duration_seconds",
    "[STABLE] Duration of reconciliations of Jobs in seconds.",
    exponential(0.004, 2, 15),
    *_JOB_LABELS,
)
JOBS_FINISHED: Final = counter(
    f"{_JOB}_jobs_finished_total", "[STABLE] Finished Jobs.", "completion_mode", "result", "reason"
)
JOB_PODS_FINISHED: Final = counter(
    f"{_JOB}_job_pods_finished_total", "[STABLE] Finished pods of Jobs.", "completion_mode", "result"
)
JOB_FINISHED_INDEXES: Final = counter(
    f"{_JOB}_job_finished_indexes_total", "[STABLE] Finished indexes of Jobs.", "status", "backoffLimit"
)
JOB_PODS_CREATION: Final = counter(
    f"{_JOB}_job_pods_creation_total", "[ALPHA] Pods created for Jobs.", "reason", "status"
)
CRON_JOB_SKEW: Final = histogram(
    "cronjob_controller_job_creation_skew_duration_seconds",
    "[STABLE] Time from the schedule of a CronJob to the creation of its Job in seconds.",
    exponential(1, 2, 10),
)
TTL_DELETION: Final = histogram(
    "ttl_after_finished_controller_job_deletion_duration_seconds",
    "[ALPHA] Time from the end of a Job's lifetime to its deletion in seconds.",
    exponential(0.1, 2, 14),
)
DEVICE_EVICTIONS: Final = counter(
    "device_taint_eviction_controller_pod_deletions_total", "[ALPHA] Pods deleted because of tainted devices."
)
_HPA: Final = "horizontal_pod_autoscaler_controller"
HPA_RECONCILES: Final = counter(
    f"{_HPA}_reconciliations_total", "[BETA] Reconciliations of autoscalers.", "action", "error"
)
HPA_RECONCILE_DURATION: Final = histogram(
    f"{_HPA}_reconciliation_duration_seconds",
    "[BETA] Duration of reconciliations of autoscalers in seconds.",
    _MILLISECONDS,
    *("action", "error"),
)
HPA_COMPUTATIONS: Final = counter(
    f"{_HPA}_metric_computation_total",
    "[BETA] Computations of autoscalers' metrics.",
    *("action", "error", "metric_type"),
)
HPA_COMPUTATION_DURATION: Final = histogram(
    f"{_HPA}_metric_computation_duration_seconds",
    "[BETA] Duration of computations of autoscalers' metrics in seconds.",
    _MILLISECONDS,
    *("action", "error", "metric_type"),
)
HPA_NUMBER: Final = gauge(f"{_HPA}_num_horizontal_pod_autoscalers", "[ALPHA] Autoscalers.")
HPA_DESIRED: Final = gauge(
    f"{_HPA}_desired_replicas", "[ALPHA] Desired replicas of an autoscaler.", "namespace", "hpa_name"
)
_CLAIM_CREATES: Final = "[ALPHA] ResourceClaims that were created for pods."
CLAIM_CREATES: Final = counter(
    "dynamic_resource_allocation_resourceclaim_creates_total",
    _CLAIM_CREATES,
    *("status", "admin_access", "owner_api_group", "owner_api_kind"),
)
CLAIM_CREATES_UNTIL_1_36: Final = counter(
    "resourceclaim_controller_creates_total", _CLAIM_CREATES, "status", "admin_access"
)
_CLAIMS: Final = "[ALPHA] ResourceClaims, by allocation, admin access and source."
_CLAIM_LABELS: Final = ("allocated", "admin_access", "source")
CLAIMS: Final = gauge("dynamic_resource_allocation_resource_claims", _CLAIMS, *_CLAIM_LABELS)
CLAIMS_UNTIL_1_36: Final = gauge("resourceclaim_controller_resource_claims", _CLAIMS, *_CLAIM_LABELS)

# --- nodes

_NODES: Final = "node_collector"
NODE_EVICTIONS: Final = counter(
    f"{_NODES}_evictions_total", "[STABLE] Nodes whose pods were evicted, by zone.", "zone"
)
UNHEALTHY_NODES: Final = gauge(
    f"{_NODES}_unhealthy_nodes_in_zone", "[ALPHA] Nodes that are not ready, by zone.", "zone"
)
ZONE_HEALTH: Final = gauge(f"{_NODES}_zone_health", "[ALPHA] Healthy nodes in percent, by zone.", "zone")
ZONE_SIZE: Final = gauge(f"{_NODES}_zone_size", "[ALPHA] Nodes, by zone.", "zone")
ALL_NODES_HEALTH_DURATION: Final = histogram(
    f"{_NODES}_update_all_nodes_health_duration_seconds",
    "[ALPHA] Duration of the update of the health of all nodes in seconds.",
    exponential(0.01, 4, 8),
)
NODE_HEALTH_DURATION: Final = histogram(
    f"{_NODES}_update_node_health_duration_seconds",
    "[ALPHA] Duration of the update of the health of one node in seconds.",
    exponential(0.001, 4, 8),
)
