"""The flags of kube-apiserver that this server does not have, which are ignored with a warning."""

_NAMES = """
    admission-control aggregator-reject-forwarding-redirect allow-metric-labels
    allow-metric-labels-manifest apiserver-count audit-log-batch-buffer-size
    audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst
    audit-log-batch-throttle-enable audit-log-batch-throttle-qps audit-log-compress audit-log-format
    audit-log-maxage audit-log-maxbackup audit-log-maxsize audit-log-mode
    audit-log-truncate-enabled audit-log-truncate-max-batch-size audit-log-truncate-max-event-size
    audit-log-version audit-webhook-batch-buffer-size audit-webhook-batch-initial-backoff
    audit-webhook-batch-max-size audit-webhook-batch-max-wait audit-webhook-batch-throttle-burst
    audit-webhook-batch-throttle-enable audit-webhook-batch-throttle-qps audit-webhook-config-file
    audit-webhook-initial-backoff audit-webhook-mode audit-webhook-truncate-enabled
    audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size audit-webhook-version
    contention-profiling
    coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
    coordinated-leadership-retry-period cors-allowed-origins debug-socket-path delete-collection-workers
    disable-http2-serving disabled-metrics egress-selector-config-file emulated-version
    emulation-forward-compatible enable-aggregator-routing
    enable-garbage-collector enable-logs-handler encryption-provider-config
    encryption-provider-config-automatic-reload endpoint-reconciler-type etcd-count-metric-poll-period
    etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-readycheck-timeout etcd-servers-overrides
    external-hostname goaway-chance http2-max-streams-per-connection kubelet-port kubelet-read-only-port
    kubernetes-service-node-port lease-reuse-duration-seconds
    livez-grace-period log-flush-frequency log-json-info-buffer-size log-json-split-stream
    log-text-info-buffer-size log-text-split-stream max-connection-bytes-per-sec min-compatibility-version
    peer-advertise-ip peer-advertise-port peer-ca-file permit-address-sharing permit-port-sharing profiling runtime-config-emulation-forward-compatible
    service-account-jwks-uri service-account-lookup service-account-signing-endpoint
    show-hidden-metrics-for-version shutdown-send-retry-after shutdown-watch-termination-grace-period
    storage-backend storage-initialization-timeout storage-media-type strict-transport-security-directives
    tls-curve-preferences tls-sni-cert-key vmodule
"""
IGNORED = tuple(_NAMES.split())

AUTHORIZATION_MODES = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")
"""The modes of kube-apiserver."""
