"""The metric families of the manager: the names, labels and buckets of kube-controller-manager and kube-scheduler.

Those of requests, queues and reflectors are client-go's, those of packs' controllers controller-runtime's. A help text
begins with the stability that upstream gives the family. `mockube_*` and `informer_*` are our own.
"""

from typing import Final

from mockube.component_base.metrics import counter, exponential, gauge, histogram

_MILLISECONDS: Final = exponential(0.001, 2, 15)

# --- requests to the API server

_REQUEST_BUCKETS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_SIZE_BUCKETS: Final = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
REST_REQUESTS: Final = counter(
    "rest_client_requests_total", "[ALPHA] Requests, by code, method and host.", "code", "method", "host"
)
REST_RETRIES: Final = counter(
    "rest_client_request_retries_total", "[ALPHA] Retries of requests.", "code", "verb", "host"
)
REST_DURATION: Final = histogram(
    "rest_client_request_duration_seconds",
    "[ALPHA] Duration of requests in seconds.",
    _REQUEST_BUCKETS,
    *("verb", "host"),
)
REST_RATE_LIMITER: Final = histogram(
    "rest_client_rate_limiter_duration_seconds",
    "[ALPHA] How long requests waited for the client's rate limit in seconds.",
    _REQUEST_BUCKETS,
    *("verb", "host"),
)
REST_REQUEST_SIZE: Final = histogram(
    "rest_client_request_size_bytes",
    "[ALPHA] Size of the bodies of requests in bytes.",
    _SIZE_BUCKETS,
    *("verb", "host"),
)
REST_RESPONSE_SIZE: Final = histogram(
    "rest_client_response_size_bytes",
    "[ALPHA] Size of the bodies of responses in bytes.",
    _SIZE_BUCKETS,
    *("verb", "host"),
)

# --- reflectors and informers

REFLECTOR_LISTS: Final = counter(
    "reflector_lists_total", "Lists of the reflectors, including watches with initial events.", "name"
)
REFLECTOR_WATCHES: Final = counter("reflector_watches_total", "Watches of the reflectors.", "name")
REFLECTOR_SHORT_WATCHES: Final = counter(
    "reflector_short_watches_total", "Watches of the reflectors that ended at once.", "name"
)
REFLECTOR_REVISION: Final = gauge(
    "reflector_last_resource_version", "Last resource version that a reflector received.", "name"
)
INFORMER_UNUSABLE: Final = counter(
    "informer_unusable_objects_total",
    "Versions of objects that a cache or a handler could not process and skipped.",
    "name",
)
INFORMER_OBJECTS: Final = gauge("informer_objects", "Objects in the caches.", "name")
INFORMER_EVENTS: Final = counter(
    "informer_events_total", "Watch events that the reflectors received.", "name", "type"
)
INFORMER_LAG: Final = histogram(
    "informer_lag_seconds",
    "How long in seconds reconciliations waited until a cache contained their own writes.",
    (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
    "name",
)

# --- work queues

_QUEUE_BUCKETS: Final = exponential(1e-8, 10, 10)
QUEUE_DEPTH: Final = gauge("workqueue_depth", "[BETA] Keys that wait in a queue.", "name")
QUEUE_ADDS: Final = counter("workqueue_adds_total", "[BETA] Keys that were added to a queue.", "name")
QUEUE_RETRIES: Final = counter("workqueue_retries_total", "[BETA] Retries of keys.", "name")
QUEUE_UNFINISHED: Final = gauge(
    "workqueue_unfinished_work_seconds",
    "[BETA] Seconds that the keys in processing have taken until now.",
    "name",
)
QUEUE_LONGEST: Final = gauge(
    "workqueue_longest_running_processor_seconds",
    "[BETA] Seconds that the key that is processed for longest has taken until now.",
    "name",
)
QUEUE_DURATION: Final = histogram(
    "workqueue_queue_duration_seconds",
    "[BETA] How long in seconds keys waited in a queue.",
    _QUEUE_BUCKETS,
    "name",
)
WORK_DURATION: Final = histogram(
    "workqueue_work_duration_seconds",
    "[BETA] How long in seconds keys were processed.",
    _QUEUE_BUCKETS,
    "name",
)

# --- reconciliations of packs' controllers

_RUNTIME: Final = "controller_runtime"
RECONCILES: Final = counter(
    f"{_RUNTIME}_reconcile_total", "Reconciliations, by controller and result.", "controller", "result"
)
RECONCILE_ERRORS: Final = counter(
    f"{_RUNTIME}_reconcile_errors_total", "Reconciliations that failed.", "controller"
)
TERMINAL_RECONCILE_ERRORS: Final = counter(
    f"{_RUNTIME}_terminal_reconcile_errors_total",
    "Reconciliations that failed and are not retried; always 0 in mockube.",
    "controller",
)
RECONCILE_PANICS: Final = counter(
    f"{_RUNTIME}_reconcile_panics_total", "Reconciliations with an unexpected exception.", "controller"
)
RECONCILE_TIMEOUTS: Final = counter(
    f"{_RUNTIME}_reconcile_timeouts_total",
    "Reconciliations that took too long; always 0 in mockube.",
    "controller",
)
ACTIVE_WORKERS: Final = gauge(f"{_RUNTIME}_active_workers", "Workers that reconcile now.", "controller")
MAX_RECONCILES: Final = gauge(
    f"{_RUNTIME}_max_concurrent_reconciles", "Workers of the controller.", "controller"
)
RECONCILE_TIME: Final = histogram(
    f"{_RUNTIME}_reconcile_time_seconds",
    "Duration of reconciliations in seconds.",
    (
        *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
        *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0),
        *(30.0, 40.0, 50.0, 60.0),
    ),
    "controller",
)

# --- the process

LEADER: Final = gauge(
    "leader_election_master_status",
    "[ALPHA] Whether this process is the leader of the lease: 1 for the leader, 0 for a backup.",
    "name",
)
EVENTS_DROPPED: Final = counter(
    "mockube_events_dropped_total", "Events that were dropped because the queue was full."
)

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

# --- the scheduler

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
