"""The files in /proc about the first process of a container: its command line, variables, user and capabilities. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import security_context

from .users import identity_of

_CAPABILITIES: Final = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE",
    "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT",
    "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
)  # fmt: skip
"""The capabilities of Linux by their bits."""
_DEFAULT: Final = frozenset({
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE", "NET_RAW", "SYS_CHROOT", "MKNOD",
    "AUDIT_WRITE", "SETFCAP",
})  # fmt: skip
"""Those that a container has by default with containerd."""
_FILTERED: Final = 2
"""The mode of seccomp with a filter."""


_LIMITS: Final = "".join(
    f"{name:<26}{soft:<21}{hard:<21}{unit:<10}\n"
    for name, soft, hard, unit in (
        ("Limit", "Soft Limit", "Hard Limit", "Units"),
        ("Max cpu time", "unlimited", "unlimited", "seconds"),
        ("Max file size", "unlimited", "unlimited", "bytes"),
        ("Max data size", "unlimited", "unlimited", "bytes"),
        ("Max stack size", "8388608", "unlimited", "bytes"),
        ("Max core file size", "unlimited", "unlimited", "bytes"),
        ("Max resident set", "unlimited", "unlimited", "bytes"),
        ("Max processes", "unlimited", "unlimited", "processes"),
        ("Max open files", "1048576", "1048576", "files"),
        ("Max locked memory", "8388608", "8388608", "bytes"),
        ("Max address space", "unlimited", "unlimited", "bytes"),
    )
)
"""The limits of processes with containerd."""


def process_files(
    pod: ReadOnlyTree, container: ReadOnlyTree, argv: Sequence[str], environment: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    """Yield the paths and contents of the files about a container's first process."""
    name = argv[0].rpartition("/")[2][:15] if argv else ""
    status = _status(pod, container, name)
    variables = "".join(f"{key}={value}\0" for key, value in environment.items())
    yield "/proc/1/cmdline", "".join(f"{argument}\0" for argument in argv).encode()
    yield "/proc/1/environ", variables.encode()
    yield "/proc/1/comm", f"{name}\n".encode()
    yield "/proc/1/cgroup", b"0::/\n"
    yield "/proc/self/cgroup", b"0::/\n"
    yield "/proc/1/limits", _LIMITS.encode()
    yield "/proc/self/limits", _LIMITS.encode()
    yield "/proc/1/status", status.encode()
    yield "/proc/self/status", status.encode()


def _status(pod: ReadOnlyTree, container: ReadOnlyTree, name: str) -> str:
    context = security_context(pod, container)
    identity = identity_of(pod, container)
    bounding = capabilities(context)
    effective = bounding if identity.user == 0 else 0
    groups = " ".join(str(number) for number in sorted({identity.group, *identity.others}))
    profile = (context.get("seccompProfile") or {}).get("type") or "Unconfined"
    seccomp = 0 if profile == "Unconfined" or context.get("privileged") else _FILTERED
    fields = {
        "Name": name,
        "State": "S (sleeping)",
        "Tgid": 1,
        "Pid": 1,
        "PPid": 0,
        "Uid": "\t".join([str(identity.user)] * 4),
        "Gid": "\t".join([str(identity.group)] * 4),
        "Groups": f"{groups} ",
        "CapInh": f"{0:016x}",
        "CapPrm": f"{effective:016x}",
        "CapEff": f"{effective:016x}",
        "CapBnd": f"{bounding:016x}",
        "CapAmb": f"{0:016x}",
        "NoNewPrivs": int(context.get("allowPrivilegeEscalation") is False),
        "Seccomp": seccomp,
    }
    return "".join(f"{field}:\t{value}\n" for field, value in fields.items())


def capabilities(context: ReadOnlyTree) -> int:
    """Return the bits of the capabilities that a container's programs may have."""
    if context.get("privileged"):
        return (1 << len(_CAPABILITIES)) - 1
    changes = context.get("capabilities") or {}
    added = {name.upper().removeprefix("CAP_") for name in changes.get("add") or ()}
    dropped = {name.upper().removeprefix("CAP_") for name in changes.get("drop") or ()}
    names = set(_CAPABILITIES) if "ALL" in added else set() if "ALL" in dropped else set(_DEFAULT)
    names = (names | added) - dropped if "ALL" not in dropped else names | added
    return sum(1 << bit for bit, name in enumerate(_CAPABILITIES) if name in names)
