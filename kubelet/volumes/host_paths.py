"""The files that a simulated node has: those of a usual Linux node, and those that pods or an annotation of the node add. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import dirname, normpath
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

HOST_PATHS: Final = "mockube.dev/host-paths"
"""The annotation of a node that lists further paths, such as "/data, /run/docker.sock=Socket"; the default type is Directory."""
DIRECTORY: Final = "Directory"
FILE: Final = "File"
_TYPES: Final = (DIRECTORY, FILE, "Socket", "CharDevice", "BlockDevice")
CREATED_TYPES: Final[Mapping[str, str]] = {"DirectoryOrCreate": DIRECTORY, "FileOrCreate": FILE}
"""The type of what a kubelet creates for a host path that does not exist, by the volume's type."""
PathType = Callable[[str], str]
"""Returns the type of a path on the node; "" if there is none."""

_NODE_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    DIRECTORY: (
        "/bin", "/boot", "/dev/disk", "/dev/hugepages", "/dev/mapper", "/dev/net", "/dev/pts", "/dev/shm",  # noqa: S108 - on a simulated node
        "/etc/cni/net.d", "/etc/containerd", "/etc/default", "/etc/kubernetes/manifests", "/etc/kubernetes/pki",
        "/etc/modprobe.d", "/etc/pki", "/etc/ssl/certs", "/etc/sysconfig", "/etc/systemd/system", "/etc/udev/rules.d",
        "/home", "/lib/modules", "/lib/systemd/system", "/lib64", "/media", "/mnt", "/opt/cni/bin", "/proc/1/ns",
        "/proc/sys/kernel", "/proc/sys/net", "/root", "/run/containerd", "/run/lock", "/run/netns", "/run/systemd/system",
        "/run/udev", "/run/xtables", "/sbin", "/srv", "/sys/block", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices",
        "/sys/firmware", "/sys/fs/bpf", "/sys/fs/cgroup", "/sys/kernel/config", "/sys/kernel/debug",
        "/sys/kernel/security", "/sys/kernel/tracing", "/sys/module", "/tmp", "/usr/bin", "/usr/lib/modules",  # noqa: S108 - on a simulated node
        "/usr/lib/systemd/system", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec", "/usr/local/bin",
        "/usr/local/lib", "/usr/local/share", "/usr/sbin", "/usr/share/ca-certificates", "/usr/src", "/var/cache",
        "/var/lib/cni", "/var/lib/containerd", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/plugins",
        "/var/lib/kubelet/plugins_registry", "/var/lib/kubelet/pki", "/var/lib/kubelet/pod-resources",
        "/var/lib/kubelet/pods", "/var/lock", "/var/log/containers", "/var/log/journal", "/var/log/pods",
        "/var/run/containerd", "/var/run/netns", "/var/run/udev", "/var/tmp",  # noqa: S108 - on a simulated node
    ),
    FILE: (
        "/etc/containerd/config.toml", "/etc/group", "/etc/hostname", "/etc/hosts", "/etc/kubernetes/kubelet.conf",
        "/etc/localtime", "/etc/machine-id", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/resolv.conf",
        "/etc/ssl/certs/ca-certificates.crt", "/proc/cmdline", "/proc/cpuinfo", "/proc/meminfo", "/proc/mounts",
        "/proc/stat", "/proc/uptime", "/proc/version", "/run/xtables.lock", "/usr/bin/containerd", "/usr/bin/kubelet",
        "/usr/bin/mount", "/usr/bin/nsenter", "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/pki/kubelet.crt",
        "/var/lib/kubelet/pki/kubelet.key", "/var/log/syslog",
    ),
    "Socket": (
        "/run/containerd/containerd.sock", "/var/run/containerd/containerd.sock",
        "/var/lib/kubelet/device-plugins/kubelet.sock", "/var/lib/kubelet/pod-resources/kubelet.sock",
        "/run/systemd/private",
    ),
    "CharDevice": (
        "/dev/console", "/dev/full", "/dev/fuse", "/dev/kmsg", "/dev/mem", "/dev/net/tun", "/dev/null", "/dev/ptmx",
        "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero",
    ),
    "BlockDevice": (),
}  # fmt: skip
"""The paths that a Linux node with systemd, containerd and a kubelet has; their parents are directories."""


def _with_parents(paths: Iterable[tuple[str, str]]) -> dict[str, str]:
    types: dict[str, str] = {}
    for path, file_type in paths:
        types[path] = file_type
        parent = dirname(path)
        while parent not in types:
            types[parent] = DIRECTORY
            parent = dirname(parent)
    return types


_NODE_PATHS: Final = _with_parents(
    (path, file_type) for file_type, paths in _NODE_FILES.items() for path in paths
)


def path_type(path: str, node: ReadOnlyTree, pods: Iterable[ReadOnlyTree]) -> str:
    """Return the type of a path on a node; "" if there is none. `pods` are those of the node, which create host paths."""
    path = normpath(path)
    file_type = _NODE_PATHS.get(path) or _with_parents(_annotated_paths(node)).get(path)
    return file_type or _created_paths(pods).get(path) or ""


def _annotated_paths(node: ReadOnlyTree) -> Iterator[tuple[str, str]]:
    """Yield the valid entries of the node's annotation; `host_path_problems` names the others."""
    for path, file_type in _entries(node):
        if not _problem(path, file_type):
            yield normpath(path), file_type


def host_path_problems(node: ReadOnlyTree) -> list[str]:
    """Return what is wrong with the entries of the node's annotation, which are ignored."""
    return [
        f"{HOST_PATHS}: {problem}"
        for path, file_type in _entries(node)
        if (problem := _problem(path, file_type))
    ]


def _problem(path: str, file_type: str) -> str:
    if not path.startswith("/"):
        return f"{path!r}: must be an absolute path"
    return "" if file_type in _TYPES else f"{path}={file_type}: the type must be one of {', '.join(_TYPES)}"


def _entries(node: ReadOnlyTree) -> Iterator[tuple[str, str]]:
    for entry in meta.annotations(node).get(HOST_PATHS, "").split(","):
        path, equals, file_type = (part.strip() for part in entry.partition("="))
        if path or equals:
            yield path, file_type if equals else DIRECTORY


def _created_paths(pods: Iterable[ReadOnlyTree]) -> dict[str, str]:
    """Return what the kubelet has created for the pods. It creates the parents of directories only."""
    created: dict[str, list[str]] = {DIRECTORY: [], FILE: []}
    for pod in pods:
        for volume in pod["spec"].get("volumes") or ():
            source = volume.get("hostPath") or {}
            file_type = CREATED_TYPES.get(source.get("type") or "")
            if file_type:
                created[file_type].append(normpath(source["path"]))
    folders = _with_parents((path, DIRECTORY) for path in created[DIRECTORY])
    folders_of_node = {**folders, **_NODE_PATHS} if created[FILE] else {}
    files = {path: FILE for path in created[FILE] if folders_of_node.get(dirname(path)) == DIRECTORY}
    return {**files, **folders}
