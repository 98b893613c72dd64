"""The programs that ask whether a database answers: redis-cli ping, pg_isready, mysqladmin ping, mongosh with a ping.

Their other commands need data, and are not simulated.
"""

import re
from collections.abc import Generator
from typing import Final

from msgspec import Struct

from mockube.apimachinery.gotext import int_or_none
from mockube.container_runtime.simulated.network.calls import Connect
from mockube.container_runtime.simulated.shell.options import (
    ProgramOptions,
    simulated_options,
)
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Output,
    Process,
    Run,
    UnknownProgram,
    write_text,
)

from . import network

_LOCAL: Final = "127.0.0.1"
_MONGO_URL: Final = re.compile(r"(?:mongodb://)?(?:[^@/]*@)?([^:/?,]+)(?::([0-9]+))?(?:[/?,].*)?")
_REDIS: Final = {
    "-h": "host=",
    "-p": "port=",
    "-a": "password=",
    "--pass": "password=",
    "--user": "user=",
    "-n": "database=",
    "--no-auth-warning": "ignored",
    "-t": "timeout=",
}
_POSTGRES: Final = {
    "-h": "host=",
    "--host": "host=",
    "-p": "port=",
    "--port": "port=",
    "-U": "user=",
    "--username": "user=",
    "-d": "database=",
    "--dbname": "database=",
    "-t": "timeout=",
    "--timeout": "timeout=",
    "-q": "quiet",
    "--quiet": "quiet",
}
_MYSQL: Final = {
    "-h": "host=",
    "--host": "host=",
    "-P": "port=",
    "--port": "port=",
    "-u": "user=",
    "--user": "user=",
    "--password": "password",
    "-s": "silent",
    "--silent": "silent",
    "--connect-timeout": "timeout=",
    "--protocol": "protocol=",
    "-S": "socket=",
    "--socket": "socket=",
}
_MONGO: Final = {
    "--eval": "eval=",
    "--host": "host=",
    "--port": "port=",
    "--quiet": "quiet",
    "-u": "user=",
    "--username": "user=",
    "-p": "password=",
    "--password": "password=",
    "--authenticationDatabase": "database=",
    "--norc": "ignored",
}


class _Contact(Struct, frozen=True, kw_only=True):
    """The result of a connection to a database."""

    address: str = ""
    outcome: str = ""
    speaks: str = ""

    @property
    def is_known(self) -> bool:
        return bool(self.address)


def _contact(
    process: Process, host: str, port: int, limit: float = 1e9
) -> Generator[Effect, bytes | None, _Contact]:
    resolution = yield from network.resolve(process, host, limit=limit)
    if not resolution.addresses:
        return _Contact()
    address = resolution.addresses[0]
    reply = yield from network.call(process, Connect(address=address, port=port))
    if not reply.is_open:
        yield from network.wait_for_failure(reply, limit)
    return _Contact(address=address, outcome=reply.outcome, speaks=reply.speaks)


def _is_served(contact: _Contact, protocol: str) -> bool:
    """Return whether the server speaks the protocol; one whose protocol is unknown does."""
    return contact.outcome == "open" and contact.speaks in ("", protocol)


def _port(options: ProgramOptions, default: int) -> int:
    return int_or_none(options.get("port", "")) or default


def redis_cli(process: Process) -> Run:
    options = simulated_options(process, _REDIS)
    if [operand.lower() for operand in options.arguments] != ["ping"]:
        raise UnknownProgram(" ".join(process.argv))
    host, port = options.get("host", _LOCAL), _port(options, 6379)
    contact = yield from _contact(process, host, port)
    if not _is_served(contact, "redis"):
        reason = network.REASONS.get(contact.outcome, "Server closed the connection")
        problem = reason if contact.is_known else "Name or service not known"
        yield Output(2, f"Could not connect to Redis at {host}:{port}: {problem}\n".encode())
        return 1
    yield write_text("PONG\n")
    return 0


def pg_isready(process: Process) -> Run:
    options = simulated_options(process, _POSTGRES)
    host = options.get("host") or process.environment.get("PGHOST", "")
    port = _port(options, int_or_none(process.environment.get("PGPORT", "")) or 5432)
    limit = float(int_or_none(options.get("timeout", "")) or 3)
    is_socket = not host or host.startswith("/")
    contact = yield from _contact(process, _LOCAL if is_socket else host, port, limit)
    served = _is_served(contact, "postgres")
    if "quiet" not in options:
        name = host or ("/var/run/postgresql" if is_socket else host)
        yield write_text(f"{name}:{port} - {'accepting connections' if served else 'no response'}\n")
    return 0 if served else 2


def mysqladmin(process: Process) -> Run:
    arguments = [argument for argument in process.arguments if not re.fullmatch(r"-p.*", argument)]
    without_password = process.with_arguments([process.name, *arguments])
    options = simulated_options(without_password, _MYSQL)
    if options.arguments not in (["ping"], ["status"]):
        raise UnknownProgram(" ".join(without_password.argv))
    host, port = options.get("host", "localhost"), _port(options, 3306)
    contact = yield from _contact(process, host, port)
    if not _is_served(contact, "mysql"):
        problem = (
            f"Can't connect to MySQL server on '{host}:{port}' (111)"
            if contact.is_known
            else f"Unknown MySQL server host '{host}' (-2)"
        )
        yield Output(
            2, f"{process.name}: connect to server at '{host}' failed\nerror: '{problem}'\n".encode()
        )
        return 1
    if options.arguments == ["status"]:
        raise UnknownProgram(" ".join(without_password.argv))
    yield write_text("mysqld is alive\n")
    return 0


def mongosh(process: Process) -> Run:
    options = simulated_options(process, _MONGO)
    script = options.get("eval")
    if "ping" not in script:
        raise UnknownProgram(" ".join(process.argv))
    target = _MONGO_URL.fullmatch(options.get("host") or (options.arguments or [_LOCAL])[0])
    if target is None:
        raise UnknownProgram(" ".join(process.argv))
    host, port = target[1], _port(options, int_or_none(target[2] or "") or 27017)
    contact = yield from _contact(process, host, port, 30.0)
    if not _is_served(contact, "mongodb"):
        problem = f"connect ECONNREFUSED {contact.address}:{port}"
        if not contact.is_known:
            problem = f"getaddrinfo ENOTFOUND {host}"
        elif contact.outcome != "refused":
            problem = "Server selection timed out after 30000 ms"
        yield Output(2, f"MongoNetworkError: {problem}\n".encode())
        return 1
    yield write_text("1\n" if ".ok" in script else "{ ok: 1 }\n")
    return 0
