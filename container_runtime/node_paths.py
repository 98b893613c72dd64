"""The files that a Linux node with systemd, containerd and a kubelet has, by their types. Pure."""

from collections.abc import Iterable, Mapping
from posixpath import dirname
from typing import Final

DIRECTORY: Final = "Directory"
FILE: Final = "File"
SOCKET: Final = "Socket"

NODE_FILES: Final[Mapping[str, tuple[str, ...]]] = {
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
    SOCKET: (
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


def with_parents(paths: Iterable[tuple[str, str]]) -> dict[str, str]:
    types: dict[str, str] = {}
    for path, file_type in paths:
        types[path] = file_type
        parent = dirname(path)
        while parent not in types:
            types[parent] = DIRECTORY
            parent = dirname(parent)
    return types


NODE_PATHS: Final = with_parents(
    (path, file_type) for file_type, paths in NODE_FILES.items() for path in paths
)
