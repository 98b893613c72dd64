"""The files that the system of a node writes: those of Debian with kubeadm's kubelet, and those of the node's pods. Pure."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache, lru_cache
from posixpath import normpath
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.mirror_pods import kubelet_uid
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.etcd_snapshots import DATABASE, DEFAULT_FOLDER
from mockube.container_runtime.node_machine import NO_CREDENTIALS, NodeCredentials
from mockube.container_runtime.node_paths import DIRECTORY, NODE_PATHS, SOCKET
from mockube.container_runtime.pod_log_paths import log_path, pod_folder
from mockube.container_runtime.simulated.shell.network_programs.kubectl.connection import NOT_SIMULATED
from mockube.container_runtime.simulated.shell.network_programs.kubectl.output import to_yaml
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulation_values import CLUSTER_DNS
from mockube.container_runtime.volume_paths import PODS, volume_folders

from .installed_programs import ETCD_PROGRAMS, NODE_PROGRAM_NAMES

CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
KUBELET_UNIT: Final = "/usr/lib/systemd/system/kubelet.service"
KUBELET_DROP_IN: Final = f"{KUBELET_UNIT}.d/10-kubeadm.conf"
CONTAINERD_UNIT: Final = "/usr/lib/systemd/system/containerd.service"
KUBELET_CONFIG: Final = "/var/lib/kubelet/config.yaml"
KUBELET_KUBECONFIG: Final = "/etc/kubernetes/kubelet.conf"
WANTED: Final = "/etc/systemd/system/multi-user.target.wants"
_SHOWN_PROGRAMS: Final = ("bash", "cat", "curl", "grep", "ls", "sed", "sh")
"""Programs of Debian that a list of the folder shows. The others run, too, and need no entry in each node."""
_LINKS: Final[Mapping[str, str]] = {
    "/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64", "/var/run": "../run", "/var/lock": "../run/lock",
    f"{WANTED}/kubelet.service": KUBELET_UNIT, f"{WANTED}/containerd.service": CONTAINERD_UNIT,
    "/var/lib/kubelet/pki/kubelet-client-current.pem": "/var/lib/kubelet/pki/kubelet-client-2026-01-01-00-00-00.pem",
}  # fmt: skip
"""The symbolic links of a node with their targets."""
_MODES: Final[Mapping[str, int]] = {
    "/tmp": 0o1777, "/var/tmp": 0o1777, "/root": 0o700, "/dev/shm": 0o1777,  # noqa: S108 - on a simulated node
}  # fmt: skip
_UNKNOWN: Final = f"{NOT_SIMULATED.decode()}\n"
_PKI: Final = "/etc/kubernetes/pki"
CONTROL_PLANE_CERTIFICATES: Final = tuple(
    f"{_PKI}/{name}.{ending}"
    for name in (
        "apiserver", "apiserver-etcd-client", "apiserver-kubelet-client", "ca", "etcd/ca", "etcd/healthcheck-client", "etcd/peer",
        "etcd/server", "front-proxy-ca", "front-proxy-client", "sa",
    )
    for ending in (("key", "pub") if name == "sa" else ("crt", "key"))
    if name != "ca" or ending == "key"
)  # fmt: skip
"""The files that kubeadm writes on control-plane nodes, besides the CA certificate, which all nodes have."""
_USERS: Final[Mapping[str, str]] = {
    "admin": "kubernetes-admin", "super-admin": "kubernetes-super-admin",
    "controller-manager": "system:kube-controller-manager", "scheduler": "system:kube-scheduler",
}  # fmt: skip
"""The users of the kubeconfigs of control-plane nodes, by the names of the files."""
_SECRET_FOLDERS: Final = ("/etc/kubernetes/pki/", "/var/lib/kubelet/pki/")
_KUBELET_UNIT_TEXT: Final = """\
[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
"""
_DROP_IN_TEXT: Final = """\
# kubeadm's settings of the kubelet
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
# written by "kubeadm init" and "kubeadm join"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
# KUBELET_EXTRA_ARGS
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""
_CONTAINERD_UNIT_TEXT: Final = """\
[Unit]
Description=containerd container runtime
Documentation=https://containerd.io
After=network.target local-fs.target dbus.service

[Service]
ExecStart=/usr/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
"""
KUBELET_SETTINGS: Final[Mapping[str, Any]] = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "authentication": {
        "anonymous": {"enabled": False},
        "webhook": {"cacheTTL": "0s", "enabled": True},
        "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
    },
    "authorization": {
        "mode": "Webhook",
        "webhook": {"cacheAuthorizedTTL": "0s", "cacheUnauthorizedTTL": "0s"},
    },
    "cgroupDriver": "systemd",
    "clusterDNS": ["10.96.0.10"],
    "clusterDomain": "cluster.local",
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "enableSystemLogQuery": True,
    "healthzBindAddress": "127.0.0.1",
    "healthzPort": 10248,
    "kind": "KubeletConfiguration",
    "rotateCertificates": True,
    "staticPodPath": "/etc/kubernetes/manifests",
}
"""The KubeletConfiguration of a node, as kubeadm writes it by default; the logs of services can be queried."""
_CRICTL_TEXT: Final = "runtime-endpoint: unix:///run/containerd/containerd.sock\nimage-endpoint: unix:///run/containerd/containerd.sock\n"
_CONTAINERD_TEXT: Final = """\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
"""
_VOLUME_NOTE: Final = "NOT-SIMULATED"
_VOLUME_TEXT: Final = (
    "The contents of this volume are in the containers of the pod: mockube does not show them here.\n"
)
_NSS_TEXT: Final = "passwd:         files\ngroup:          files\nhosts:          files dns\n"


def is_control_plane(node: ReadOnlyTree) -> bool:
    return CONTROL_PLANE in meta.labels(node)


def address_of(node: ReadOnlyTree) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((each["address"] for each in addresses if each["type"] == "InternalIP"), "")


def os_release(image: str) -> str:
    """Return /etc/os-release of a system by the name that its node reports."""
    words = image.split()
    identifier = words[0].lower() if image.startswith(("Debian", "Ubuntu", "Fedora", "Alpine")) else "debian"
    version = next((word for word in words if word[0].isdigit()), "12")
    name = "Debian GNU/Linux" if identifier == "debian" else words[0]
    return f'PRETTY_NAME="{image}"\nNAME="{name}"\nVERSION_ID="{version}"\nID={identifier}\n'


def root_files(
    node: ReadOnlyTree,
    pods: Iterable[ReadOnlyTree],
    *,
    server: str,
    authority: bytes,
    cluster_dns: str = CLUSTER_DNS,
    credentials: NodeCredentials = NO_CREDENTIALS,
) -> dict[str, FileEntry]:
    """Return the files of a node by path. `server` is the URL of the API server, `authority` its CA certificates,
    `cluster_dns` the address of the cluster's name server, `credentials` those of control-plane nodes.
    """
    files = dict(_common_files())
    if not is_control_plane(node):
        for name in ETCD_PROGRAMS:
            del files[f"/usr/bin/{name}"]
    files |= {path: _text_file(path, text) for path, text in _texts(node, server, authority, cluster_dns)}
    if is_control_plane(node):
        files[f"{DEFAULT_FOLDER}/{DATABASE}"] = _text_file(DATABASE, "# The objects are in the API server.\n")
        kubeconfigs = _kubeconfigs_of_control_plane(node, server, authority, credentials.administrator)
        files |= {path: _text_file(path, text) for path, text in kubeconfigs}
        files |= {
            path: _text_file(path, credentials.certificates.get(path, _UNKNOWN))
            for path in CONTROL_PLANE_CERTIFICATES
        }
    for pod in pods:
        files |= dict(_pod_files(pod))
    return files


@cache
def _common_files() -> dict[str, FileEntry]:
    """Return the files that all nodes share, so that each node has only the paths of its own."""
    files = dict(_folders_and_devices())
    program = FileEntry(data=b"", mode=0o755)
    files |= {f"/usr/bin/{name}": program for name in (*NODE_PROGRAM_NAMES, *_SHOWN_PROGRAMS)}
    for path, target in _LINKS.items():
        files[path] = FileEntry(data=target.encode(), target=target, mode=0o777)
    return files


@lru_cache(maxsize=256)
def _text_file(path: str, text: str) -> FileEntry:
    is_secret = path.startswith(_SECRET_FOLDERS) or path.endswith((".conf", ".yaml"))
    mode = 0o600 if is_secret and not path.endswith("crt") else 0o644
    return FileEntry(data=text.encode(), mode=mode)


def _folders_and_devices() -> Iterator[tuple[str, FileEntry]]:
    for path, kind in NODE_PATHS.items():
        if path == "/" or path in _LINKS or any(path.startswith(f"{link}/") for link in _LINKS):
            continue
        if kind == DIRECTORY:
            yield path, FileEntry(mode=_MODES.get(path, 0o755))
        else:
            mode = 0o660 if kind == SOCKET else 0o666 if path.startswith("/dev/") else 0o644
            yield path, FileEntry(data=b"", mode=mode)


def _texts(node: ReadOnlyTree, server: str, authority: bytes, cluster_dns: str) -> Iterator[tuple[str, str]]:
    name, info = meta.name(node), (node.get("status") or {}).get("nodeInfo") or {}
    address = address_of(node)
    yield "/etc/os-release", os_release(info.get("osImage") or "Debian GNU/Linux 12 (bookworm)")
    yield "/etc/hostname", f"{name}\n"
    yield (
        "/etc/hosts",
        f"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n{address}\t{name}\n",
    )
    yield "/etc/resolv.conf", f"nameserver {cluster_dns}\nsearch cluster.local\n"
    yield "/etc/machine-id", f"{info.get('machineID') or ''}\n"
    yield "/etc/nsswitch.conf", _NSS_TEXT
    yield (
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    )
    yield "/etc/group", "root:x:0:\nadm:x:4:\nnogroup:x:65534:\n"
    yield "/etc/crictl.yaml", _CRICTL_TEXT
    yield "/etc/containerd/config.toml", _CONTAINERD_TEXT
    yield "/etc/cni/net.d/10-mockube.conflist", _network_configuration(node)
    yield "/etc/default/kubelet", "KUBELET_EXTRA_ARGS=\n"
    yield KUBELET_UNIT, _KUBELET_UNIT_TEXT
    yield KUBELET_DROP_IN, _DROP_IN_TEXT
    yield CONTAINERD_UNIT, _CONTAINERD_UNIT_TEXT
    yield KUBELET_CONFIG, to_yaml({**KUBELET_SETTINGS, "clusterDNS": [cluster_dns]})
    yield (
        "/var/lib/kubelet/kubeadm-flags.env",
        'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock"\n',
    )
    certificates = authority.decode() or _UNKNOWN
    yield "/etc/kubernetes/pki/ca.crt", certificates
    yield "/etc/ssl/certs/ca-certificates.crt", certificates
    yield "/var/lib/kubelet/pki/kubelet-client-2026-01-01-00-00-00.pem", _UNKNOWN
    yield "/var/lib/kubelet/pki/kubelet.crt", _UNKNOWN
    yield "/var/lib/kubelet/pki/kubelet.key", _UNKNOWN
    current = "/var/lib/kubelet/pki/kubelet-client-current.pem"
    credentials = {"client-certificate": current, "client-key": current}
    local = _local_server(node, server)
    yield KUBELET_KUBECONFIG, _kubeconfig(local, authority, "default-auth", credentials)


def _local_server(node: ReadOnlyTree, server: str) -> str:
    """Return the URL of a node's own API server; that of the cluster's for a worker."""
    address = address_of(node)
    if not is_control_plane(node) or not address:
        return server
    host = f"[{address}]" if ":" in address else address
    return f"https://{host}:{server.rpartition(':')[2]}"


def _kubeconfigs_of_control_plane(
    node: ReadOnlyTree, server: str, authority: bytes, administrator: tuple[str, str] | None
) -> Iterator[tuple[str, str]]:
    """Yield the kubeconfigs that kubeadm writes; those of administrators have the credentials and the server of the cluster's."""
    unknown = (_UNKNOWN, _UNKNOWN)
    for file, user in _USERS.items():
        pair = administrator if user.endswith("admin") else None
        certificate, key = (b64encode(each.encode()).decode() for each in pair or unknown)
        fields = {"client-certificate-data": certificate, "client-key-data": key}
        url = server if user.endswith("admin") else _local_server(node, server)
        yield f"/etc/kubernetes/{file}.conf", _kubeconfig(url, authority, user, fields)


def _kubeconfig(server: str, authority: bytes, user: str, credentials: Mapping[str, str]) -> str:
    """Return a kubeconfig with the fields of its user."""
    data = b64encode(authority).decode()
    fields = "".join(f"    {name}: {value}\n" for name, value in credentials.items())
    return (
        f"apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {data}\n    server: {server}\n"
        f"  name: kubernetes\ncontexts:\n- context:\n    cluster: kubernetes\n    user: {user}\n  name: {user}@kubernetes\n"
        f"current-context: {user}@kubernetes\nkind: Config\nusers:\n- name: {user}\n  user:\n{fields}"
    )


def _network_configuration(node: ReadOnlyTree) -> str:
    subnets = ", ".join(f'"{cidr}"' for cidr in (node.get("spec") or {}).get("podCIDRs") or ())
    return f'{{"cniVersion": "1.0.0", "name": "mockube", "plugins": [{{"type": "mockube", "subnets": [{subnets}]}}]}}\n'


def _pod_files(pod: ReadOnlyTree) -> Iterator[tuple[str, FileEntry]]:
    """Yield the folders and the logs of a pod, and the folders that the kubelet has created for its host paths."""
    folder = f"{PODS}/{kubelet_uid(pod)}"
    yield f"/var/log/pods/{pod_folder(pod)}", FileEntry(mode=0o755)
    for part in ("containers", "plugins", "volumes"):
        yield f"{folder}/{part}", FileEntry(mode=0o750)
    yield f"{folder}/etc-hosts", FileEntry(data=b"")
    for path in volume_folders(pod, kubelet_uid(pod)):
        yield f"{path}/{_VOLUME_NOTE}", _text_file(_VOLUME_NOTE, _VOLUME_TEXT)
    for volume in pod["spec"].get("volumes") or ():
        source = volume.get("hostPath") or {}
        if source.get("type") == "DirectoryOrCreate":
            yield normpath(source["path"]), FileEntry(mode=0o755)
    status = pod.get("status") or {}
    for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for container in status.get(field) or ():
            yield from _container_files(pod, container)


def _container_files(pod: ReadOnlyTree, status: ReadOnlyTree) -> Iterator[tuple[str, FileEntry]]:
    name, restarts = status["name"], status.get("restartCount") or 0
    yield f"{PODS}/{kubelet_uid(pod)}/containers/{name}", FileEntry(mode=0o750)
    state, last = status.get("state") or {}, status.get("lastState") or {}
    has_run = "running" in state or "terminated" in state
    runs = [(restarts, state)] if has_run else []
    if "terminated" in last:
        runs.append((restarts if not has_run else restarts - 1, last))
    for attempt, run in runs:
        path = log_path(pod, name, attempt)
        yield path, FileEntry(data=b"", mode=0o640, modified=_start(run).timestamp())
    identifier = (status.get("containerID") or "").rpartition("/")[2]
    if runs and identifier:
        link = f"/var/log/containers/{meta.name(pod)}_{meta.namespace(pod)}_{name}-{identifier}.log"
        target = log_path(pod, name, runs[0][0])
        yield link, FileEntry(data=target.encode(), target=target, mode=0o777)


def _start(state: Mapping[str, Any]) -> datetime:
    entry = state.get("running") or state.get("terminated") or {}
    started = entry.get("startedAt")
    return (
        parse_time(started)
        if started
        else datetime.fromtimestamp(0, tz=parse_time("2026-01-01T00:00:00Z").tzinfo)
    )
