"""What can be set, a record for each section of the help. Names and defaults are kube-apiserver's where it has them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Struct

from mockube.apimachinery.flags import (
    Flag,
    address,
    boolean,
    host_patterns,
    hosts,
    natural,
    network,
    port,
    port_range,
    seconds,
    words,
)
from mockube.apimachinery.klog import Logging
from mockube.apiserver.admission.chain import NO_CONFIGURATIONS, Configurations
from mockube.apiserver.config.admission_configuration import admission_configuration
from mockube.apiserver.config.admission_plugins import service_addresses
from mockube.apiserver.config.authentication_configuration import (
    NO_FILE,
    AuthenticationFile,
    OpenIDConnect,
    authentication_configuration,
)
from mockube.apiserver.config.authorization import Authorization
from mockube.apiserver.config.features import Features
from mockube.apiserver.config.watch_cache import cache_sizes
from mockube.apiserver.registry.subresources.locations import PREFERRED_ADDRESSES


class Serving(Struct, frozen=True, kw_only=True):
    """Serving"""

    bind_address: Annotated[str, Flag("the address to listen on (127.0.0.1)", address)] = "127.0.0.1"
    secure_port: Annotated[int, Flag("the port for HTTPS; 0 picks a free one and prints it (6443)", port)] = (
        6443
    )
    http_port: Annotated[
        int | None,
        Flag("a port for HTTP without encryption, on 127.0.0.1 only; 0 picks a free one (none)", port),
    ] = None
    advertise_address: Annotated[
        str, Flag("the address at which pods find the server (the machine's own)", address)
    ] = ""
    cert_dir: Annotated[
        Path | None,
        Flag(
            "where generated certificates and keys are kept, for all servers over one store (DATA_DIR/pki, or else nowhere)",
            Path,
        ),
    ] = None
    tls_cert_file: Annotated[
        Path | None, Flag("the server's certificate, with its chain (generated)", Path)
    ] = None
    tls_private_key_file: Annotated[Path | None, Flag("the key of --tls-cert-file", Path)] = None
    proxy_client_cert_file: Annotated[
        Path | None,
        Flag("the certificate by which aggregated API servers know this one (generated)", Path),
    ] = None
    proxy_client_key_file: Annotated[Path | None, Flag("the key of --proxy-client-cert-file", Path)] = None
    tls_san: Annotated[
        tuple[str, ...],
        Flag(
            "more names and addresses of the server, for its generated certificate",
            hosts,
            repeats=True,
            metavar="HOSTS",
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        Flag(
            "more names that requests may be sent to, as HOST or *.DOMAIN, so that no other site reaches the server by a"
            " name of its own; *: any name (those of the certificate, localhost, and every IP address)",
            host_patterns,
            repeats=True,
            metavar="HOSTS",
        ),
    ] = ()
    write_kubeconfig: Annotated[Path | None, Flag("write a kubeconfig for an administrator there", Path)] = (
        None
    )
    write_manager_kubeconfig: Annotated[
        Path | None,
        Flag(
            "write a kubeconfig for mockube's controller manager there, and make the roles that it needs besides upstream's",
            Path,
        ),
    ] = None
    max_requests_inflight: Annotated[
        int, Flag("how many reads are served at a time; 0: no limit (400)", natural, metavar="N")
    ] = 400
    max_mutating_requests_inflight: Annotated[
        int, Flag("how many writes are served at a time; 0: no limit (200)", natural, metavar="N")
    ] = 200
    request_timeout: Annotated[
        float, Flag("how long a request that is no watch may take (1m0s)", seconds)
    ] = 60.0
    min_request_timeout: Annotated[
        int,
        Flag(
            "how long a watch lasts, or by chance up to twice as long, if its client does not say (1800)",
            natural,
            metavar="SECONDS",
        ),
    ] = 1800
    shutdown_delay_duration: Annotated[
        float, Flag("how long everything is still served once /readyz tells of the end (0s)", seconds)
    ] = 0.0


class Store(Struct, frozen=True, kw_only=True):
    """Store"""

    etcd_servers: Annotated[
        tuple[str, ...],
        Flag(
            "endpoints of an etcd, such as http://127.0.0.1:2379 (a store in this process)",
            words,
            repeats=True,
        ),
    ] = ()
    etcd_prefix: Annotated[str, Flag("what all keys begin with (/registry)")] = "/registry"
    etcd_cafile: Annotated[
        Path | None, Flag("who must have signed etcd's certificate", Path, metavar="FILE")
    ] = None
    etcd_certfile: Annotated[Path | None, Flag("the certificate to show to etcd", Path, metavar="FILE")] = (
        None
    )
    etcd_keyfile: Annotated[Path | None, Flag("the key of --etcd-certfile", Path, metavar="FILE")] = None
    etcd_compaction_interval: Annotated[
        float, Flag("how often old versions are forgotten; 0s: never (5m0s)", seconds)
    ] = 300.0
    watch_cache: Annotated[bool, Flag("keep all objects at hand; it is always so (true)", boolean)] = True
    default_watch_cache_size: Annotated[
        int, Flag("a cache has the size that it needs, whatever is said here (100)", natural)
    ] = 100
    watch_cache_sizes: Annotated[
        tuple[tuple[str, int], ...],
        Flag(
            "the same for some resources, as pods#100,leases.coordination.k8s.io#0", cache_sizes, repeats=True
        ),
    ] = ()
    event_ttl: Annotated[float, Flag("how long events are kept (1h0m0s)", seconds)] = 3600.0
    data_dir: Annotated[
        Path | None, Flag("keep the store in this process on disk there (memory only)", Path)
    ] = None
    snapshot: Annotated[
        Path | None,
        Flag(
            "begin with what `mockube snapshot save` wrote there, where the store is new (none)",
            Path,
            metavar="FILE",
        ),
    ] = None
    fsync: Annotated[
        bool, Flag("with --data-dir: wait for the disk before a write is answered (true)", boolean)
    ] = True


class Authentication(Struct, frozen=True, kw_only=True):
    """Authentication"""

    anonymous_auth: Annotated[
        bool, Flag("let everybody ask for health and version without credentials (true)", boolean)
    ] = True
    authentication_config: Annotated[
        AuthenticationFile,
        Flag(
            "an AuthenticationConfiguration: who needs no credentials, for which paths, and whose tokens are taken as"
            " whose (none)",
            authentication_configuration,
            metavar="FILE",
        ),
    ] = NO_FILE
    enable_bootstrap_token_auth: Annotated[
        bool, Flag("let Secrets in kube-system hold tokens by which nodes join the cluster (false)", boolean)
    ] = False
    client_ca_file: Annotated[
        Path | None,
        Flag("who signs certificates of clients: CN is the user, O the groups (the generated CA)", Path),
    ] = None
    requestheader_client_ca_file: Annotated[
        Path | None,
        Flag("who signs certificates of front proxies, whose headers name users (nobody)", Path),
    ] = None
    requestheader_allowed_names: Annotated[
        tuple[str, ...],
        Flag(
            "the front proxies that are believed, by the CN of their certificates (all)", words, repeats=True
        ),
    ] = ()
    requestheader_username_headers: Annotated[
        tuple[str, ...], Flag("headers that name a user, such as X-Remote-User", words, repeats=True)
    ] = ()
    requestheader_uid_headers: Annotated[
        tuple[str, ...], Flag("headers that tell a user's uid, such as X-Remote-Uid", words, repeats=True)
    ] = ()
    requestheader_group_headers: Annotated[
        tuple[str, ...],
        Flag("headers that name a user's groups, such as X-Remote-Group", words, repeats=True),
    ] = ()
    requestheader_extra_headers_prefix: Annotated[
        tuple[str, ...],
        Flag(
            "what headers begin with that tell more of a user, such as X-Remote-Extra-", words, repeats=True
        ),
    ] = ()
    authentication_token_webhook_config_file: Annotated[
        Path | None, Flag("where a webhook is that is asked about tokens, as a kubeconfig (none)", Path)
    ] = None
    authentication_token_webhook_version: Annotated[
        str, Flag("the version of the TokenReviews that it is sent (v1beta1)")
    ] = "v1beta1"  # noqa: S105 - a version
    authentication_token_webhook_cache_ttl: Annotated[
        float, Flag("how long its answers are known (2m0s)", seconds)
    ] = 120.0
    token_auth_file: Annotated[
        Path | None, Flag('users by token: lines of token,user,uid,"group,group"', Path)
    ] = None
    service_account_issuer: Annotated[
        tuple[str, ...],
        Flag(
            "who signs tokens of service accounts; of several the first signs (https://kubernetes.default.svc)",
            repeats=True,
        ),
    ] = ("https://kubernetes.default.svc",)
    service_account_extend_token_expiration: Annotated[
        bool, Flag("let the token that a pod is given be good for a year (true)", boolean)
    ] = True
    service_account_max_token_expiration: Annotated[
        float, Flag("how long a token of a service account is good at most; 0s: no limit (0s)", seconds)
    ] = 0.0
    service_account_key_file: Annotated[
        tuple[Path, ...],
        Flag(
            "keys, public or private, that tokens of service accounts may be signed with", Path, repeats=True
        ),
    ] = ()
    service_account_signing_key_file: Annotated[
        Path | None, Flag("the key to sign tokens of service accounts with (generated)", Path)
    ] = None
    api_audiences: Annotated[
        tuple[str, ...], Flag("whom tokens are for (the issuer)", words, repeats=True)
    ] = ()


class Kubelets(Struct, frozen=True, kw_only=True):
    """Kubelets"""

    kubelet_client_certificate: Annotated[
        Path | None, Flag("the certificate to show to kubelets (generated)", Path, metavar="FILE")
    ] = None
    kubelet_client_key: Annotated[
        Path | None, Flag("the key of --kubelet-client-certificate", Path, metavar="FILE")
    ] = None
    kubelet_certificate_authority: Annotated[
        Path | None, Flag("who must have signed kubelets' certificates (anybody)", Path, metavar="FILE")
    ] = None
    kubelet_timeout: Annotated[float, Flag("how long a connection to a kubelet may take (30s)", seconds)] = (
        30.0
    )
    kubelet_preferred_address_types: Annotated[
        tuple[str, ...],
        Flag(
            "which of a node's addresses is used, the first that it has"
            " (Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP)",
            words,
            repeats=True,
            metavar="TYPES",
        ),
    ] = PREFERRED_ADDRESSES


class Admission(Struct, frozen=True, kw_only=True):
    """Admission"""

    enable_admission_plugins: Annotated[
        tuple[str, ...],
        Flag("plugins that are to be on besides upstream's default ones (none)", words, repeats=True),
    ] = ()
    disable_admission_plugins: Annotated[
        tuple[str, ...], Flag("plugins that are to be off (none)", words, repeats=True)
    ] = ()
    admission_control_config_file: Annotated[
        Configurations,
        Flag(
            "an AdmissionConfiguration, with what EventRateLimit, ImagePolicyWebhook, PodNodeSelector, PodSecurity,"
            " PodTolerationRestriction and ResourceQuota are told (none)",
            admission_configuration,
            metavar="FILE",
        ),
    ] = NO_CONFIGURATIONS
    default_not_ready_toleration_seconds: Annotated[
        int, Flag("how long pods stay on a node that is not ready (300)", natural, metavar="SECONDS")
    ] = 300
    default_unreachable_toleration_seconds: Annotated[
        int, Flag("how long pods stay on a node that is unreachable (300)", natural, metavar="SECONDS")
    ] = 300
    webhook_service: Annotated[
        tuple[tuple[str, tuple[str, int]], ...],
        Flag(
            "where the Service of a webhook or an APIService is that leads to no process of this machine, as NAMESPACE/NAME=HOST:PORT",
            service_addresses,
            repeats=True,
            metavar="SERVICE",
        ),
    ] = ()
    allow_privileged: Annotated[bool, Flag("let containers be privileged (true)", boolean)] = True


class Services(Struct, frozen=True, kw_only=True):
    """Services"""

    service_cluster_ip_range: Annotated[
        str, Flag("where addresses of services are taken from (10.0.0.0/24)", network)
    ] = "10.0.0.0/24"
    service_node_port_range: Annotated[
        range, Flag("ports that services of type NodePort are given (30000-32767)", port_range)
    ] = range(30000, 32768)


class Auditing(Struct, frozen=True, kw_only=True):
    """Auditing"""

    audit_log_path: Annotated[
        Path | None, Flag("write down there who did what, a line of JSON for each request", Path)
    ] = None
    audit_policy_file: Annotated[
        Path | None, Flag("what is written down of which request (everything, without bodies)", Path)
    ] = None


SECTIONS: Final[Mapping[str, type[Any]]] = {
    "serving": Serving,
    "store": Store,
    "authentication": Authentication,
    "openid": OpenIDConnect,
    "authorization": Authorization,
    "kubelets": Kubelets,
    "admission": Admission,
    "services": Services,
    "auditing": Auditing,
    "features": Features,
    "logging": Logging,
}
"""By the name of each in the configuration, in the order of the help."""
