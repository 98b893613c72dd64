"""The metric families of clients: names, labels and buckets of client-go, and of controller-runtime for packs' controllers.

A help text begins with the stability that upstream gives the family. `mockube_*` and `informer_*` are our own.
"""

from typing import Final

from mockube.component_base.metrics import counter, exponential, gauge, histogram

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
