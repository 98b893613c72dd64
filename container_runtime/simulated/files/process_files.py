"""The files in /proc about the first process of a container: its command line, variables, user and capabilities. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.capabilities import capability_bits, gains_no_privileges
from mockube.container_runtime.config.environment import security_context
from mockube.container_runtime.images.table import ImageTable

from .users import identity_of

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
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    pid: int,
    argv: Sequence[str],
    environment: Mapping[str, str],
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files about a container's first process, whose id is `pid`."""
    name = re.split("[: ]", argv[0].rpartition("/")[2])[0][:15] if argv else ""
    variables = "".join(f"{key}={value}\0" for key, value in environment.items())
    yield "cmdline", "".join(f"{argument}\0" for argument in argv).encode()
    yield "environ", variables.encode()
    yield "comm", f"{name}\n".encode()
    yield "cgroup", b"0::/\n"
    yield "limits", _LIMITS.encode()
    yield "status", _status(images, pod, container, pid, name).encode()


OF_PROCESS_ITSELF: Final = frozenset({"cgroup", "limits", "status"})
"""The files that are the same for each process of a container, and so in /proc/self."""


def _status(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, pid: int, name: str) -> str:
    context = security_context(pod, container)
    identity = identity_of(images, pod, container)
    bounding = capability_bits(context)
    effective = bounding if identity.user == 0 else 0
    groups = " ".join(str(number) for number in sorted({identity.group, *identity.others}))
    profile = (context.get("seccompProfile") or {}).get("type") or "Unconfined"
    seccomp = 0 if profile == "Unconfined" or context.get("privileged") else _FILTERED
    fields = {
        "Name": name,
        "State": "S (sleeping)",
        "Tgid": pid,
        "Pid": pid,
        "PPid": 0,
        "Uid": "\t".join([str(identity.user)] * 4),
        "Gid": "\t".join([str(identity.group)] * 4),
        "Groups": f"{groups} ",
        "CapInh": f"{0:016x}",
        "CapPrm": f"{effective:016x}",
        "CapEff": f"{effective:016x}",
        "CapBnd": f"{bounding:016x}",
        "CapAmb": f"{0:016x}",
        "NoNewPrivs": int(gains_no_privileges(context)),
        "Seccomp": seccomp,
    }
    return "".join(f"{field}:\t{value}\n" for field, value in fields.items())
