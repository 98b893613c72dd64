"""ss, netstat and ip: the sockets, addresses and routes of a node."""

from collections.abc import Generator
from typing import Any, Final

from mockube.container_runtime.simulated.node.services import ServiceError, ask
from mockube.container_runtime.simulated.shell.options import parse_options
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Process,
    ProgramUsageError,
    Run,
    write_text,
)

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


def ss(process: Process) -> Run:
    options = parse_options(process.arguments, "tulnpaH4ex", long=_LONG)
    sockets = (yield from _machine(process))["sockets"]
    rows = [
        f"LISTEN 0      4096   {each['address'] + ':' + str(each['port']):>22} {'0.0.0.0:*' if '.' in each['address'] else '[::]:*':>18}"
        + (f' users:(("{each["program"]}",pid={each["pid"]},fd=9))' if "p" in options else "")
        for each in sockets
        if "u" not in options or "t" in options
    ]
    header = "State  Recv-Q Send-Q      Local Address:Port  Peer Address:Port" + (
        "Process" if "p" in options else ""
    )
    yield write_text("".join(f"{row}\n" for row in ([] if "H" in options else [header]) + rows))
    return 0


def netstat(process: Process) -> Run:
    options = parse_options(process.arguments, "tulnpaWe", long=_LONG)
    sockets = (yield from _machine(process))["sockets"]
    title = "    PID/Program name" if "p" in options else ""
    lines = [
        "Active Internet connections (only servers)",
        f"Proto Recv-Q Send-Q Local Address           Foreign Address         State  {title}",
    ]
    for each in sockets if "u" not in options or "t" in options else ():
        is_old = "." in each["address"]
        address = f"{each['address'] if is_old else ':::'[:2]}:{each['port']}"
        program = f"     {each['pid']}/{each['program']}" if "p" in options else ""
        protocol, foreign = ("tcp", "0.0.0.0:*") if is_old else ("tcp6", ":::*")
        lines.append(f"{protocol:<5}      0      0 {address:<23} {foreign:<23} LISTEN {program}")
    yield write_text("".join(f"{line}\n" for line in lines))
    return 0


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
