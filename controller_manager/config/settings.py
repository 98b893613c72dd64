"""The settings of a manager: a record for each section of the help, with names and defaults of kube-controller-manager."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Struct, field

from mockube.client.connection_options import ClientConnectionOptions
from mockube.component_base.flags import (
    Flag,
    address,
    boolean,
    comma_separated,
    network,
    networks,
    non_negative_int,
    port,
    positive,
    positive_duration,
    positive_int,
    seconds,
)
from mockube.component_base.klog import Logging
from mockube.component_base.local_ports import LocalPorts
from mockube.container_runtime import simulation_values
from mockube.kubelet.installation import NOTHING_INSTALLED, Installation, read_installation
from mockube.kubelet.node_pools.deprecated import CommonSettings
from mockube.kubelet.node_pools.flag import read_nodes
from mockube.kubelet.node_pools.pool import NodePools

from .features import Features
from .signing import CertificateSigningOptions


class Controllers(Struct, frozen=True, kw_only=True):
    """Controllers"""

    controllers: Annotated[
        tuple[str, ...],
        Flag(
            "controllers to run: * for all default ones, NAME for one, -NAME to exclude one (*)",
            comma_separated,
            repeats=True,
        ),
    ] = ("*",)
    packs: Annotated[
        tuple[str, ...] | None,
        Flag(
            "packs whose controllers run when their kinds are served (those of the API server)",
            comma_separated,
            repeats=True,
        ),
    ] = None
    scheduler_config: Annotated[
        Path | None,
        Flag(
            "file with a KubeSchedulerConfiguration: profiles and plugins of the scheduler (the default profile)",
            Path,
            metavar="FILE",
        ),
    ] = None
    concurrent_deployment_syncs: Annotated[int, Flag("deployments at a time (5)", positive_int)] = 5
    concurrent_replicaset_syncs: Annotated[int, Flag("replica sets at a time (5)", positive_int)] = 5
    concurrent_rc_syncs: Annotated[int, Flag("replication controllers at a time (5)", positive_int)] = 5
    concurrent_statefulset_syncs: Annotated[int, Flag("stateful sets at a time (5)", positive_int)] = 5
    concurrent_daemonset_syncs: Annotated[int, Flag("daemon sets at a time (2)", positive_int)] = 2
    concurrent_cron_job_syncs: Annotated[int, Flag("cron jobs at a time (5)", positive_int)] = 5
    concurrent_job_syncs: Annotated[int, Flag("jobs at a time (5)", positive_int)] = 5
    concurrent_disruption_syncs: Annotated[
        int, Flag("pod disruption budgets at a time (1)", positive_int)
    ] = 1
    concurrent_ttl_after_finished_syncs: Annotated[
        int, Flag("finished jobs to delete at a time (5)", positive_int)
    ] = 5
    concurrent_gc_syncs: Annotated[int, Flag("objects to collect at a time (20)", positive_int)] = 20
    concurrent_namespace_syncs: Annotated[int, Flag("namespaces at a time (10)", positive_int)] = 10
    concurrent_resource_quota_syncs: Annotated[int, Flag("quotas at a time (5)", positive_int)] = 5
    resource_quota_sync_period: Annotated[
        float, Flag("interval of full recalculations of quotas (5m0s)", seconds)
    ] = 300.0
    concurrent_validating_admission_policy_status_syncs: Annotated[
        int, Flag("policies whose types are checked at a time (5)", positive_int)
    ] = 5
    concurrent_horizontal_pod_autoscaler_syncs: Annotated[
        int, Flag("horizontal pod autoscalers at a time (5)", positive_int)
    ] = 5
    horizontal_pod_autoscaler_sync_period: Annotated[
        float, Flag("sync interval of horizontal pod autoscalers (15s)", seconds)
    ] = 15.0
    horizontal_pod_autoscaler_downscale_stabilization: Annotated[
        float, Flag("window of past recommendations below which nothing is scaled down (5m0s)", seconds)
    ] = 300.0
    horizontal_pod_autoscaler_tolerance: Annotated[
        float, Flag("tolerated deviation of a metric from its target, as a share (0.1)", positive)
    ] = 0.1
    horizontal_pod_autoscaler_cpu_initialization_period: Annotated[
        float, Flag("how long after a pod's start its CPU samples may be ignored (5m0s)", seconds)
    ] = 300.0
    horizontal_pod_autoscaler_initial_readiness_delay: Annotated[
        float, Flag("how long after a pod's start changes of readiness count as its first one (30s)", seconds)
    ] = 30.0
    concurrent_device_taint_eviction_syncs: Annotated[
        int, Flag("pods with tainted devices at a time (8)", positive_int)
    ] = 8
    concurrent_resourceclaim_syncs: Annotated[
        int, Flag("claims of devices for pods at a time (50)", positive_int)
    ] = 50
    concurrent_endpoint_syncs: Annotated[int, Flag("services' endpoints at a time (5)", positive_int)] = 5
    concurrent_service_endpoint_syncs: Annotated[
        int, Flag("services' slices at a time (5)", positive_int)
    ] = 5
    min_resync_period: Annotated[
        float, Flag("minimum resync period; a random value up to twice as long is used (12h0m0s)", seconds)
    ] = 43200.0
    node_monitor_period: Annotated[float, Flag("interval of node monitoring (5s)", seconds)] = 5.0
    node_monitor_grace_period: Annotated[
        float, Flag("how long a node may miss its heartbeats before it is marked unhealthy (50s)", seconds)
    ] = 50.0
    node_eviction_rate: Annotated[
        float, Flag("nodes a second from which pods are evicted (0.1)", positive)
    ] = 0.1
    secondary_node_eviction_rate: Annotated[float, Flag("the same in an unhealthy zone (0.01)", positive)] = (
        0.01
    )
    unhealthy_zone_threshold: Annotated[
        float, Flag("share of unready nodes that makes a zone unhealthy (0.55)", positive)
    ] = 0.55
    large_cluster_size_threshold: Annotated[
        int, Flag("number of nodes up to which an unhealthy zone gets no evictions (50)", non_negative_int)
    ] = 50
    terminated_pod_gc_threshold: Annotated[
        int,
        Flag(
            "number of terminated pods above which the oldest are deleted; 0: never (12500)", non_negative_int
        ),
    ] = 12500
    controller_shutdown_timeout: Annotated[
        float, Flag("how long controllers may finish their current keys at shutdown (10s)", seconds)
    ] = 10.0
    legacy_service_account_token_clean_up_period: Annotated[
        float,
        Flag(
            "how long a token in a Secret may be unused before it is deleted (8760h0m0s)", positive_duration
        ),
    ] = 31_536_000.0
    service_account_private_key_file: Annotated[
        Path | None,
        Flag(
            "private key that signs tokens in Secrets (the API server's, if both are started together)", Path
        ),
    ] = None
    root_ca_file: Annotated[
        Path | None, Flag("CA bundle for pods, in each namespace's ConfigMap (the kubeconfig's)", Path)
    ] = None


class Networks(Struct, frozen=True, kw_only=True):
    """Addresses"""

    allocate_node_cidrs: Annotated[
        bool | None,
        Flag("allocate a pod CIDR for each node (true with simulated nodes)", boolean),
    ] = None
    cluster_cidr: Annotated[
        tuple[str, ...],
        Flag(
            "range of the pod CIDRs; two with a comma for dual stack (10.128.0.0/9 with simulated nodes)",
            networks,
            metavar="CIDR",
        ),
    ] = ()
    service_cluster_ip_range: Annotated[
        tuple[str, ...],
        Flag("range of Services, which is excluded from the pod CIDRs (none)", networks, metavar="CIDR"),
    ] = ()
    node_cidr_mask_size: Annotated[
        int,
        Flag("prefix length of a pod CIDR, for a single family of addresses (24, or 64)", non_negative_int),
    ] = 0
    node_cidr_mask_size_ipv4: Annotated[
        int,
        Flag(
            "the same for IPv4 (24; without --cluster-cidr 21, so that a node has room for 1100 pods, "
            "or up to 23 if there are more than 4096 nodes)",
            non_negative_int,
        ),
    ] = 0
    node_cidr_mask_size_ipv6: Annotated[int, Flag("the same for IPv6 (64)", non_negative_int)] = 0
    load_balancer_cidr: Annotated[
        str,
        Flag(
            "range of the addresses of load balancers (198.18.0.0/15; `mockube up --publish` on Linux: 127.N.0.0/16)",
            network,
            metavar="CIDR",
        ),
    ] = "198.18.0.0/15"


class Publishing(Struct, frozen=True, kw_only=True):
    """Publishing"""

    publish: Annotated[
        bool,
        Flag(
            "serve Services, Ingresses and Gateways locally (false; `mockube up` on loopback: true)",
            boolean,
            topic="Nodes and pods",
        ),
    ] = False
    publish_address: Annotated[
        str,
        Flag(
            "address of what --publish serves; another than a loopback one lets other machines in (127.0.0.1)",
            address,
        ),
    ] = "127.0.0.1"
    publish_http_port: Annotated[
        int, Flag("port of Ingresses and Gateways, or 8080 or a free one if it is taken (80)", port)
    ] = 80
    publish_https_port: Annotated[
        int, Flag("the same for TLS, or 8443 or a free one if it is taken (443)", port)
    ] = 443


class LeaderElection(Struct, frozen=True, kw_only=True):
    """Leader election"""

    leader_elect: Annotated[
        bool,
        Flag("run controllers only while holding the lease of the leader (true)", boolean),
    ] = True
    leader_elect_lease_duration: Annotated[
        float, Flag("how long other managers wait for a lease that is not renewed (15s)", seconds)
    ] = 15.0
    leader_elect_renew_deadline: Annotated[
        float, Flag("how long the leader retries to renew the lease before it stops (10s)", seconds)
    ] = 10.0
    leader_elect_retry_period: Annotated[float, Flag("interval of retries (2s)", seconds)] = 2.0
    leader_elect_sole_candidate: Annotated[
        bool,
        Flag(
            "continue with all caches, without writes, when the lease is not renewed in time and no other manager holds it: "
            "for a cluster with one manager (false)",
            boolean,
        ),
    ] = False
    leader_elect_resource_name: Annotated[str, Flag("name of the lease (kube-controller-manager)")] = (
        "kube-controller-manager"
    )
    leader_elect_resource_namespace: Annotated[str, Flag("namespace of the lease (kube-system)")] = (
        "kube-system"
    )


class SecureServing(Struct, frozen=True, kw_only=True):
    """Serving"""

    bind_address: Annotated[
        str,
        Flag(
            "address of health and metrics; without --client-ca-file, only a loopback address is "
            "allowed (127.0.0.1)",
            address,
        ),
    ] = "127.0.0.1"
    secure_port: Annotated[int, Flag("HTTPS port; 0: none (10257)", port)] = 10257
    metrics_port: Annotated[
        int | None,
        Flag("port for unencrypted HTTP, on this machine only; 0 chooses a free one (none)", port),
    ] = None
    tls_cert_file: Annotated[Path | None, Flag("certificate chain (generated at each start)", Path)] = None
    tls_private_key_file: Annotated[Path | None, Flag("the key of --tls-cert-file", Path)] = None
    client_ca_file: Annotated[
        Path | None,
        Flag("CA of client certificates; everything but health needs one (none)", Path),
    ] = None
    write_component_urls: Annotated[
        Path | None,
        Flag("write the health URLs of manager and scheduler to this file (none)", Path, metavar="FILE"),
    ] = None


class Simulation(Struct, frozen=True, kw_only=True):
    """Simulation"""

    simulate_nodes: Annotated[
        NodePools,
        Flag(
            "nodes to simulate, with their pods: a number, pools such as cpu=4,memory=16Gi:3 with commas between them, "
            "or a file of pools; 0: none (0)",
            read_nodes,
            metavar="NODES",
            alias="nodes",
        ),
    ] = NodePools()
    stages: Annotated[
        tuple[Path, ...],
        Flag(
            "kwok's Stages for nodes and pods (built in)",
            Path,
            metavar="FILE",
            repeats=True,
            topic="Nodes and pods",
        ),
    ] = ()
    kubelet_address: Annotated[
        str,
        Flag("address of the simulated kubelets' server for logs, exec and so on (127.0.0.1)", address),
    ] = "127.0.0.1"
    kubelet_port: Annotated[
        int, Flag("port of the simulated kubelets' server; 0 chooses a free one (0)", port)
    ] = 0
    simulate_kubelet_details: Annotated[
        bool,
        Flag(
            "write events, ids and final statuses of simulated pods, which kwok does not (true)",
            boolean,
        ),
    ] = True
    allow_host_access: Annotated[
        bool,
        Flag(
            "allow kwok's Logs, Attach, Exec and PortForward objects to use files, commands and "
            "ports of this machine (false)",
            boolean,
        ),
    ] = False
    container_runtime: Annotated[
        str,
        Flag(
            "simulated, or process: see --images (simulated)",
            simulation_values.parse_container_runtime,
            topic="Nodes and pods",
        ),
    ] = simulation_values.SIMULATED
    pod_network: Annotated[
        str,
        Flag(
            "network of pods whose containers run as processes: namespaces gives each its own address, loopback and ports, "
            "host has those of this machine, and auto is namespaces where the kernel permits them (auto)",
            simulation_values.parse_pod_network,
        ),
    ] = simulation_values.AUTO
    pod_logs_dir: Annotated[
        Path | None,
        Flag(
            "folder of the logs of containers that run as processes, where another run of this program finds them "
            "(a temporary one)",
            Path,
            metavar="DIR",
        ),
    ] = None
    unknown_programs: Annotated[
        str,
        Flag(
            "what becomes of programs of simulated containers that are not simulated: assume that they work, let the "
            "container wait until they are, or fail with exit code 127; the annotation mockube.dev/unknown-programs of a "
            "pod or its namespace takes precedence (assume)",
            simulation_values.parse_unknown_programs,
        ),
    ] = simulation_values.ASSUME
    simulate_unknown_programs: Annotated[
        str,
        Flag(
            "older name of --unknown-programs",
            simulation_values.parse_unknown_programs,
            deprecated="use --unknown-programs instead",
        ),
    ] = ""
    unknown_images: Annotated[
        str,
        Flag(
            "what becomes of containers whose images are not known: run, or fail, so that they cannot be pulled (run)",
            simulation_values.parse_unknown_images,
        ),
    ] = simulation_values.RUN
    simulated_images: Annotated[
        Path | None,
        Flag(
            "file with the behaviors of images",
            Path,
            metavar="FILE",
            deprecated="use --images instead",
        ),
    ] = None
    images: Annotated[
        Path | None,
        Flag(
            "how images run, and which as processes (none)",
            Path,
            metavar="FILE",
            topic="Nodes and pods",
        ),
    ] = None
    cluster_dns: Annotated[
        str,
        Flag(
            "address of the name server in simulated pods (the tenth of the API server's --service-cluster-ip-range, "
            f"if both are started together, or else {simulation_values.CLUSTER_DNS})",
            address,
        ),
    ] = simulation_values.CLUSTER_DNS
    installation: Annotated[
        Installation,
        Flag(
            "file with what kubeadm has installed: control-plane nodes, files of nodes, logs of programs; `mockube up` writes it (none)",
            read_installation,
            metavar="FILE",
        ),
    ] = NOTHING_INSTALLED

    @property
    def node_count(self) -> int:
        """The number of simulated nodes, with those of the control plane."""
        return self.simulate_nodes.count + self.installation.control_planes


DEPRECATED: Final = "deprecated"
SECTIONS: Final[Mapping[str, type[Any]]] = {
    "server": ClientConnectionOptions,
    "controllers": Controllers,
    "networks": Networks,
    "publishing": Publishing,
    "signing": CertificateSigningOptions,
    "leading": LeaderElection,
    "serving": SecureServing,
    "features": Features,
    "simulation": Simulation,
    DEPRECATED: CommonSettings,
    "logging": Logging,
}
"""The records by their field in `Config`, in the order of the help. Those that are deprecated are replaced by others."""


class Config(Struct, frozen=True, kw_only=True):
    server: ClientConnectionOptions = field(default_factory=ClientConnectionOptions)
    controllers: Controllers = field(default_factory=Controllers)
    networks: Networks = field(default_factory=Networks)
    publishing: Publishing = field(default_factory=Publishing)
    signing: CertificateSigningOptions = field(default_factory=CertificateSigningOptions)
    leading: LeaderElection = field(default_factory=LeaderElection)
    serving: SecureServing = field(default_factory=SecureServing)
    features: Features = field(default_factory=Features)
    simulation: Simulation = field(default_factory=Simulation)
    logging: Logging = field(default_factory=Logging)
    packs: Mapping[str, Any] = field(default_factory=dict)
    """The values of the flags of packs that have some, by the pack's name."""
    scheduler_plugins: tuple[Any, ...] = ()
    """Plugins of the scheduler, which only a program in the same process can pass."""
    local_ports: LocalPorts | None = None
    """Where the simulated kubelets note their address, which only a program in the same process can read."""
    ignored: tuple[str, ...] = ()
    """The flags of kube-controller-manager that were set and have no effect."""
