"""What happens when systemd starts the kubelet of a node, as its unit and its settings say. Pure."""

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError

ReadFile = Callable[[str], bytes | None]
"""Returns the content of a file of the node; None if there is none."""
BINARY: Final = "/usr/bin/kubelet"
CONFIG: Final = "/var/lib/kubelet/config.yaml"
_SOCKET: Final = ("unix:///run/containerd/containerd.sock", "unix:///var/run/containerd/containerd.sock")
_FLAGS: Final = frozenset(
    """
    address anonymous-auth authentication-token-webhook authorization-mode bootstrap-kubeconfig cert-dir cgroup-driver cgroup-root client-ca-file
    cloud-provider cluster-dns cluster-domain config config-dir container-log-max-files container-log-max-size container-runtime-endpoint
    contention-profiling cpu-manager-policy enable-controller-attach-detach enforce-node-allocatable eviction-hard eviction-soft exit-on-lock-contention
    fail-swap-on feature-gates healthz-bind-address healthz-port hostname-override image-credential-provider-bin-dir image-credential-provider-config
    image-gc-high-threshold image-gc-low-threshold image-service-endpoint kube-api-burst kube-api-qps kube-reserved kubeconfig kubelet-cgroups
    lock-file log-flush-frequency log-text-info-buffer-size log-text-split-stream logging-format max-open-files max-pods memory-manager-policy
    minimum-image-ttl-duration node-ip node-labels node-status-update-frequency pod-cidr pod-infra-container-image pod-manifest-path pod-max-pids
    port protect-kernel-defaults provider-id read-only-port register-node register-with-taints resolv-conf root-dir rotate-certificates
    rotate-server-certificates runtime-cgroups runtime-request-timeout seccomp-default serialize-image-pulls static-pod-url sync-frequency
    system-reserved tls-cert-file tls-cipher-suites tls-min-version tls-private-key-file topology-manager-policy v version vmodule
    volume-plugin-dir
    """.split()  # noqa: SIM905 - a long list of words
)
"""The flags of a kubelet."""
_TYPES: Final[Mapping[str, type]] = {
    "clusterDNS": list, "clusterDomain": str, "maxPods": int, "port": int, "staticPodPath": str, "containerRuntimeEndpoint": str,
    "authentication": dict, "authorization": dict, "healthzPort": int, "failSwapOn": bool, "rotateCertificates": bool, "featureGates": dict,
    "evictionHard": dict, "cgroupDriver": str, "readOnlyPort": int,
}  # fmt: skip
_VARIABLE: Final = re.compile(r"\$\{?(\w+)\}?")


class StartResult(Struct, frozen=True, kw_only=True):
    """What the start of a kubelet leads to."""

    command: str
    """The command line, as systemd shows it."""
    problem: str = ""
    """Why it ends at once, in its words, or in those of systemd; "" if it runs."""
    status: str = "1/FAILURE"
    """The status of the process that has ended."""
    unreachable: str = ""
    """The address of the API server that does not answer; "" if it does."""

    @property
    def state(self) -> str:
        """Return the state of the unit: running, failed or cut-off."""
        return "failed" if self.problem else "cut-off" if self.unreachable else "running"


def start_kubelet(
    read: ReadFile, texts: Sequence[str], *, servers: Collection[str], has_runtime: bool
) -> StartResult:
    """Start a kubelet. `texts` are those of its unit and its drop-ins, `servers` are the URLs of the API servers."""
    argv = _command(texts, read)
    command = " ".join(argv)
    binary = argv[0] if argv else ""
    if read(binary) is None or binary != BINARY:
        reason = "No such file or directory" if read(binary) is None else "Exec format error"
        problem = f"kubelet.service: Failed at step EXEC spawning {binary}: {reason}"
        return StartResult(command=command, problem=problem, status="203/EXEC")
    problem = next(_problems(argv, read, has_runtime=has_runtime), "")
    if problem:
        return StartResult(command=command, problem=f'"command failed" err={_quote(problem)}')
    return StartResult(command=command, unreachable=_unreachable(_flags(argv), read, servers))


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _command(texts: Sequence[str], read: ReadFile) -> list[str]:
    """Return the command line of the last ExecStart, with the variables of the unit."""
    variables: dict[str, str] = {}
    command = ""
    for text in texts:
        for line in text.replace("\\\n", " ").splitlines():
            key, _, value = line.strip().partition("=")
            if key == "Environment":
                variables |= dict(_assignments(value))
            elif key == "EnvironmentFile":
                content = read(value.lstrip("-")) or b""
                for entry in content.decode("utf-8", "replace").splitlines():
                    if "=" in entry and not entry.lstrip().startswith("#"):
                        name, _, words = entry.partition("=")
                        variables[name.strip()] = words.strip().strip("\"'")
            elif key == "ExecStart":
                command = value
    expanded = _VARIABLE.sub(lambda match: variables.get(match[1], ""), command)
    return expanded.split()


def _assignments(value: str) -> Iterator[tuple[str, str]]:
    try:
        words = shlex.split(value)
    except ValueError:
        return
    for word in words:
        name, _, text = word.partition("=")
        yield name, text


def _flags(argv: Sequence[str]) -> dict[str, str]:
    flags: dict[str, str] = {}
    words = iter(argv[1:])
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        flags[name] = value if equals else next(words, "") if name in ("config", "kubeconfig") else "true"
    return flags


def _problems(argv: Sequence[str], read: ReadFile, *, has_runtime: bool) -> Iterator[str]:
    """Yield why a kubelet ends at once, in the order in which it finds out."""
    flags = _flags(argv)
    for word in argv[1:]:
        name = word.lstrip("-").partition("=")[0]
        if word.startswith("-") and name not in _FLAGS:
            yield f"failed to parse kubelet flag: unknown flag: --{name}"
    settings: Mapping[str, Any] = {}
    if path := flags.get("config"):
        content = read(path)
        prefix = f"failed to load kubelet config file, path: {path}, error: failed to load Kubelet config file {path}, error"
        if content is None:
            yield f'{prefix} failed to read kubelet config file "{path}": error: open {path}: no such file or directory'
            return
        settings, problem = _settings(content)
        if problem:
            yield f"{prefix} {problem}"
    authority = flags.get("client-ca-file") or _client_ca(settings)
    if authority and read(authority) is None:
        yield f"failed to construct kubelet dependencies: unable to load client CA file {authority}: open {authority}: no such file or directory"
    kubeconfig = flags.get("kubeconfig", "")
    if kubeconfig and read(kubeconfig) is None:
        bootstrap = flags.get("bootstrap-kubeconfig", "")
        yield f"failed to run Kubelet: unable to load bootstrap kubeconfig: stat {bootstrap}: no such file or directory"
    if kubeconfig and (problem := _kubeconfig_problem(read(kubeconfig) or b"")):
        yield f"failed to run Kubelet: {problem}"
    endpoint = (
        flags.get("container-runtime-endpoint") or settings.get("containerRuntimeEndpoint") or _SOCKET[0]
    )
    if endpoint not in _SOCKET or not has_runtime:
        socket = endpoint.removeprefix("unix://")
        yield (
            f'failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint "{endpoint}": rpc error: '
            f'code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix {socket}: connect: no such file '
            'or directory"'
        )


def _settings(content: bytes) -> tuple[Mapping[str, Any], str]:
    """Return the settings of a file, and what is wrong with them."""
    try:
        tree = load(content).tree
    except YamlError as error:
        return {}, f"couldn't get version/kind; json parse error: {error}"
    if not isinstance(tree, dict) or not tree.get("kind"):
        return {}, "Object 'Kind' is missing in the file"
    if not tree.get("apiVersion"):
        return {}, "Object 'apiVersion' is missing in the file"
    if (tree["kind"], tree["apiVersion"]) != ("KubeletConfiguration", "kubelet.config.k8s.io/v1beta1"):
        group, _, version = str(tree["apiVersion"]).rpartition("/")
        return (
            {},
            f'no kind "{tree["kind"]}" is registered for version "{group}/{version}" in scheme "k8s.io/kubernetes"',
        )
    for name, kind in _TYPES.items():
        value = tree.get(name)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is int)):
            words = {str: "string", int: "int32", bool: "bool", list: "[]string", dict: "struct"}
            go_type = {
                str: "string",
                bool: "bool",
                int: "number",
                float: "number",
                list: "array",
                dict: "object",
            }.get(type(value), "value")
            return (
                {},
                f"json: cannot unmarshal {go_type} into Go struct field KubeletConfiguration.{name} of type {words[kind]}",
            )
    return tree, ""


def configuration(content: bytes | None) -> Mapping[str, Any]:
    """Return the settings of a kubelet's file; none if it cannot be read."""
    return _settings(content or b"")[0]


def _client_ca(settings: Mapping[str, Any]) -> str:
    x509 = (settings.get("authentication") or {}).get("x509") or {}
    return str(x509.get("clientCAFile") or "") if isinstance(x509, dict) else ""


def _kubeconfig(content: bytes) -> Mapping[str, Any]:
    try:
        tree = load(content).tree
    except YamlError:
        return {}
    return tree if isinstance(tree, dict) else {}


def _cluster_server(tree: Mapping[str, Any]) -> str:
    """Return the URL of the cluster of the current context."""
    try:
        contexts = {each["name"]: each["context"] for each in tree.get("contexts") or ()}
        clusters = {each["name"]: each["cluster"] for each in tree.get("clusters") or ()}
        return str(clusters[contexts[tree.get("current-context")]["cluster"]].get("server") or "")
    except (KeyError, TypeError, AttributeError):
        return ""


def _kubeconfig_problem(content: bytes) -> str:
    try:
        tree = load(content).tree
    except YamlError as error:
        return f"error loading config file: yaml: {error}"
    if not isinstance(tree, dict):
        return "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
    context = tree.get("current-context")
    names = [each.get("name") for each in tree.get("contexts") or () if isinstance(each, dict)]
    if context and context not in names:
        return f"invalid configuration: context was not found for specified context: {context}"
    return "" if _cluster_server(tree) else "invalid configuration: no server found for cluster"


def _unreachable(flags: Mapping[str, str], read: ReadFile, servers: Collection[str]) -> str:
    """Return the address in the kubeconfig if it is not that of an API server, because nothing answers there."""
    address = _cluster_server(_kubeconfig(read(flags.get("kubeconfig", "")) or b""))
    if not flags.get("kubeconfig") or _address(address) in map(_address, servers):
        return ""
    return address


def _address(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port or 443
    except ValueError:
        return "", url, None
    return parts.scheme, parts.hostname, port
