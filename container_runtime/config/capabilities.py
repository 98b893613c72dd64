"""The capabilities of a container's processes by its security context. Pure."""

from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree

CAPABILITIES: Final = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE",
    "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT",
    "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
)  # fmt: skip
"""The capabilities of Linux by their bits."""
DEFAULT_CAPABILITIES: Final = frozenset({
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE", "NET_RAW", "SYS_CHROOT", "MKNOD",
    "AUDIT_WRITE", "SETFCAP",
})  # fmt: skip
"""The capabilities that a container has by default with containerd."""


def capabilities_of(context: ReadOnlyTree) -> frozenset[str]:
    """Return the capabilities that the programs of a container may have, by its security context."""
    if context.get("privileged"):
        return frozenset(CAPABILITIES)
    changes = context.get("capabilities")
    if not changes:
        return DEFAULT_CAPABILITIES
    added = {name.upper().removeprefix("CAP_") for name in changes.get("add") or ()}
    dropped = {name.upper().removeprefix("CAP_") for name in changes.get("drop") or ()}
    if "ALL" in dropped:
        return frozenset(added)
    return frozenset(((set(CAPABILITIES) if "ALL" in added else DEFAULT_CAPABILITIES) | added) - dropped)


def capability_bits(context: ReadOnlyTree) -> int:
    """Return the capabilities of `capabilities_of` as the bits of the kernel."""
    names = capabilities_of(context)
    return sum(1 << bit for bit, name in enumerate(CAPABILITIES) if name in names)


def gains_no_privileges(context: ReadOnlyTree) -> bool:
    """Return whether a container's processes never get more rights than they have, as by a program of another user."""
    return context.get("allowPrivilegeEscalation") is False
