"""The flags of the programs in static pods of the control plane, and what these say of wrong ones. Pure.

Values are not checked: the programs that run in their place have been started with those of `mockube up`.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from posixpath import basename
from typing import Final

from msgspec import Struct

_NAMES: Final = {
    "kube-apiserver": """
        admission-control admission-control-config-file advertise-address aggregator-reject-forwarding-redirect
        allow-metric-labels allow-metric-labels-manifest allow-privileged anonymous-auth api-audiences apiserver-count
        audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst
        audit-log-batch-throttle-enable audit-log-batch-throttle-qps audit-log-compress audit-log-format audit-log-maxage
        audit-log-maxbackup audit-log-maxsize audit-log-mode audit-log-path audit-log-truncate-enabled
        audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-log-version audit-policy-file
        audit-webhook-batch-buffer-size audit-webhook-batch-initial-backoff audit-webhook-batch-max-size
        audit-webhook-batch-max-wait audit-webhook-batch-throttle-burst audit-webhook-batch-throttle-enable
        audit-webhook-batch-throttle-qps audit-webhook-config-file audit-webhook-initial-backoff audit-webhook-mode
        audit-webhook-truncate-enabled audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size
        audit-webhook-version authentication-config authentication-token-webhook-cache-ttl
        authentication-token-webhook-config-file authentication-token-webhook-version authorization-config authorization-mode
        authorization-policy-file authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
        authorization-webhook-config-file authorization-webhook-version bind-address cert-dir client-ca-file cloud-config
        cloud-provider contention-profiling coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
        coordinated-leadership-retry-period cors-allowed-origins debug-socket-path default-not-ready-toleration-seconds
        default-unreachable-toleration-seconds default-watch-cache-size delete-collection-workers disable-admission-plugins
        disable-http2-serving disabled-metrics egress-selector-config-file emulated-version emulation-forward-compatible
        enable-admission-plugins enable-aggregator-routing enable-bootstrap-token-auth enable-garbage-collector
        enable-logs-handler enable-priority-and-fairness encryption-provider-config encryption-provider-config-automatic-reload
        endpoint-reconciler-type etcd-cafile etcd-certfile etcd-compaction-interval etcd-count-metric-poll-period
        etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile etcd-prefix etcd-readycheck-timeout etcd-servers
        etcd-servers-overrides event-ttl external-hostname feature-gates goaway-chance help http2-max-streams-per-connection
        kubelet-certificate-authority kubelet-client-certificate kubelet-client-key kubelet-port kubelet-preferred-address-types
        kubelet-read-only-port kubelet-timeout kubernetes-service-node-port lease-reuse-duration-seconds livez-grace-period
        log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream
        logging-format max-connection-bytes-per-sec max-mutating-requests-inflight max-requests-inflight min-compatibility-version
        min-request-timeout oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url oidc-required-claim
        oidc-signing-algs oidc-username-claim oidc-username-prefix peer-advertise-ip peer-advertise-port peer-ca-file
        permit-address-sharing permit-port-sharing profiling proxy-client-cert-file proxy-client-key-file request-timeout
        requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers
        requestheader-uid-headers requestheader-username-headers runtime-config runtime-config-emulation-forward-compatible
        secure-port service-account-extend-token-expiration service-account-issuer service-account-jwks-uri
        service-account-key-file service-account-lookup service-account-max-token-expiration service-account-signing-endpoint
        service-account-signing-key-file service-cluster-ip-range service-node-port-range show-hidden-metrics-for-version
        shutdown-delay-duration shutdown-send-retry-after shutdown-watch-termination-grace-period storage-backend
        storage-initialization-timeout storage-media-type strict-transport-security-directives tls-cert-file tls-cipher-suites
        tls-curve-preferences tls-min-version tls-private-key-file tls-sni-cert-key token-auth-file tracing-config-file v version
        vmodule watch-cache watch-cache-sizes
    """,
    "kube-controller-manager": """
        allocate-node-cidrs allow-metric-labels allow-metric-labels-manifest allow-untagged-cloud
        attach-detach-reconcile-sync-period authentication-kubeconfig authentication-skip-lookup
        authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure authorization-always-allow-paths
        authorization-kubeconfig authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
        bind-address cert-dir cidr-allocator-type client-ca-file cloud-config cloud-provider cloud-provider-gce-lb-src-cidrs
        cluster-cidr cluster-name cluster-signing-cert-file cluster-signing-duration cluster-signing-key-file
        cluster-signing-kube-apiserver-client-cert-file cluster-signing-kube-apiserver-client-key-file
        cluster-signing-kubelet-client-cert-file cluster-signing-kubelet-client-key-file cluster-signing-kubelet-serving-cert-file
        cluster-signing-kubelet-serving-key-file cluster-signing-legacy-unknown-cert-file cluster-signing-legacy-unknown-key-file
        concurrent-cron-job-syncs concurrent-daemonset-syncs concurrent-deployment-syncs concurrent-device-taint-eviction-syncs
        concurrent-disruption-syncs concurrent-endpoint-syncs concurrent-ephemeralvolume-syncs concurrent-gc-syncs
        concurrent-horizontal-pod-autoscaler-syncs concurrent-job-syncs concurrent-namespace-syncs concurrent-rc-syncs
        concurrent-replicaset-syncs concurrent-resource-quota-syncs concurrent-resourceclaim-syncs
        concurrent-service-endpoint-syncs concurrent-service-syncs concurrent-serviceaccount-token-syncs
        concurrent-statefulset-syncs concurrent-ttl-after-finished-syncs concurrent-validating-admission-policy-status-syncs
        configure-cloud-routes contention-profiling controller-start-interval controllers deployment-controller-sync-period
        disable-attach-detach-reconcile-sync disable-force-detach-on-timeout disable-http2-serving disabled-metrics
        emulated-version emulation-forward-compatible enable-dynamic-provisioning enable-garbage-collector
        enable-hostpath-provisioner enable-leader-migration endpoint-updates-batch-period endpointslice-updates-batch-period
        external-cloud-volume-plugin feature-gates flex-volume-plugin-dir help horizontal-pod-autoscaler-cpu-initialization-period
        horizontal-pod-autoscaler-downscale-stabilization horizontal-pod-autoscaler-initial-readiness-delay
        horizontal-pod-autoscaler-sync-period horizontal-pod-autoscaler-tolerance http2-max-streams-per-connection kube-api-burst
        kube-api-content-type kube-api-qps kubeconfig large-cluster-size-threshold leader-elect leader-elect-lease-duration
        leader-elect-renew-deadline leader-elect-resource-lock leader-elect-resource-name leader-elect-resource-namespace
        leader-elect-retry-period leader-migration-config legacy-service-account-token-clean-up-period log-flush-frequency
        log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format master
        max-endpoints-per-slice min-compatibility-version min-resync-period mirroring-concurrent-service-endpoint-syncs
        mirroring-endpointslice-updates-batch-period mirroring-max-endpoints-per-subset namespace-sync-period node-cidr-mask-size
        node-cidr-mask-size-ipv4 node-cidr-mask-size-ipv6 node-eviction-rate node-monitor-grace-period node-monitor-period
        node-startup-grace-period node-sync-period permit-address-sharing permit-port-sharing profiling
        pv-recycler-increment-timeout-nfs pv-recycler-minimum-timeout-hostpath pv-recycler-minimum-timeout-nfs
        pv-recycler-pod-template-filepath-hostpath pv-recycler-pod-template-filepath-nfs pv-recycler-timeout-increment-hostpath
        pvclaimbinder-sync-period requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix
        requestheader-group-headers requestheader-uid-headers requestheader-username-headers resource-quota-sync-period
        root-ca-file route-reconciliation-period secondary-node-eviction-rate secure-port service-account-private-key-file
        service-cluster-ip-range show-hidden-metrics-for-version terminated-pod-gc-threshold tls-cert-file tls-cipher-suites
        tls-curve-preferences tls-min-version tls-private-key-file tls-sni-cert-key unhealthy-zone-threshold
        use-service-account-credentials v version vmodule volume-host-allow-local-loopback volume-host-cidr-denylist
    """,
    "kube-scheduler": """
        allow-metric-labels allow-metric-labels-manifest authentication-kubeconfig authentication-skip-lookup
        authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure authorization-always-allow-paths
        authorization-kubeconfig authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
        bind-address cert-dir client-ca-file config contention-profiling disable-http2-serving disabled-metrics emulated-version
        emulation-forward-compatible feature-gates help http2-max-streams-per-connection kube-api-burst kube-api-content-type
        kube-api-qps kubeconfig leader-elect leader-elect-lease-duration leader-elect-renew-deadline leader-elect-resource-lock
        leader-elect-resource-name leader-elect-resource-namespace leader-elect-retry-period log-flush-frequency
        log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format master
        min-compatibility-version permit-address-sharing permit-port-sharing pod-max-in-unschedulable-pods-duration profiling
        requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers
        requestheader-uid-headers requestheader-username-headers secure-port show-hidden-metrics-for-version tls-cert-file
        tls-cipher-suites tls-curve-preferences tls-min-version tls-private-key-file tls-sni-cert-key v version vmodule
        write-config-to
    """,
    "etcd": """
        advertise-client-urls auth-token auth-token-ttl auto-compaction-mode auto-compaction-retention auto-tls
        backend-batch-interval backend-batch-limit backend-bbolt-freelist-type bcrypt-cost bootstrap-defrag-threshold-megabytes
        cert-file cipher-suites client-cert-allowed-hostname client-cert-auth client-cert-file client-crl-file client-key-file
        compact-hash-check-enabled compact-hash-check-time compaction-batch-limit compaction-sleep-interval config-file
        corrupt-check-time cors data-dir discovery discovery-endpoints discovery-fallback discovery-proxy discovery-srv
        discovery-srv-name discovery-token distributed-tracing-address distributed-tracing-instance-id
        distributed-tracing-sampling-rate distributed-tracing-service-name downgrade-check-time election-timeout
        enable-distributed-tracing enable-grpc-gateway enable-lease-checkpoint enable-lease-checkpoint-persist enable-log-rotation
        enable-pprof enable-v2 experimental-bootstrap-defrag-threshold-megabytes experimental-compact-hash-check-enabled
        experimental-compact-hash-check-time experimental-compaction-batch-limit experimental-compaction-sleep-interval
        experimental-corrupt-check-time experimental-distributed-tracing-address experimental-distributed-tracing-instance-id
        experimental-distributed-tracing-sampling-rate experimental-distributed-tracing-service-name
        experimental-downgrade-check-time experimental-enable-distributed-tracing experimental-enable-lease-checkpoint
        experimental-enable-lease-checkpoint-persist experimental-initial-corrupt-check experimental-max-learners
        experimental-memory-mlock experimental-peer-skip-client-san-verification experimental-snapshot-catchup-entries
        experimental-stop-grpc-service-on-defrag experimental-txn-mode-write-with-shared-buffer
        experimental-warning-apply-duration experimental-warning-unary-request-duration
        experimental-watch-progress-notify-interval feature-gates force-new-cluster grpc-keepalive-interval
        grpc-keepalive-min-time grpc-keepalive-timeout h heartbeat-interval help host-whitelist initial-advertise-peer-urls
        initial-cluster initial-cluster-state initial-cluster-token initial-corrupt-check initial-election-tick-advance key-file
        listen-client-http-urls listen-client-urls listen-metrics-urls listen-peer-urls log-format log-level log-outputs
        log-rotation-config-json logger max-concurrent-streams max-learners max-request-bytes max-snapshots max-txn-ops max-wals
        memory-mlock metrics name peer-auto-tls peer-cert-allowed-cn peer-cert-allowed-hostname peer-cert-file
        peer-client-cert-auth peer-client-cert-file peer-client-key-file peer-crl-file peer-key-file
        peer-skip-client-san-verification peer-trusted-ca-file pre-vote quota-backend-bytes raft-read-timeout raft-write-timeout
        self-signed-cert-validity snapshot-catchup-entries snapshot-count socket-reuse-address socket-reuse-port
        stop-grpc-service-on-defrag strict-reconfig-check tls-max-version tls-min-version trusted-ca-file
        txn-mode-write-with-shared-buffer unsafe-no-fsync v2-deprecation version wal-dir warning-apply-duration
        warning-unary-request-duration watch-progress-notify-interval
    """,
}
FLAGS: Final[Mapping[str, frozenset[str]]] = {
    program: frozenset(names.split()) for program, names in _NAMES.items()
}
"""The names by program, in all minor releases that are served."""
_SHORT: Final = frozenset("hv")
_ETCD: Final = "etcd"
_ETCD_USAGE: Final = """\
Usage:

  etcd [flags]
    Start an etcd server.

  etcd --version
    Show the version of etcd.

  etcd -h | --help
    Show the help information about etcd.

  etcd --config-file
    Path to the server configuration file.
"""


class FlagProblem(Struct, frozen=True):
    """What a program writes before it ends."""

    exit_code: int
    lines: tuple[str, ...]


def flag_problem(argv: Sequence[str]) -> FlagProblem | None:
    """Return how a program ends because of its flags; None if it has none that are wrong, or is no program of the control plane."""
    program = basename(argv[0]) if argv else ""
    known = FLAGS.get(program)
    if known is None or (
        program == _ETCD and argv[1:2] and not argv[1].startswith("-")
    ):  # etcd gateway, grpc-proxy
        return None
    flags = takewhile(lambda word: word != "--", argv[1:])
    wrong = next((word for word in flags if _is_wrong(word, program, known)), None)
    if wrong is None:
        return None
    if program == _ETCD:
        name = wrong.lstrip("-").partition("=")[0]
        return FlagProblem(2, (f"flag provided but not defined: -{name}", *_ETCD_USAGE.splitlines()))
    if wrong.startswith("--"):
        return FlagProblem(1, (f"Error: unknown flag: {wrong.partition('=')[0]}",))
    return FlagProblem(1, (f"Error: unknown shorthand flag: '{wrong[1]}' in {wrong}",))


def _is_wrong(word: str, program: str, known: frozenset[str]) -> bool:
    if len(word) < 2 or not word.startswith("-"):
        return False
    if program == _ETCD:
        return word.lstrip("-").partition("=")[0] not in known
    if word.startswith("--"):
        return word[2:].partition("=")[0].replace("_", "-") not in known
    return word[1] not in _SHORT
