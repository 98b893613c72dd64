"""Programs whose result depends on the privileges of their process: `ip`, as far as it is denied, and `nnp` of Kubernetes' tests."""

from collections.abc import Mapping
from typing import Final

from mockube.container_runtime.simulated.shell.filesystem import FileError
from mockube.container_runtime.simulated.shell.process import (
    Output,
    Process,
    Program,
    Run,
    UnknownProgram,
    write_text,
)

_NET_ADMIN: Final = 12
"""The bit of the capability that changes interfaces need."""
_CHANGES: Final = frozenset({"add", "a", "del", "delete", "d", "set", "change", "replace", "flush"})


def _status_of(process: Process) -> Mapping[str, str]:
    """Return the fields of the first process, which those of all others are like."""
    try:
        text = process.host.files.read("/proc/1/status").decode()
    except FileError:
        raise UnknownProgram(process.name) from None
    fields = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in fields}


def ip(process: Process) -> Run:
    """Refuse a change without the capability for it; nothing else of the program is simulated."""
    words = [word for word in process.arguments if not word.startswith("-")]
    if len(words) < 2 or words[1] not in _CHANGES:
        raise UnknownProgram(process.name)
    if int(_status_of(process).get("CapEff", "0"), 16) >> _NET_ADMIN & 1:
        raise UnknownProgram(" ".join(process.argv))
    yield Output(2, b"ip: RTNETLINK answers: Operation not permitted\n")
    return 2


def print_effective_user(process: Process) -> Run:
    """Print the user of a program that is root's by its mode, unless new privileges are forbidden."""
    is_root = _status_of(process).get("NoNewPrivs") != "1"
    yield write_text(f"Effective uid: {0 if is_root else process.host.user}\n")
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {"ip": ip, "nnp": print_effective_user}
