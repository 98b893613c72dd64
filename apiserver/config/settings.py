"""The flags of the server, a record for each section of the help. Those of kube-apiserver have its names and defaults."""

import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Struct

from mockube.apiserver.admission.configurations import NO_CONFIGURATIONS, Configurations
from mockube.apiserver.outgoing import PREFERRED_ADDRESSES
from mockube.component_base.flags import (
    DEFAULT_SERVICE_NETWORKS,
    Flag,
    address,
    boolean,
    choice,
    comma_separated,
    host_patterns,
    hosts,
    non_negative_int,
    port,
    port_range,
    positive_int,
    seconds,
    service_networks,
)
from mockube.component_base.klog import Logging

from .admission_configuration import admission_configuration
from .admission_plugins import SIMULATED_WEBHOOKS, service_addresses
from .authentication_configuration import (
    NO_FILE,
    AuthenticationFile,
    OpenIDConnect,
    authentication_configuration,
)
from .authorization import AuthorizationOptions
from .features import Features
from .history import History, read_history
from .tls import cipher_suites, tls_version
from .tracing_configuration import TracingConfiguration, tracing_configuration

ENVIRONMENT: Final = "MOCKUBE_APISERVER"
"""The prefix of the environment variables that set flags."""
CONTROL_CHOICES: Final = ("on", "off", "unlisted")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")


def cache_sizes(text: str) -> tuple[tuple[str, int], ...]:
    """Return the sizes in a text such as `pods#100,leases.coordination.k8s.io#0`, as kube-apiserver parses them."""
    return tuple(_size(part) for part in text.split(",") if part)


def _size(text: str) -> tuple[str, int]:
    resource, *numbers = text.split("#")
    if len(numbers) != 1:
        raise ArgumentTypeError(f"invalid value of watch cache size: {text}")
    if _NUMBER.fullmatch(numbers[0]) is None:
        raise ArgumentTypeError(f"invalid size of watch cache size: {text}")
    size = int(numbers[0])
    if size < 0:
        raise ArgumentTypeError(f"watch cache size cannot be negative: {text}")
    return resource, size


class Serving(Struct, frozen=True, kw_only=True):
    """Serving"""

    bind_address: Annotated[str, Flag("address to listen on (127.0.0.1)", address, topic="Start")] = (
        "127.0.0.1"
    )
    secure_port: Annotated[int, Flag("HTTPS port; 0 chooses a free one (6443)", port, topic="Start")] = 6443
    http_port: Annotated[
        int | None,
        Flag("port for unencrypted HTTP, on 127.0.0.1 only; 0 chooses a free one (none)", port),
    ] = None
    advertise_address: Annotated[
        str, Flag("address at which pods reach the server (an address of this machine)", address)
    ] = ""
    cert_dir: Annotated[
        Path | None,
        Flag(
            "folder of generated certificates and keys, shared by all servers of one store "
            "(DATA_DIR/pki, or nowhere)",
            Path,
        ),
    ] = None
    tls_cert_file: Annotated[Path | None, Flag("the server's certificate chain (generated)", Path)] = None
    tls_private_key_file: Annotated[Path | None, Flag("the key of --tls-cert-file", Path)] = None
    tls_min_version: Annotated[
        str, Flag("oldest version of TLS, VersionTLS12 or VersionTLS13 (VersionTLS12)", tls_version)
    ] = ""
    tls_cipher_suites: Annotated[
        tuple[str, ...],
        Flag("cipher suites of TLS 1.2, by Go's names (OpenSSL's default)", cipher_suites, metavar="NAMES"),
    ] = ()
    proxy_client_cert_file: Annotated[
        Path | None,
        Flag("client certificate for aggregated API servers (generated)", Path),
    ] = None
    proxy_client_key_file: Annotated[Path | None, Flag("the key of --proxy-client-cert-file", Path)] = None
    tls_san: Annotated[
        tuple[str, ...],
        Flag(
            "additional names and addresses in the generated certificate",
            hosts,
            repeats=True,
            metavar="HOSTS",
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        Flag(
            "additional Host names that the server accepts, as HOST or *.DOMAIN, or * for any "
            "name; others are refused because of DNS rebinding (names of the certificate, "
            "localhost, and every IP address)",
            host_patterns,
            repeats=True,
            metavar="HOSTS",
        ),
    ] = ()
    write_kubeconfig: Annotated[
        Path | None, Flag("write an administrator's kubeconfig to this file", Path)
    ] = None
    write_manager_kubeconfig: Annotated[
        Path | None,
        Flag(
            "write the controller manager's kubeconfig to this file, and create the roles that it "
            "needs besides upstream's",
            Path,
        ),
    ] = None
    ready_after_controllers: Annotated[
        bool,
        Flag(
            "fail /readyz and /healthz until a controller manager has created the ServiceAccount and the ConfigMap that "
            "pods in namespace default need (false)",
            boolean,
        ),
    ] = False
    component_urls: Annotated[
        Path | None,
        Flag(
            "file of the controller manager's --write-component-urls, for ComponentStatuses (none: the usual ports)",
            Path,
            metavar="FILE",
        ),
    ] = None
    fork_socket: Annotated[
        Path | None,
        Flag("socket of the program that runs this server and starts its Forks (none)", Path, metavar="FILE"),
    ] = None
    max_requests_inflight: Annotated[
        int, Flag("maximum number of concurrent reads; 0: no limit (400)", non_negative_int, metavar="N")
    ] = 400
    max_mutating_requests_inflight: Annotated[
        int, Flag("maximum number of concurrent writes; 0: no limit (200)", non_negative_int, metavar="N")
    ] = 200
    request_timeout: Annotated[float, Flag("timeout of requests other than watches (1m0s)", seconds)] = 60.0
    min_request_timeout: Annotated[
        int,
        Flag(
            "minimum seconds of a watch without timeoutSeconds; a random value up to twice as long "
            "is used (1800)",
            non_negative_int,
            metavar="SECONDS",
        ),
    ] = 1800
    shutdown_delay_duration: Annotated[
        float, Flag("how long requests are still served after /readyz has started to fail (0s)", seconds)
    ] = 0.0


class StorageOptions(Struct, frozen=True, kw_only=True):
    """Store"""

    etcd_servers: Annotated[
        tuple[str, ...],
        Flag(
            "etcd, such as http://127.0.0.1:2379 (no etcd)",
            comma_separated,
            metavar="URLS",
            repeats=True,
            topic="Store",
        ),
    ] = ()
    etcd_prefix: Annotated[str, Flag("prefix of all keys (/registry)")] = "/registry"
    etcd_cafile: Annotated[Path | None, Flag("CA of etcd's certificate", Path, metavar="FILE")] = None
    etcd_certfile: Annotated[Path | None, Flag("client certificate for etcd", Path, metavar="FILE")] = None
    etcd_keyfile: Annotated[Path | None, Flag("the key of --etcd-certfile", Path, metavar="FILE")] = None
    etcd_compaction_interval: Annotated[
        float, Flag("interval of compaction, in the time of the machine; 0s: never (5m0s)", seconds)
    ] = 300.0
    history: Annotated[
        History | None,
        Flag(
            "how much past to keep: 1h, 9000, 64Mi or all",
            read_history,
            topic="Store",
        ),
    ] = None
    watch_cache: Annotated[
        bool, Flag("accepted for compatibility; the watch cache is always on (true)", boolean)
    ] = True
    default_watch_cache_size: Annotated[
        int,
        Flag("accepted for compatibility; the size of caches is not limited by it (100)", non_negative_int),
    ] = 100
    watch_cache_sizes: Annotated[
        tuple[tuple[str, int], ...],
        Flag(
            "accepted for compatibility, as pods#100,leases.coordination.k8s.io#0", cache_sizes, repeats=True
        ),
    ] = ()
    event_ttl: Annotated[float, Flag("lifetime of Events (1h0m0s)", seconds)] = 3600.0
    data_dir: Annotated[Path | None, Flag("folder of the store in this process (memory only)", Path)] = None
    snapshot: Annotated[
        Path | None,
        Flag(
            "snapshot with which a new store starts (none)",
            Path,
            metavar="FILE",
            topic="Store",
        ),
    ] = None
    fsync: Annotated[
        bool, Flag("with --data-dir: flush each write to disk before the response (true)", boolean)
    ] = True


class AuthenticationOptions(Struct, frozen=True, kw_only=True):
    """Authentication"""

    anonymous_auth: Annotated[
        bool,
        Flag(
            "allow requests without credentials; by default they may read health and version (true)", boolean
        ),
    ] = True
    authentication_config: Annotated[
        AuthenticationFile,
        Flag(
            "file with an AuthenticationConfiguration: anonymous access, and issuers of tokens (none)",
            authentication_configuration,
            metavar="FILE",
        ),
    ] = NO_FILE
    enable_bootstrap_token_auth: Annotated[
        bool, Flag("accept bootstrap tokens from Secrets in kube-system (false)", boolean)
    ] = False
    client_ca_file: Annotated[
        Path | None,
        Flag("CA of client certificates: CN is the user, O the groups (the generated CA)", Path),
    ] = None
    requestheader_client_ca_file: Annotated[
        Path | None,
        Flag("CA of front proxies, whose headers name users (none)", Path),
    ] = None
    requestheader_allowed_names: Annotated[
        tuple[str, ...],
        Flag("common names of trusted front proxies (all)", comma_separated, repeats=True),
    ] = ()
    requestheader_username_headers: Annotated[
        tuple[str, ...],
        Flag("headers with the user's name, such as X-Remote-User", comma_separated, repeats=True),
    ] = ()
    requestheader_uid_headers: Annotated[
        tuple[str, ...],
        Flag("headers with the user's uid, such as X-Remote-Uid", comma_separated, repeats=True),
    ] = ()
    requestheader_group_headers: Annotated[
        tuple[str, ...],
        Flag("headers with the user's groups, such as X-Remote-Group", comma_separated, repeats=True),
    ] = ()
    requestheader_extra_headers_prefix: Annotated[
        tuple[str, ...],
        Flag(
            "prefixes of headers with extra fields of the user, such as X-Remote-Extra-",
            comma_separated,
            repeats=True,
        ),
    ] = ()
    authentication_token_webhook_config_file: Annotated[
        Path | None, Flag("kubeconfig of the webhook that authenticates tokens (none)", Path)
    ] = None
    authentication_token_webhook_version: Annotated[str, Flag("version of its TokenReviews (v1beta1)")] = (
        "v1beta1"  # noqa: S105 - a version
    )
    authentication_token_webhook_cache_ttl: Annotated[
        float, Flag("how long its responses are cached (2m0s)", seconds)
    ] = 120.0
    token_auth_file: Annotated[
        Path | None, Flag('file of static tokens: lines of token,user,uid,"group,group"', Path)
    ] = None
    service_account_issuer: Annotated[
        tuple[str, ...],
        Flag(
            "issuer of service account tokens; new tokens have the first one "
            "(https://kubernetes.default.svc)",
            repeats=True,
        ),
    ] = ("https://kubernetes.default.svc",)
    service_account_extend_token_expiration: Annotated[
        bool, Flag("extend the lifetime of a pod's own token to a year (true)", boolean)
    ] = True
    service_account_max_token_expiration: Annotated[
        float, Flag("maximum lifetime of service account tokens; 0s: no limit (0s)", seconds)
    ] = 0.0
    service_account_key_file: Annotated[
        tuple[Path, ...],
        Flag("public or private keys that verify service account tokens", Path, repeats=True),
    ] = ()
    service_account_signing_key_file: Annotated[
        Path | None, Flag("private key that signs service account tokens (generated)", Path)
    ] = None
    api_audiences: Annotated[
        tuple[str, ...], Flag("accepted audiences of tokens (the issuer)", comma_separated, repeats=True)
    ] = ()


class Kubelets(Struct, frozen=True, kw_only=True):
    """Kubelets"""

    kubelet_client_certificate: Annotated[
        Path | None, Flag("client certificate for kubelets (generated)", Path, metavar="FILE")
    ] = None
    kubelet_client_key: Annotated[
        Path | None, Flag("the key of --kubelet-client-certificate", Path, metavar="FILE")
    ] = None
    kubelet_certificate_authority: Annotated[
        Path | None, Flag("CA of kubelets' certificates (not verified)", Path, metavar="FILE")
    ] = None
    kubelet_timeout: Annotated[float, Flag("timeout of connections to kubelets (30s)", seconds)] = 30.0
    kubelet_preferred_address_types: Annotated[
        tuple[str, ...],
        Flag(
            "order of preference of a node's address types "
            "(Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP)",
            comma_separated,
            repeats=True,
            metavar="TYPES",
        ),
    ] = PREFERRED_ADDRESSES


class AdmissionOptions(Struct, frozen=True, kw_only=True):
    """Admission"""

    enable_admission_plugins: Annotated[
        tuple[str, ...],
        Flag("plugins to enable besides the default ones (none)", comma_separated, repeats=True),
    ] = ()
    disable_admission_plugins: Annotated[
        tuple[str, ...], Flag("plugins to disable (none)", comma_separated, repeats=True)
    ] = ()
    admission_control_config_file: Annotated[
        Configurations,
        Flag(
            "file with an AdmissionConfiguration for EventRateLimit, ImagePolicyWebhook, "
            "PodNodeSelector, PodSecurity, PodTolerationRestriction and ResourceQuota (none)",
            admission_configuration,
            metavar="FILE",
        ),
    ] = NO_CONFIGURATIONS
    default_not_ready_toleration_seconds: Annotated[
        int,
        Flag(
            "default toleration seconds for nodes that are not ready (300)",
            non_negative_int,
            metavar="SECONDS",
        ),
    ] = 300
    default_unreachable_toleration_seconds: Annotated[
        int,
        Flag("default toleration seconds for unreachable nodes (300)", non_negative_int, metavar="SECONDS"),
    ] = 300
    webhook_service: Annotated[
        tuple[tuple[str, tuple[str, int]], ...],
        Flag(
            "address of the Service of a webhook or an APIService, if its endpoints are not "
            "reachable from here, as NAMESPACE/NAME=HOST:PORT",
            service_addresses,
            repeats=True,
            metavar="SERVICE",
        ),
    ] = ()
    simulated_webhooks: Annotated[str, SIMULATED_WEBHOOKS] = "allow"
    allow_privileged: Annotated[bool, Flag("allow privileged containers (true)", boolean)] = True


class Services(Struct, frozen=True, kw_only=True):
    """Services"""

    service_cluster_ip_range: Annotated[
        tuple[str, ...],
        Flag(
            "range of cluster IPs of Services; two with a comma for dual stack (10.0.0.0/24)",
            service_networks,
            metavar="CIDR",
        ),
    ] = DEFAULT_SERVICE_NETWORKS
    service_node_port_range: Annotated[
        range, Flag("range of node ports of Services (30000-32767)", port_range)
    ] = range(30000, 32768)


class Auditing(Struct, frozen=True, kw_only=True):
    """Auditing"""

    audit_log_path: Annotated[Path | None, Flag("audit log: a line of JSON for each event (none)", Path)] = (
        None
    )
    audit_policy_file: Annotated[Path | None, Flag("audit policy (all requests, without bodies)", Path)] = (
        None
    )


class Tracing(Struct, frozen=True, kw_only=True):
    """Traces"""

    tracing_config_file: Annotated[
        TracingConfiguration | None,
        Flag(
            "file with a TracingConfiguration: the collector of traces, and how many requests of a million are traced; it "
            "needs mockube's extra `tracing` (none)",
            tracing_configuration,
            metavar="FILE",
        ),
    ] = None


class Control(Struct, frozen=True, kw_only=True):
    """Control"""

    control: Annotated[
        str,
        Flag(
            "serve the API group control.mockube.dev: on, off, or unlisted, which discovery omits (unlisted if "
            "--bind-address is a loopback address, otherwise off; mockube up and run: on instead of unlisted)",
            choice(*CONTROL_CHOICES),
        ),
    ] = ""
    control_requests: Annotated[
        int,
        Flag(
            "maximum number of Requests of users that are recorded, and of those of controllers; 0: none (5000)",
            non_negative_int,
            metavar="N",
        ),
    ] = 5000
    control_request_bodies: Annotated[
        int,
        Flag(
            "maximum bytes of bodies that Requests of users have, and those of controllers; 0: no bodies (0)",
            non_negative_int,
            metavar="BYTES",
        ),
    ] = 0
    control_changes: Annotated[
        int,
        Flag("maximum number of Changes in a list (1000)", positive_int, metavar="N"),
    ] = 1000


class Kubeadm(Struct, frozen=True, kw_only=True):
    """Kubeadm"""

    kubeadm_pod_network: Annotated[
        str,
        Flag(
            "create in a new cluster what kubeadm creates, with this network of pods (nothing; mockube up sets it)",
            metavar="CIDR",
        ),
    ] = ""
    kubeadm_endpoint: Annotated[
        str, Flag("address of a control plane of several nodes in these objects (none)", metavar="HOST:PORT")
    ] = ""
    kubeadm_storage_class: Annotated[
        bool, Flag("create a default storage class with them (true)", boolean)
    ] = True


SECTIONS: Final[Mapping[str, type[Any]]] = {
    "serving": Serving,
    "store": StorageOptions,
    "authentication": AuthenticationOptions,
    "openid": OpenIDConnect,
    "authorization": AuthorizationOptions,
    "kubelets": Kubelets,
    "admission": AdmissionOptions,
    "services": Services,
    "auditing": Auditing,
    "tracing": Tracing,
    "control": Control,
    "kubeadm": Kubeadm,
    "features": Features,
    "logging": Logging,
}
"""By the field of `Config`, in the order of the help."""
