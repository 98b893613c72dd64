"""The clients of databases: redis-cli, and those that ask whether a database answers, and whether it accepts a password.

Queries of data in SQL, and those of MongoDB, are not simulated.
"""

import re
from collections.abc import Callable, Generator
from typing import Final

from msgspec import Struct

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.hosts import is_loopback
from mockube.container_runtime.simulated.network.calls import Connect, Login
from mockube.container_runtime.simulated.shell.options import (
    ProgramOptions,
    simulated_options,
)
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Output,
    Process,
    Run,
    Sleep,
    UnknownProgram,
    write_text,
)
from mockube.container_runtime.simulated.shell.programs.inputs import read_standard_input

from . import network
from .redis_protocol import ErrorReply, RedisReply, encode_command, replies_in

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
_MYSQL_CLIENT: Final = {
    **_MYSQL,
    "-e": "execute=",
    "--execute": "execute=",
    "-D": "database=",
    "--database": "database=",
    "-N": "headless",
    "--skip-column-names": "headless",
    "-B": "batch",
    "--batch": "batch",
    "--ssl-mode": "ssl=",
    "--skip-ssl": "ignored",
    "--default-character-set": "charset=",
}
_PSQL: Final = {
    **_POSTGRES,
    "-c": "command=",
    "--command": "command=",
    "-f": "file=",
    "--file": "file=",
    "-t": "tuples",
    "--tuples-only": "tuples",
    "-A": "unaligned",
    "--no-align": "unaligned",
    "-w": "ignored",
    "--no-password": "ignored",
    "-v": "variable=",
    "-X": "ignored",
    "-l": "list",
    "--list": "list",
}
_CONSTANT: Final = re.compile(r"select\s+(\d{1,9})\s*;?", re.IGNORECASE)
"""A query that needs no data, with which clients ask whether a server answers."""
_SLEEP: Final = re.compile(r"select\s+((?:pg_)?sleep\((\d{1,6}(?:\.\d{1,3})?)\))\s*;?", re.IGNORECASE)
"""A query that keeps a connection open for a time."""
_POSTGRES_URL: Final = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?(?P<host>[^:/?]+)(?::(?P<port>\d+))?(?:[/?].*)?"
)
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
    is_full: bool = False

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
    return _Contact(address=address, outcome=reply.outcome, speaks=reply.speaks, is_full=reply.is_full)


def _is_served(contact: _Contact, protocol: str) -> bool:
    """Return whether the server speaks the protocol; one whose protocol is unknown does."""
    return contact.outcome == "open" and contact.speaks in ("", protocol)


def _port(options: ProgramOptions, default: int) -> int:
    return int_or_none(options.get("port", "")) or default


def redis_cli(process: Process) -> Run:
    """Send one command to a server of Redis, or those of the input, and print the replies as without a terminal."""
    options = simulated_options(process, _REDIS)
    host, port = options.get("host", _LOCAL), _port(options, 6379)
    password = options.get("password") or process.environment.get("REDISCLI_AUTH", "")
    data = (
        encode_command(options.arguments) if options.arguments else (yield from read_standard_input(process))
    )
    if password:
        data = encode_command(["AUTH", *filter(None, [options.get("user", "")]), password]) + data
    resolution = yield from network.resolve(process, host)
    address = next(iter(resolution.addresses), "")
    reply = (
        (yield from network.call(process, Connect(address=address, port=port, data=data)))
        if address
        else None
    )
    if reply is None or not reply.is_open or reply.speaks not in ("", "redis"):
        if reply is not None:
            yield from network.wait_for_failure(reply, 1e9)
        outcome = "" if reply is None else reply.outcome
        problem = (
            network.REASONS.get(outcome, "Server closed the connection")
            if outcome
            else "Name or service not known"
        )
        yield Output(2, f"Could not connect to Redis at {host}:{port}: {problem}\n".encode())
        return 1
    if not reply.speaks:
        if [word.lower() for word in options.arguments] != ["ping"]:
            raise UnknownProgram(" ".join(process.argv))
        yield write_text("PONG\n")
        return 0
    return (yield from _print_replies(process, options, reply.body, has_password=bool(password)))


def _print_replies(process: Process, options: ProgramOptions, data: bytes, *, has_password: bool) -> Run:
    texts = [*map(_text_of, replies_in(data))]
    if has_password:
        warning = "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe."
        if "password" in options and "ignored" not in options:
            yield process.report(warning)
        login, *texts = texts or [""]
        if login != "OK":
            yield process.report(f"AUTH failed: {login}")
    for text in texts:
        if "mockube: " in text:
            raise UnknownProgram(f"{process.name} {' '.join(options.arguments)}".strip())
        yield write_text(f"{text}\n")
    return 0


def _text_of(reply: RedisReply) -> str:
    """Return a reply as redis-cli prints it without a terminal: of an array each element on a line."""
    match reply:
        case None:
            return ""
        case list():
            return "\n".join(map(_text_of, reply))
        case ErrorReply(text):
            return text
        case _:
            return str(reply)


def mysql(process: Process) -> Run:
    """Connect to a server of MySQL; SQL itself is not simulated, but for a constant."""
    arguments, password = list[str](), process.environment.get("MYSQL_PWD", "")
    for argument in process.arguments:
        if argument.startswith(("-p", "--password=")):
            password = argument.removeprefix("--password=") if argument.startswith("--") else argument[2:]
        else:
            arguments.append(argument)
    options = simulated_options(process, _MYSQL_CLIENT, arguments)
    user, host, port = options.get("user", "root"), options.get("host", "localhost"), _port(options, 3306)
    resolution = yield from network.resolve(process, _LOCAL if host == "localhost" else host)
    if not resolution.addresses:
        yield process.report(f"ERROR 2005 (HY000): Unknown MySQL server host '{host}' (-2)")
        return 1
    query = options.get("execute").strip()
    login = Login(user=user, password=password)
    address = resolution.addresses[0]
    reply = yield from network.call(
        process, Connect(address=address, port=port, login=login, seconds=_seconds_of(query))
    )
    if not reply.is_open:
        yield from network.wait_for_failure(reply, 1e9)
        number = {"refused": 111, "timeout": 110, "unreachable": 113}.get(reply.outcome, 111)
        problem = f"ERROR 2003 (HY000): Can't connect to MySQL server on '{host}:{port}' ({number})"
        if host == "localhost":
            path = "/var/run/mysqld/mysqld.sock"
            problem = f"ERROR 2002 (HY000): Can't connect to local MySQL server through socket '{path}' (2)"
        yield process.report(problem)
        return 1
    if reply.speaks not in ("", "mysql"):
        yield process.report(
            "ERROR 2013 (HY000): Lost connection to MySQL server at 'reading initial communication packet', system error: 0"
        )
        return 1
    if reply.is_full or reply.is_denied:
        source = "localhost" if host in ("localhost", _LOCAL) else process.host.address
        uses = "YES" if password else "NO"
        yield process.report(
            "ERROR 1040 (HY000): Too many connections"
            if reply.is_full
            else f"ERROR 1045 (28000): Access denied for user '{user}'@'{source}' (using password: {uses})"
        )
        return 1
    is_headless = "headless" in options
    title = "" if is_headless else f"{query.rstrip('; ').partition(' ')[2].strip()}\n"
    return (
        yield from _run_query(
            process, query, f"{title}0\n", lambda value: f"{value}\n" * (1 if is_headless else 2)
        )
    )


def _seconds_of(query: str) -> float:
    """Return how long a query takes that only waits; 0 for another one."""
    match = _SLEEP.fullmatch(query)
    return 0.0 if match is None else float(match[2])


def psql(process: Process) -> Run:
    """Connect to a server of PostgreSQL; SQL itself is not simulated, but for a constant."""
    options = simulated_options(process, _PSQL)
    words, environment = options.arguments, process.environment
    url = _POSTGRES_URL.fullmatch(words[0]) if words else None
    parts = url.groupdict(default="") if url else {}
    host = parts.get("host") or options.get("host") or environment.get("PGHOST", "")
    user = parts.get("user") or options.get("user") or environment.get("PGUSER", "") or "root"
    password = parts.get("password") or environment.get("PGPASSWORD", "")
    port = int_or_none(parts.get("port", "")) or _port(
        options, int_or_none(environment.get("PGPORT", "")) or 5432
    )
    is_socket = not host or host.startswith("/")
    resolution = yield from network.resolve(process, _LOCAL if is_socket else host)
    if not resolution.addresses:
        problem = f'could not translate host name "{host}" to address: Name or service not known'
        yield process.report(f"psql: error: {problem}")
        return 2
    address = resolution.addresses[0]
    is_trusted = is_socket or is_loopback(address)  # as in the pg_hba.conf of the image
    login = Login(user=user, password=password, is_trusted=is_trusted)
    query = options.get("command").strip()
    reply = yield from network.call(
        process, Connect(address=address, port=port, login=login, seconds=_seconds_of(query))
    )
    place = f'connection to server at "{host}" ({address}), port {port} failed: '
    if is_socket:
        place = f'connection to server on socket "/var/run/postgresql/.s.PGSQL.{port}" failed: '
    if not reply.is_open:
        yield from network.wait_for_failure(reply, 1e9)
        reason = "No such file or directory" if is_socket else network.REASONS.get(reply.outcome, "")
        hint = (
            "locally and accepting connections on that socket?"
            if is_socket
            else "on that host and accepting TCP/IP connections?"
        )
        yield process.report(f"psql: error: {place}{reason}\n\tIs the server running {hint}")
        return 2
    if reply.speaks not in ("", "postgres"):
        yield process.report(f"psql: error: {place}received invalid response to SSL negotiation: H")
        return 2
    if reply.is_full or reply.is_denied:
        problem = (
            "FATAL:  sorry, too many clients already"
            if reply.is_full
            else f'FATAL:  role "{user}" does not exist'
            if is_trusted
            else f'FATAL:  password authentication failed for user "{user}"'
            if password
            else "fe_sendauth: no password supplied"
        )
        yield process.report(f"psql: error: {place}{problem}")
        return 2
    is_bare = "tuples" in options
    return (
        yield from _run_query(
            process,
            query,
            "\n" if is_bare else " pg_sleep \n----------\n \n(1 row)\n\n",
            lambda value: f"{value}\n" if is_bare else f" ?column? \n----------\n {value:>8}\n(1 row)\n\n",
        )
    )


def _run_query(process: Process, query: str, slept: str, text_of: Callable[[str], str]) -> Run:
    """Print the result of a query for a constant, or that of one that only waits; others are not simulated."""
    if seconds := _seconds_of(query):
        yield Sleep(seconds)
        yield write_text(slept)
        return 0
    constant = _CONSTANT.fullmatch(query)
    if constant is None:
        raise UnknownProgram(f"SQL of {process.name}")
    yield write_text(text_of(constant[1]))
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
    if contact.is_full or not _is_served(contact, "mysql"):
        problem = (
            "Too many connections"
            if contact.is_full
            else (
                f"Can't connect to MySQL server on '{host}:{port}' (111)"
                if contact.is_known
                else f"Unknown MySQL server host '{host}' (-2)"
            )
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
