"""netstat and ss: the ports on which the programs of a pod, or of a node, listen. Connections last no longer than a request and its answer."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mockube.container_runtime.simulated.network.calls import ListSockets
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.process import Effect, Process, Program, Run, write_text

from . import network

_LONG: Final = {
    "tcp": "t",
    "udp": "u",
    "listening": "l",
    "numeric": "n",
    "processes": "p",
    "all": "a",
    "programs": "p",
    "no-header": "H",
}
_LETTERS: Final = {"TCP": "t", "UDP": "u", "SCTP": "S"}
_PROGRAM_WIDTH: Final = 19
_COMMAND_WIDTH: Final = 15
"""The characters of a process's command that the kernel keeps."""


class Socket(Struct, frozen=True, kw_only=True):
    address: str
    """The address on which a program listens: an IPv4 address, `::`, or `*` for any."""
    port: int
    program: str = ""
    """What the process shows as its command; "" for a process that the user does not see."""
    pid: int = 0
    protocol: str = "TCP"

    @property
    def is_old(self) -> bool:
        """Return whether it is one of IPv4 only."""
        return "." in self.address


FindSockets: TypeAlias = "Callable[[Process], Generator[Effect, bytes | None, list[Socket]]]"
"""Returns what listens on the machine of a process."""


def _sockets(process: Process) -> Generator[Effect, bytes | None, list[Socket]]:
    """Return the sockets of the pod, with the processes of those that the container sees."""
    reply = yield from network.call(process, ListSockets())
    visible = {
        (other.pid, other.name[0].rpartition("/")[2]) for other in process.host.other_processes
    }  # Another container's process may have the same id.
    sockets = msgspec.json.decode(reply.body, type=list[Socket])
    return [
        each if (each.pid, each.program) in visible else replace(each, program="", pid=0) for each in sockets
    ]


def _chosen(options: ProgramOptions, sockets: Sequence[Socket]) -> list[Socket]:
    """Return the sockets that the options ask for: those that listen only with -l or -a, of the protocols of -t and -u, or of both."""
    if not options.has_any("la"):
        return []
    is_any = not options.has_any("tu")
    return [each for each in sockets if is_any or _LETTERS[each.protocol] in options]


def netstat(process: Process, find: FindSockets = _sockets) -> Run:
    options = parse_options(process.arguments, "tulnpaWe", long=_LONG)
    sockets = yield from find(process)
    is_busybox = process.host.has_busybox
    kinds = (
        "servers and established" if "a" in options else "only servers" if "l" in options else "w/o servers"
    )
    title = f"{'PID/Program name':<20}" if "p" in options else ""
    lines = [
        f"Active Internet connections ({kinds})",
        f"Proto Recv-Q Send-Q Local Address           Foreign Address         State       {title}",
    ]
    for each in _chosen(options, sockets):
        name = each.protocol.lower() + ("" if each.is_old or is_busybox else "6")
        address = f"{each.address if each.is_old else '::'}:{each.port}"
        foreign = "0.0.0.0:*" if each.is_old else ":::*"
        state = "LISTEN" if each.protocol == "TCP" else ""
        program = f"{each.pid}/{each.program}"[:_PROGRAM_WIDTH] if each.program else "-"
        program_column = f"{program:<20}" if "p" in options else ""
        lines.append(f"{name:<5}      0      0 {address:<23} {foreign:<23} {state:<11} {program_column}")
    yield write_text("".join(f"{line}\n" for line in lines))
    return 0


def ss(process: Process, find: FindSockets = _sockets) -> Run:
    options = parse_options(process.arguments, "tulnpaH4ex", long=_LONG)
    sockets = yield from find(process)
    shows_protocol = ("t" in options) is ("u" in options)
    rows = []
    if "H" not in options:
        title = "Netid " if shows_protocol else ""
        end = "Process" if "p" in options else ""
        rows = [f"{title}State  Recv-Q Send-Q {'Local Address:Port':>22} {'Peer Address:Port':>18}{end}"]
    for each in _chosen(options, sockets):
        state, queue = ("LISTEN", 4096) if each.protocol == "TCP" else ("UNCONN", 0)
        local, peer = (each.address, "0.0.0.0:*") if each.is_old else ("*", "*:*")
        kind = f"{each.protocol.lower():<6}" if shows_protocol else ""
        program = each.program.partition(":")[0][:_COMMAND_WIDTH]
        users = f' users:(("{program}",pid={each.pid},fd=9))' if "p" in options and program else ""
        rows.append(f"{kind}{state:<6} 0      {queue:<6} {f'{local}:{each.port}':>22} {peer:>18}{users}")
    yield write_text("".join(f"{row}\n" for row in rows))
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {"netstat": netstat, "ss": ss}
