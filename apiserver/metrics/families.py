"""The metric families of the API server: kube-apiserver's names, labels and buckets.

A help text begins with the stability that upstream gives the family. `mockube_*` are our own.
"""

from typing import Final

from mockube.component_base.metrics import Family, counter, exponential, gauge, histogram

# --- requests

REQUEST_LABELS: Final = (
    "verb",
    "dry_run",
    "group",
    "version",
    "resource",
    "subresource",
    "scope",
    "component",
)
_WITHOUT_DRY_RUN: Final = tuple(label for label in REQUEST_LABELS if label != "dry_run")
_SLI_BUCKETS: Final = (
    *(0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5),
    *(2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
_MILLISECONDS: Final = exponential(0.001, 2, 15)

REQUESTS: Final = counter(
    "apiserver_request_total",
    "[STABLE] Requests by verb, dry run, resource, scope, component and response code.",
    *REQUEST_LABELS,
    "code",
)
REQUEST_DURATION: Final = histogram(
    "apiserver_request_duration_seconds",
    "[STABLE] Duration of requests in seconds. A watch counts until it ends.",
    (0.005, 0.025, *_SLI_BUCKETS),
    *REQUEST_LABELS,
    hides_unused=True,
)
REQUEST_SLI_DURATION: Final = histogram(
    "apiserver_request_sli_duration_seconds",
    "[ALPHA] Duration of requests in seconds, without the time of admission webhooks.",
    _SLI_BUCKETS,
    *_WITHOUT_DRY_RUN,
    hides_unused=True,
)
RESPONSE_SIZES: Final = histogram(
    "apiserver_response_sizes",
    "[STABLE] Size of the responses to reads in bytes.",
    exponential(1000, 10, 7),
    *_WITHOUT_DRY_RUN,
    hides_unused=True,
)
REQUEST_BODY_SIZE: Final = histogram(
    "apiserver_request_body_size_bytes",
    "[ALPHA] Size of the bodies of writes in bytes.",
    tuple(50_000.0 + 100_000 * step for step in range(31)),
    *("group", "resource", "verb"),
    hides_unused=True,
)
REQUESTED_DEPRECATED_APIS: Final = gauge(
    "apiserver_requested_deprecated_apis",
    "[STABLE] Deprecated APIs that were requested, and the release that removes them.",
    *("group", "version", "resource", "subresource", "removed_release"),
)
CURRENT_INFLIGHT: Final = gauge(
    "apiserver_current_inflight_requests", "[STABLE] Requests in flight, by kind.", "request_kind"
)
CURRENT_INQUEUE: Final = gauge(
    "apiserver_current_inqueue_requests",
    "[ALPHA] Requests that wait in a queue, by kind. No request waits in mockube.",
    "request_kind",
)
LONGRUNNING: Final = gauge(
    "apiserver_longrunning_requests",
    "[STABLE] Open watches, and connections to nodes and pods.",
    *_WITHOUT_DRY_RUN,
)
REQUEST_ABORTS: Final = counter(
    "apiserver_request_aborts_total",
    "[ALPHA] Responses that were aborted before their end.",
    *("verb", "group", "version", "resource", "subresource", "scope"),
)
REQUEST_TERMINATIONS: Final = counter(
    "apiserver_request_terminations_total",
    "[ALPHA] Requests that the server ended to protect itself: too many in flight, or too slow.",
    *(*_WITHOUT_DRY_RUN, "code"),
)
FLOW_DISPATCHED: Final = counter(
    "apiserver_flowcontrol_dispatched_requests_total",
    "[BETA] Requests by flow schema and priority level.",
    *("priority_level", "flow_schema"),
)

# --- watches

TERMINATED_WATCHERS: Final = counter(
    "apiserver_terminated_watchers_total",
    "[ALPHA] Watches that were closed because the client did not read.",
    *("group", "resource"),
)
WATCH_EVENTS: Final = counter(
    "apiserver_watch_events_total", "[BETA] Events sent to watches.", "group", "version", "resource"
)
WATCH_EVENT_SIZES: Final = histogram(
    "apiserver_watch_events_sizes",
    "[BETA] Size of the events sent to watches in bytes.",
    exponential(1024, 2, 8),
    *("group", "version", "resource"),
    hides_unused=True,
)
CACHE_REVISION: Final = gauge(
    "apiserver_watch_cache_resource_version",
    "[ALPHA] Revision of the watch cache.",
    *("group", "resource"),
)

# --- authentication, impersonation and authorization

AUTHENTICATED_USERS: Final = counter(
    "authenticated_user_requests", "[ALPHA] Authenticated requests, by username.", "username"
)
AUTHENTICATION_ATTEMPTS: Final = counter(
    "authentication_attempts", "[ALPHA] Authentications, by result.", "result"
)
AUTHENTICATION_DURATION: Final = histogram(
    "authentication_duration_seconds",
    "[ALPHA] Duration of authentications in seconds, by result.",
    _MILLISECONDS,
    "result",
    hides_unused=True,
)
AUTHORIZATION_ATTEMPTS: Final = counter(
    "authorization_attempts_total", "[ALPHA] Authorizations, by result.", "result"
)
AUTHORIZATION_DURATION: Final = histogram(
    "authorization_duration_seconds",
    "[ALPHA] Duration of authorizations in seconds, by result.",
    _MILLISECONDS,
    "result",
    hides_unused=True,
)
AUTHORIZATION_DECISIONS: Final = counter(
    "apiserver_authorization_decisions_total",
    "[ALPHA] Decisions of authorizers, by their type and name.",
    *("type", "name", "decision"),
)
IMPERSONATION_ATTEMPTS: Final = counter(
    "apiserver_impersonation_attempts_total", "[ALPHA] Impersonation attempts.", "mode", "decision"
)
IMPERSONATION_DURATION: Final = histogram(
    "apiserver_impersonation_attempts_duration_seconds",
    "[ALPHA] Duration of impersonation attempts in seconds.",
    _MILLISECONDS,
    *("mode", "decision"),
)
IMPERSONATION_CHECKS: Final = counter(
    "apiserver_impersonation_authorization_attempts_total",
    "[ALPHA] Authorization checks of impersonation attempts.",
    *("mode", "decision"),
)
IMPERSONATION_CHECK_DURATION: Final = histogram(
    "apiserver_impersonation_authorization_attempts_duration_seconds",
    "[ALPHA] Duration of authorization checks of impersonation attempts in seconds.",
    _MILLISECONDS,
    *("mode", "decision"),
)
TOKEN_USES: Final = {
    name: counter(f"serviceaccount_{name}_total", f"[{stability}] Service account tokens used: {text}.")
    for name, stability, text in (
        ("legacy_tokens", "BETA", "legacy ones"),
        ("stale_tokens", "BETA", "projected ones that should have been renewed"),
        ("legacy_manual_token_uses", "ALPHA", "legacy ones that users created"),
        ("legacy_auto_token_uses", "ALPHA", "legacy ones that a controller created"),
        ("invalid_legacy_auto_token_uses", "ALPHA", "invalid legacy ones that a controller created"),
        ("valid_tokens", "BETA", "valid projected ones"),
    )
}
_TOKEN_CACHE_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TOKEN_CACHE_REQUESTS: Final = counter(
    "authentication_token_cache_request_total", "[ALPHA] Requests to the token cache.", "status"
)
TOKEN_CACHE_FETCHES: Final = counter(
    "authentication_token_cache_fetch_total", "[ALPHA] Tokens that were not in the cache.", "status"
)
TOKEN_CACHE_ACTIVE: Final = gauge(
    "authentication_token_cache_active_fetch_count", "[ALPHA] Tokens that are being checked.", "status"
)
TOKEN_CACHE_DURATION: Final = histogram(
    "authentication_token_cache_request_duration_seconds",
    "[ALPHA] Duration of requests to the token cache in seconds.",
    _TOKEN_CACHE_BUCKETS,
    "status",
    hides_unused=True,
)
_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR
CLIENT_CERTIFICATE_EXPIRATION: Final = histogram(
    "apiserver_client_certificate_expiration_seconds",
    "[ALPHA] Remaining lifetime of the certificates of requests in seconds.",
    (
        *(0.0, _HOUR / 2, _HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR),
        *(days * _DAY for days in (1, 2, 4, 7, 30, 90, 180, 360)),
    ),
)
_JWT: Final = "apiserver_authentication_jwt_authenticator"
JWT_LATENCY: Final = histogram(
    f"{_JWT}_latency_seconds",
    "[ALPHA] Duration of authentications by JWT in seconds, of tokens that were not in the cache.",
    (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    *("result", "jwt_issuer_hash"),
)
JWT_FETCHED: Final = gauge(
    f"{_JWT}_jwks_fetch_last_timestamp_seconds",
    "[ALPHA] Time of the last fetch of an issuer's keys, by result.",
    *("result", "jwt_issuer_hash", "apiserver_id_hash"),
)
JWT_KEY_SETS: Final = gauge(
    f"{_JWT}_jwks_fetch_last_key_set_info",
    "[ALPHA] The last keys of an issuer, by their digest.",
    *("jwt_issuer_hash", "apiserver_id_hash", "hash"),
)
_AUTHORIZATION: Final = "apiserver_authorization"
WEBHOOK_EVALUATIONS: Final = counter(
    f"{_AUTHORIZATION}_webhook_evaluations_total",
    "[ALPHA] Requests to authorization webhooks.",
    *("name", "result"),
)
WEBHOOK_EVALUATION_DURATION: Final = histogram(
    f"{_AUTHORIZATION}_webhook_duration_seconds",
    "[ALPHA] Duration of requests to authorization webhooks in seconds.",
    _TOKEN_CACHE_BUCKETS,
    *("name", "result"),
)
WEBHOOK_EVALUATIONS_FAIL_OPEN: Final = counter(
    f"{_AUTHORIZATION}_webhook_evaluations_fail_open_total",
    "[ALPHA] Requests without a decision because an authorization webhook failed.",
    *("name", "result"),
)
MATCH_CONDITION_ERRORS: Final = counter(
    f"{_AUTHORIZATION}_match_condition_evaluation_errors_total",
    "[ALPHA] Errors of match conditions, by type and name of the authorizer.",
    *("type", "name"),
)
MATCH_CONDITION_EXCLUSIONS: Final = counter(
    f"{_AUTHORIZATION}_match_condition_exclusions_total",
    "[ALPHA] Requests that match conditions excluded, by type and name of the authorizer.",
    *("type", "name"),
)
MATCH_CONDITION_DURATION: Final = histogram(
    f"{_AUTHORIZATION}_match_condition_evaluation_seconds",
    "[ALPHA] Duration of match conditions in seconds, by type and name of the authorizer.",
    (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25),
    *("type", "name"),
)


def reloads(subsystem: str) -> tuple[Family, Family, Family]:
    """Return the families of a configuration file: its reloads, the time of the last one, and its digest."""
    prefix = f"apiserver_{subsystem}_config_controller"
    by_status = ("status", "apiserver_id_hash")
    return (
        counter(
            f"{prefix}_automatic_reloads_total", f"[ALPHA] Reloads of {subsystem} configuration.", *by_status
        ),
        gauge(
            f"{prefix}_automatic_reload_last_timestamp_seconds",
            f"[ALPHA] Time of the last reload of {subsystem} configuration.",
            *by_status,
        ),
        gauge(
            f"{prefix}_last_config_info",
            f"[ALPHA] The last {subsystem} configuration that was applied, by its digest.",
            *("apiserver_id_hash", "hash"),
        ),
    )


# --- admission and webhooks

_ADMISSION: Final = "apiserver_admission"
_ADMISSION_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
ADMISSION_STEP: Final = histogram(
    f"{_ADMISSION}_step_admission_duration_seconds",
    "[STABLE] Duration of the steps of admission in seconds.",
    _ADMISSION_BUCKETS,
    *("type", "operation", "rejected"),
    hides_unused=True,
)
ADMISSION_CONTROLLER: Final = histogram(
    f"{_ADMISSION}_controller_admission_duration_seconds",
    "[STABLE] Duration of admission plugins in seconds.",
    _ADMISSION_BUCKETS,
    *("name", "type", "operation", "rejected"),
    hides_unused=True,
)
WEBHOOK_DURATION: Final = histogram(
    f"{_ADMISSION}_webhook_admission_duration_seconds",
    "[STABLE] Duration of admission webhooks in seconds.",
    (*_ADMISSION_BUCKETS, 10.0, 25.0),
    *("name", "type", "operation", "rejected"),
)
WEBHOOK_REQUESTS: Final = counter(
    f"{_ADMISSION}_webhook_request_total",
    "[ALPHA] Requests to admission webhooks, by code.",
    *("name", "type", "operation", "code", "rejected"),
)
WEBHOOK_REJECTIONS: Final = counter(
    f"{_ADMISSION}_webhook_rejection_count",
    "[ALPHA] Writes that admission webhooks rejected, by kind of error and code.",
    *("name", "type", "operation", "error_type", "rejection_code"),
)
WEBHOOK_FAIL_OPEN: Final = counter(
    f"{_ADMISSION}_webhook_fail_open_count",
    "[ALPHA] Failures of admission webhooks that did not stop a write.",
    *("name", "type"),
)


def policy_checks(sort: str, *labels: str) -> tuple[Family, Family]:
    """Return the families of validating or mutating policies: the checks, and their durations."""
    prefix, text = f"apiserver_{sort}_admission_policy_check", "Checks of admission policies"
    names = ("policy", "policy_binding", "error_type", *labels)
    return (
        counter(f"{prefix}_total", f"[BETA] {text}.", *names),
        histogram(
            f"{prefix}_duration_seconds",
            f"[BETA] {text}, their durations in seconds.",
            (0.0000005, 0.001, 0.01, 0.1, 1.0),
            *names,
        ),
    )


VALIDATING_POLICIES: Final = policy_checks("validating", "enforcement_action")
MUTATING_POLICIES: Final = policy_checks("mutating")
CONVERSIONS: Final = counter(
    "apiserver_conversion_webhook_request_total",
    "[ALPHA] Requests to conversion webhooks.",
    *("result", "failure_type"),
)
CONVERSION_DURATION: Final = histogram(
    "apiserver_conversion_webhook_duration_seconds",
    "[ALPHA] Duration of conversion webhooks in seconds.",
    (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0),
    *("result", "failure_type"),
)
DEFINITION_CONVERSIONS: Final = histogram(
    "apiserver_crd_conversion_webhook_duration_seconds",
    "[ALPHA] Duration of conversion webhooks in seconds, by definition and versions.",
    _MILLISECONDS,
    *("crd_name", "from_version", "to_version", "succeeded"),
)

# --- aggregation

UNAVAILABLE_API_SERVICE: Final = gauge(
    "aggregator_unavailable_apiservice", "[ALPHA] Whether an APIService is unavailable.", "name"
)
UNAVAILABLE_API_SERVICE_TOTAL: Final = counter(
    "aggregator_unavailable_apiservice_total",
    "[ALPHA] How often APIServices became unavailable, by reason.",
    *("name", "reason"),
)

# --- audit

AUDIT_EVENTS: Final = counter("apiserver_audit_event_total", "[ALPHA] Events of the audit log.")
AUDIT_ERRORS: Final = counter(
    "apiserver_audit_error_total", "[ALPHA] Events that could not be written to the audit log.", "plugin"
)
AUDIT_LEVELS: Final = counter(
    "apiserver_audit_level_total", "[ALPHA] Requests by the level of the audit policy.", "level"
)
AUDIT_REJECTED: Final = counter(
    "apiserver_audit_requests_rejected_total",
    "[ALPHA] Requests that were rejected because the audit log failed; always 0 in mockube.",
)

# --- storage

STORAGE_OBJECTS: Final = gauge(
    "apiserver_storage_objects", "[STABLE] Stored objects, by resource.", "resource"
)
RESOURCE_OBJECTS: Final = gauge(
    "apiserver_resource_objects", "[ALPHA] Stored objects, by group and resource.", "group", "resource"
)
STORAGE_SIZE: Final = gauge(
    "apiserver_storage_size_bytes", "[STABLE] Size of the store in bytes.", "storage_cluster_id"
)
CONSISTENCY_CHECKS: Final = counter(
    "apiserver_storage_consistency_checks_total",
    "[ALPHA] Comparisons of the watch cache with the store, by result.",
    *("group", "resource", "status"),
)
DECODE_ERRORS: Final = counter(
    "apiserver_storage_decode_errors_total",
    "[ALPHA] Stored values that could not be read as the objects that their keys name.",
    *("group", "resource"),
)
ETCD_REQUESTS: Final = counter(
    "etcd_requests_total", "[ALPHA] Requests to the store.", "operation", "group", "resource"
)
ETCD_REQUEST_ERRORS: Final = counter(
    "etcd_request_errors_total",
    "[ALPHA] Requests to the store that failed.",
    *("operation", "group", "resource"),
)
ETCD_REQUEST_DURATION: Final = histogram(
    "etcd_request_duration_seconds",
    "[ALPHA] Duration of requests to the store in seconds.",
    (0.005, 0.025, *_SLI_BUCKETS),
    *("operation", "group", "resource"),
)
