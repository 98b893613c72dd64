"""The manifests of the control plane's static pods, as kubeadm writes them for the flags in use. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import yaml
from msgspec import Struct

from mockube.apimachinery.kubeadm_releases import VERSIONS, Differences, differences
from mockube.component_base.version import version
from mockube.container_runtime.control_plane_flags import FLAGS
from mockube.kubelet.installation import CONTROL_PLANE, NODE_ADDRESS, address_of_peer
from mockube.kubelet.node_pools.pool import node_name
from mockube.launch import api_server_port, values_of

FOLDER: Final = "/etc/kubernetes/manifests"
PKI: Final = "/etc/kubernetes/pki"
_DATA: Final = "/var/lib/etcd"
_START_SECONDS: Final = 240
_PROBE_SECONDS: Final = 10
_LARGEST_LINE: Final = 1 << 20
_OTHER_PLACES: Final = frozenset({"cert-dir", "kubeconfig"})
"""Flags whose values in use are folders of this machine."""


class ControlPlaneFlags(Struct, frozen=True, kw_only=True):
    """What the manifests depend on."""

    minor: str
    server: Sequence[str] = ()
    """The flags of the API server that a user has set, as `--name=value`, and its port."""
    manager: Sequence[str] = ()
    """The flags of the controller manager, which runs the scheduler, too."""
    service_network: str = "10.0.0.0/24"
    pod_network: str = "10.128.0.0/9"


def manifests(flags: ControlPlaneFlags, node: str, names_before: Sequence[str] = ()) -> Mapping[str, str]:
    """Return the manifests of a control-plane node by path. The addresses of nodes are not known yet.

    `names_before` are those of the control-plane nodes that were there when it joined.
    """
    pods = (
        _etcd(flags, node, names_before),
        _api_server(flags),
        _controller_manager(flags),
        _scheduler(flags),
    )
    return {f"{FOLDER}/{pod['metadata']['name']}.yaml": _text(pod) for pod in pods}


def _text(pod: Mapping[str, Any]) -> str:
    return yaml.dump(pod, Dumper=yaml.CSafeDumper, default_flow_style=False, width=_LARGEST_LINE)


def _command(program: str, defaults: Mapping[str, str], used: Mapping[str, str]) -> list[str]:
    """Return a command with the default flags, and those in use that the program has, sorted as kubeadm sorts them."""
    hidden = _OTHER_PLACES
    values = {**defaults, **{name: value for name, value in used.items() if name in FLAGS[program] - hidden}}
    return [program, *(f"--{name}={values[name]}" for name in sorted(values))]


def _pod(
    container: Mapping[str, Any],
    volumes: Sequence[tuple[str, str, str, bool]],
    annotations: Mapping[str, str],
) -> dict[str, Any]:
    """Return a pod of one container; each volume has its name, its path on the node, its type, and whether it is read-only."""
    name = container["name"]
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "kube-system",
        "labels": {"component": name, "tier": "control-plane"},
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    mounts = [
        {"name": volume, "mountPath": path, **({"readOnly": True} if read_only else {})}
        for volume, path, _, read_only in volumes
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": [{"imagePullPolicy": "IfNotPresent", **container, "volumeMounts": mounts}],
            "hostNetwork": True,
            "priority": 2000001000,
            "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [
                {"name": volume, "hostPath": {"path": path, "type": kind}}
                for volume, path, kind, _ in volumes
            ],
        },
        "status": {},
    }


def _probe(host: str, path: str, port: int | str, scheme: str, **settings: int) -> dict[str, Any]:
    get = {"host": host, "path": path, "port": port, "scheme": scheme}
    return {
        "failureThreshold": 8,
        "httpGet": get,
        "periodSeconds": _PROBE_SECONDS,
        "timeoutSeconds": 15,
        **settings,
    }


class _Paths(NamedTuple):
    """What probes ask; there is no readiness probe without `ready`."""

    live: str
    ready: str = ""
    start: str = ""
    """That of the startup probe, if it is not that of the liveness probe."""
    scheme: str = "HTTPS"


def _probes(host: str, port: int, new: Differences, paths: _Paths) -> dict[str, Any]:
    """Return kubeadm's probes, and the port that they name in newer releases."""
    live, ready, start, scheme = paths
    named: int | str = "probe-port" if new.has_probe_ports else port
    delayed = {"initialDelaySeconds": _PROBE_SECONDS}
    probes = {
        "livenessProbe": _probe(host, live, named, scheme, **delayed),
        "startupProbe": _probe(
            host, start or live, named, scheme, failureThreshold=_START_SECONDS // _PROBE_SECONDS, **delayed
        ),
    }
    if ready:
        probes["readinessProbe"] = _probe(host, ready, named, scheme, failureThreshold=3, periodSeconds=1)
    ports = [{"containerPort": port, "name": "probe-port", "protocol": "TCP"}]
    return {**probes, **({"ports": ports} if new.has_probe_ports else {})}


def _kubernetes_image(program: str, minor: str) -> str:
    return f"registry.k8s.io/{program}:v{version(minor)}"


_CERTIFICATES: Final = (
    ("ca-certs", "/etc/ssl/certs", "DirectoryOrCreate", True),
    ("k8s-certs", PKI, "DirectoryOrCreate", True),
)


def _initial_cluster(node: str, names_before: Sequence[str]) -> Mapping[str, str]:
    """Return the flags about the members of etcd: a member that joins others names them, too."""
    members = [f"{name}=https://{address_of_peer(name)}:2380" for name in names_before]
    members.append(f"{node}=https://{NODE_ADDRESS}:2380")
    state = {"initial-cluster-state": "existing"} if names_before else {}
    return {"initial-cluster": ",".join(members), **state}


def _etcd(flags: ControlPlaneFlags, node: str, names_before: Sequence[str]) -> dict[str, Any]:
    new = differences(flags.minor)
    prefix = "" if new.has_etcd_features else "experimental-"
    client, peer = f"https://{NODE_ADDRESS}:2379", f"https://{NODE_ADDRESS}:2380"
    checks = (
        {"feature-gates": "InitialCorruptCheck=true"}
        if new.has_etcd_features
        else {"experimental-initial-corrupt-check": "true"}
    )
    defaults = {
        "advertise-client-urls": client,
        "cert-file": f"{PKI}/etcd/server.crt",
        "client-cert-auth": "true",
        "data-dir": _DATA,
        "initial-advertise-peer-urls": peer,
        **_initial_cluster(node, names_before),
        "key-file": f"{PKI}/etcd/server.key",
        "listen-client-urls": f"https://127.0.0.1:2379,{client}",
        "listen-metrics-urls": "http://127.0.0.1:2381",
        "listen-peer-urls": peer,
        "name": node,
        "peer-cert-file": f"{PKI}/etcd/peer.crt",
        "peer-client-cert-auth": "true",
        "peer-key-file": f"{PKI}/etcd/peer.key",
        "peer-trusted-ca-file": f"{PKI}/etcd/ca.crt",
        "snapshot-count": "10000",
        "trusted-ca-file": f"{PKI}/etcd/ca.crt",
        f"{prefix}watch-progress-notify-interval": "5s",
        **checks,
    }
    old = _Paths("/health?exclude=NOSPACE&serializable=true", "", "/health?serializable=false", "HTTP")
    paths = _Paths("/livez", "/readyz", "/readyz", "HTTP") if new.has_etcd_readiness else old
    container = {
        "name": "etcd",
        "image": f"registry.k8s.io/etcd:{VERSIONS[flags.minor].etcd}",
        "command": _command("etcd", defaults, {}),
        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
        **_probes("127.0.0.1", 2381, new, paths),
    }
    volumes = (
        ("etcd-data", _DATA, "DirectoryOrCreate", False),
        ("etcd-certs", f"{PKI}/etcd", "DirectoryOrCreate", False),
    )
    return _pod(container, volumes, {"kubeadm.kubernetes.io/etcd.advertise-client-urls": client})


def _api_server(flags: ControlPlaneFlags) -> dict[str, Any]:
    port = api_server_port(flags.server)
    used = {**values_of(flags.server), "secure-port": str(port)}
    defaults = {
        "advertise-address": NODE_ADDRESS,
        "allow-privileged": "true",
        "authorization-mode": "Node,RBAC",
        "client-ca-file": f"{PKI}/ca.crt",
        "enable-admission-plugins": "NodeRestriction",
        "enable-bootstrap-token-auth": "true",
        "etcd-cafile": f"{PKI}/etcd/ca.crt",
        "etcd-certfile": f"{PKI}/apiserver-etcd-client.crt",
        "etcd-keyfile": f"{PKI}/apiserver-etcd-client.key",
        "etcd-servers": "https://127.0.0.1:2379",
        "kubelet-client-certificate": f"{PKI}/apiserver-kubelet-client.crt",
        "kubelet-client-key": f"{PKI}/apiserver-kubelet-client.key",
        "kubelet-preferred-address-types": "InternalIP,ExternalIP,Hostname",
        "proxy-client-cert-file": f"{PKI}/front-proxy-client.crt",
        "proxy-client-key-file": f"{PKI}/front-proxy-client.key",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-client-ca-file": f"{PKI}/front-proxy-ca.crt",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "secure-port": str(port),
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": f"{PKI}/sa.pub",
        "service-account-signing-key-file": f"{PKI}/sa.key",
        "service-cluster-ip-range": flags.service_network,
        "tls-cert-file": f"{PKI}/apiserver.crt",
        "tls-private-key-file": f"{PKI}/apiserver.key",
    }
    container = {
        "name": "kube-apiserver",
        "image": _kubernetes_image("kube-apiserver", flags.minor),
        "command": _command("kube-apiserver", defaults, used),
        "resources": {"requests": {"cpu": "250m"}},
        **_probes(NODE_ADDRESS, port, differences(flags.minor), _Paths("/livez", "/readyz")),
    }
    endpoint = {"kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint": f"{NODE_ADDRESS}:{port}"}
    return _pod(container, _CERTIFICATES, endpoint)


def _controller_manager(flags: ControlPlaneFlags) -> dict[str, Any]:
    kubeconfig = "/etc/kubernetes/controller-manager.conf"
    defaults = {
        "allocate-node-cidrs": "true",
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "client-ca-file": f"{PKI}/ca.crt",
        "cluster-cidr": flags.pod_network,
        "cluster-name": "kubernetes",
        "cluster-signing-cert-file": f"{PKI}/ca.crt",
        "cluster-signing-key-file": f"{PKI}/ca.key",
        "controllers": "*,bootstrapsigner,tokencleaner",
        "kubeconfig": kubeconfig,
        "leader-elect": "true",
        "requestheader-client-ca-file": f"{PKI}/front-proxy-ca.crt",
        "root-ca-file": f"{PKI}/ca.crt",
        "service-account-private-key-file": f"{PKI}/sa.key",
        "service-cluster-ip-range": flags.service_network,
        "use-service-account-credentials": "true",
    }
    container = {
        "name": "kube-controller-manager",
        "image": _kubernetes_image("kube-controller-manager", flags.minor),
        "command": _command("kube-controller-manager", defaults, values_of(flags.manager)),
        "resources": {"requests": {"cpu": "200m"}},
        **_probes("127.0.0.1", 10257, differences(flags.minor), _Paths("/healthz")),
    }
    volumes = (*_CERTIFICATES, ("kubeconfig", kubeconfig, "FileOrCreate", True))
    return _pod(container, volumes, {})


def _scheduler(flags: ControlPlaneFlags) -> dict[str, Any]:
    kubeconfig, new = "/etc/kubernetes/scheduler.conf", differences(flags.minor)
    defaults = {
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "kubeconfig": kubeconfig,
        "leader-elect": "true",
    }
    paths = _Paths("/livez", "/readyz") if new.has_scheduler_readiness else _Paths("/healthz")
    container = {
        "name": "kube-scheduler",
        "image": _kubernetes_image("kube-scheduler", flags.minor),
        "command": _command("kube-scheduler", defaults, {}),
        "resources": {"requests": {"cpu": "100m"}},
        **_probes("127.0.0.1", 10259, new, paths),
    }
    return _pod(container, (("kubeconfig", kubeconfig, "FileOrCreate", True),), {})


def control_plane_names(count: int) -> Sequence[str]:
    return [node_name(CONTROL_PLANE, number) for number in range(1, count + 1)]
