"""kubeadm, kubelet and containerd as programs of a node. What they would change of the cluster is refused by name."""

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.container_runtime.simulated.node.root_files import KUBELET_SETTINGS
from mockube.container_runtime.simulated.node.services import ServiceError, ask
from mockube.container_runtime.simulated.shell.network_programs.kubectl.output import to_yaml
from mockube.container_runtime.simulated.shell.options import parse_options
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Process,
    ProgramUsageError,
    Run,
    write_text,
)

from . import kubeadm_tokens
from .certificate_text import load_certificate
from .kubeadm_tokens import KubeadmError, require_admin, split_command
from .tables import human_duration, table

Work = Generator[Effect, bytes | None, Any]
_YEAR: Final = timedelta(days=365)
_CERTIFICATES: Final = (
    ("admin.conf", "ca"), ("apiserver", "ca"), ("apiserver-etcd-client", "etcd-ca"), ("apiserver-kubelet-client", "ca"),
    ("controller-manager.conf", "ca"), ("etcd-healthcheck-client", "etcd-ca"), ("etcd-peer", "etcd-ca"), ("etcd-server", "etcd-ca"),
    ("front-proxy-client", "front-proxy-ca"), ("scheduler.conf", "ca"), ("super-admin.conf", "ca"),
)  # fmt: skip
_CONFIGURATIONS: Final = frozenset(
    (f"kubeadm.k8s.io/{version}", "ClusterConfiguration") for version in ("v1beta3", "v1beta4")
)
_LONG: Final = {
    "output": "o", "kubeconfig": "k", "config": "c", "component-configs": "C", "v": "v", "cert-dir": "D", "dry-run": "Y",
}  # fmt: skip


def kubeadm(process: Process) -> Run:
    try:
        return (yield from _run(process))
    except (KubeadmError, ServiceError) as error:
        yield process.report(
            f"error: {error}\nTo see the stack trace of this error execute with --v=5 or higher"
        )
        return 1


def _run(process: Process) -> Run:
    name, arguments = split_command(process.arguments)
    if name == "token":
        yield from kubeadm_tokens.run(process, arguments)
        return 0
    if name in _REFUSED:
        raise KubeadmError(
            f"kubeadm {name} is not simulated: `mockube up` and `mockube nodes` make the nodes of a cluster"
        )
    options = parse_options(process.arguments, "o:k:c:C:v:D:Yh", long=_LONG)
    words = list(options.arguments)
    for length in (2, 1):
        run = _COMMANDS.get(" ".join(words[:length]))
        if run is not None:
            yield from run(process, words[length:], options.values)
            return 0
    if not words:
        yield write_text("Usage:\n  kubeadm [command]\n\nAvailable Commands:\n  certs config token version\n")
        return 0
    if words[:2] == ["certs", "renew"]:
        raise KubeadmError(
            "kubeadm certs renew is not simulated: `mockube up` renews the certificates of a cluster when it starts, 30 days before they expire"
        )
    if words[0] in ("certs", "config"):
        raise KubeadmError(f"kubeadm {' '.join(words[:2])} is not simulated")
    raise KubeadmError(f'unknown command "{words[0]}" for "kubeadm"')


_REFUSED: Final = frozenset({"init", "join", "reset", "upgrade", "kubeconfig", "completion"})
Options = Mapping[str, Sequence[str]]


def _last(options: Options, name: str, default: str = "") -> str:
    return options.get(name, [default])[-1]


def _version(process: Process, _: Sequence[str], options: Options) -> Work:
    info = (yield from ask(process, "machine"))["version"]
    form = _last(options, "o")
    major, minor = info.removeprefix("v").split(".")[:2]
    tree = {"clientVersion": {"gitVersion": info, "major": major, "minor": minor, "platform": "linux/amd64"}}
    if form == "short":
        yield write_text(f"{info}\n")
    elif form == "json":
        yield write_text(orjson.dumps(tree, option=orjson.OPT_INDENT_2).decode() + "\n")
    elif form == "yaml":
        yield write_text(to_yaml(tree))
    else:
        yield write_text(
            f'kubeadm version: &version.Info{{Major:"{major}", Minor:"{minor}", GitVersion:"{info}", Platform:"linux/amd64"}}\n'
        )


def _check_expiration(process: Process, _: Sequence[str], __: Options) -> Work:
    require_admin(process)
    if not _is_configuration((yield from ask(process, "kubeadm.configuration"))):
        yield write_text(
            "[check-expiration] Error reading configuration from the Cluster. Falling back to default configuration\n\n"
        )
    machine = yield from ask(process, "machine")
    created, now = datetime.fromisoformat(machine["created"]), process.host.now_running(is_shown=True)

    def expiry(name: str, years: int) -> tuple[str, str]:
        at = _end_of(process, name) or created + years * _YEAR
        return f"{at.astimezone(UTC):%b %d, %Y %H:%M} UTC", _residual(at - now)

    rows = [("CERTIFICATE", "EXPIRES", "RESIDUAL TIME", "CERTIFICATE AUTHORITY", "EXTERNALLY MANAGED")]
    rows += [(name, *expiry(name, 1), authority, "no") for name, authority in _CERTIFICATES]
    authorities = [("CERTIFICATE AUTHORITY", "EXPIRES", "RESIDUAL TIME", "EXTERNALLY MANAGED")]
    authorities += [(name, *expiry(name, 10), "no") for name in ("ca", "etcd-ca", "front-proxy-ca")]
    yield write_text(f"{table(rows, width=0)}\n{table(authorities, width=0)}")


def _is_configuration(text: str) -> bool:
    """Return whether kubeadm can read the configuration of the cluster."""
    try:
        tree = load(text.encode()).tree
    except YamlError:
        return False
    return isinstance(tree, dict) and (tree.get("apiVersion"), tree.get("kind")) in _CONFIGURATIONS


def _end_of(process: Process, name: str) -> datetime | None:
    """Return the end of a certificate of the API server; None for others, which are not simulated."""
    path = f"/etc/kubernetes/pki/{name}.crt"
    if not process.host.files.exists(path):
        return None
    certificate = load_certificate(process.host.files.read(path))
    return None if certificate is None else certificate.not_valid_after_utc


def _residual(left: timedelta) -> str:
    return (
        f"{left.days // 365}y"
        if left >= 2 * _YEAR
        else f"{left.days}d"
        if left.days > 0
        else human_duration(left.total_seconds())
    )


def _print_defaults(process: Process, _: Sequence[str], options: Options) -> Work:
    version = (yield from ask(process, "machine"))["version"]
    tree = {
        "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "clusterName": "kubernetes", "kubernetesVersion": version.removeprefix("v"),
        "certificatesDir": "/etc/kubernetes/pki", "imageRepository": "registry.k8s.io", "certificateValidityPeriod": "8760h0m0s",
        "caCertificateValidityPeriod": "87600h0m0s", "encryptionAlgorithm": "RSA-2048", "etcd": {"local": {"dataDir": "/var/lib/etcd"}},
        "networking": {"dnsDomain": "cluster.local", "serviceSubnet": "10.96.0.0/12"},
    }  # fmt: skip
    documents = [tree, {**KUBELET_SETTINGS}] if "KubeletConfiguration" in _last(options, "C") else [tree]
    yield write_text("---\n".join(map(to_yaml, documents)))


_COMMANDS: Final[Mapping[str, Callable[[Process, Sequence[str], Options], Work]]] = {
    "version": _version,
    "certs check-expiration": _check_expiration,
    "config print": _print_defaults,
}


def kubelet(process: Process) -> Run:
    if "--version" in process.arguments:
        version = (yield from ask(process, "machine"))["version"]
        yield write_text(f"Kubernetes {version}\n")
        return 0
    raise ProgramUsageError("the kubelet of a node is started by systemd: systemctl start kubelet")


def containerd(process: Process) -> Run:
    if {"--version", "-v"} & {*process.arguments}:
        runtime = yield from ask(process, "cri.version")
        yield write_text(f"containerd {runtime['runtimeVersion']} (simulated by {runtime['runtimeName']})\n")
        return 0
    raise ProgramUsageError(
        "the container runtime of a node is started by systemd: systemctl start containerd"
    )
