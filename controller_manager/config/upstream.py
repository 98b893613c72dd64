"""The flags of kube-controller-manager that are not implemented: they are ignored, with a warning."""

_NAMES = """
    allow-metric-labels allow-metric-labels-manifest allow-untagged-cloud
    attach-detach-reconcile-sync-period authentication-kubeconfig authentication-skip-lookup
    authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure
    authorization-always-allow-paths authorization-kubeconfig authorization-webhook-cache-authorized-ttl
    authorization-webhook-cache-unauthorized-ttl cert-dir cidr-allocator-type cloud-config
    cloud-provider cloud-provider-gce-lb-src-cidrs cluster-name
    concurrent-ephemeralvolume-syncs
    concurrent-service-syncs concurrent-serviceaccount-token-syncs
    configure-cloud-routes contention-profiling controller-start-interval deployment-controller-sync-period
    disable-attach-detach-reconcile-sync disable-force-detach-on-timeout disable-http2-serving disabled-metrics
    emulated-version emulation-forward-compatible enable-dynamic-provisioning enable-garbage-collector
    enable-hostpath-provisioner enable-leader-migration endpoint-updates-batch-period
    endpointslice-updates-batch-period external-cloud-volume-plugin flex-volume-plugin-dir
    http2-max-streams-per-connection kube-api-content-type
    leader-elect-resource-lock leader-migration-config
    log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size
    log-text-split-stream max-endpoints-per-slice min-compatibility-version
    mirroring-concurrent-service-endpoint-syncs mirroring-endpointslice-updates-batch-period
    mirroring-max-endpoints-per-subset namespace-sync-period
    node-startup-grace-period node-sync-period permit-address-sharing
    permit-port-sharing profiling pv-recycler-increment-timeout-nfs pv-recycler-minimum-timeout-hostpath
    pv-recycler-minimum-timeout-nfs pv-recycler-pod-template-filepath-hostpath
    pv-recycler-pod-template-filepath-nfs pv-recycler-timeout-increment-hostpath pvclaimbinder-sync-period
    requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix
    requestheader-group-headers requestheader-uid-headers requestheader-username-headers
    route-reconciliation-period
    show-hidden-metrics-for-version tls-cipher-suites tls-curve-preferences
    tls-min-version tls-sni-cert-key vmodule volume-host-allow-local-loopback volume-host-cidr-denylist
"""
IGNORED = tuple(_NAMES.split())
REMOVED_IN = {"concurrent-service-syncs": "1.37"}
"""The flags that newer minor releases refuse, with the first of these."""
