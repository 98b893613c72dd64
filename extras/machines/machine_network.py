"""ss, netstat and ip: the sockets, addresses and routes of a node."""

from collections.abc import Generator
from typing import Any

import msgspec

from mockube.container_runtime.simulated.node.services import ServiceError, ask
from mockube.container_runtime.simulated.shell.network_programs import sockets
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Process,
    ProgramUsageError,
    Run,
    write_text,
)


def ss(process: Process) -> Run:
    return (yield from sockets.ss(process, _sockets))


def netstat(process: Process) -> Run:
    return (yield from sockets.netstat(process, _sockets))


def _sockets(process: Process) -> Generator[Effect, bytes | None, list[sockets.Socket]]:
    machine = yield from _machine(process)
    return msgspec.convert(machine["sockets"], list[sockets.Socket])


def ip(process: Process) -> Run:
    words = [argument for argument in process.arguments if not argument.startswith("-")]
    machine = yield from _machine(process)
    subject = words[0] if words else ""
    if subject and "address".startswith(subject):
        yield write_text(_addresses(machine, with_addresses=True))
    elif subject and "link".startswith(subject):
        yield write_text(_addresses(machine, with_addresses=False))
    elif subject and "route".startswith(subject):
        yield write_text("".join(f"{line}\n" for line in machine["routes"]))
    elif not subject:
        raise ProgramUsageError("Usage: ip [ OPTIONS ] OBJECT { COMMAND | help }", 255)
    else:
        raise ProgramUsageError(f'Object "{subject}" is unknown, try "ip help".')
    return 0


def _addresses(machine: dict[str, Any], *, with_addresses: bool) -> str:
    lines: list[str] = []
    for number, (name, flags, kind, mac, address) in enumerate(machine["interfaces"], start=1):
        state = "UNKNOWN" if name == "lo" else "UP"
        mtu = 65536 if name == "lo" else 1500
        lines.append(
            f"{number}: {name}: <{flags}> mtu {mtu} qdisc noqueue state {state} group default qlen 1000"
        )
        lines.append(
            f"    link/{kind} {mac} brd {'00:00:00:00:00:00' if name == 'lo' else 'ff:ff:ff:ff:ff:ff'}"
        )
        if with_addresses:
            scope = "host" if name == "lo" else "global"
            lines += [
                f"    inet {address} scope {scope} {name}",
                "       valid_lft forever preferred_lft forever",
            ]
    return "".join(f"{line}\n" for line in lines)


def _machine(process: Process) -> Generator[Effect, bytes | None, dict[str, Any]]:
    try:
        machine: dict[str, Any] = yield from ask(process, "machine")
    except ServiceError as error:
        raise ProgramUsageError(str(error)) from error
    return machine
