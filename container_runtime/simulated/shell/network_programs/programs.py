"""The list of the programs that use the network."""

from collections.abc import Mapping
from typing import Final

from mockube.container_runtime.simulated.shell.process import (
    Output,
    Process,
    Program,
    Run,
    UnknownProgram,
    listening,
)

from . import databases, names, sockets
from .connections import ping
from .curl import curl
from .netcat import nc
from .wget import wget


def _kubectl(process: Process) -> Run:
    from .kubectl.program import (  # noqa: PLC0415 - for few
        kubectl,
    )

    return (yield from kubectl(process))


def _certgen(process: Process) -> Run:
    from .certgen import certgen  # noqa: PLC0415 - for few

    return (yield from certgen(process))


def _coredns(process: Process) -> Run:
    from .coredns import coredns  # noqa: PLC0415 - for few

    return (yield from coredns(process))


def _kube_proxy(process: Process) -> Run:
    from .kube_proxy import kube_proxy  # noqa: PLC0415 - for few

    return (yield from kube_proxy(process))


_PROGRAMS: Final[Mapping[str, Program]] = {
    "wget": wget,
    "curl": curl,
    **dict.fromkeys(("nc", "ncat", "netcat"), listening(nc)),
    "ping": ping,
    "nslookup": names.nslookup,
    "getent": names.getent,
    "host": names.host,
    "dig": names.dig,
    "redis-cli": databases.redis_cli,
    "valkey-cli": databases.redis_cli,
    "pg_isready": databases.pg_isready,
    "mysql": databases.mysql,
    "mariadb": databases.mysql,
    "psql": databases.psql,
    "mysqladmin": databases.mysqladmin,
    "mariadb-admin": databases.mysqladmin,
    "mongosh": databases.mongosh,
    "mongo": databases.mongosh,
    **sockets.PROGRAMS,
    "kubectl": _kubectl,
    "coredns": listening(_coredns),
    "kube-proxy": listening(_kube_proxy),
    "kube-webhook-certgen": _certgen,
}


def report_unknown(program: Program) -> Program:
    """Return a program that reports what it does not simulate, where a client sees it, instead of raising it."""

    def run(process: Process) -> Run:
        try:
            return (yield from program(process))
        except UnknownProgram as error:
            if process.host.is_strict:
                raise
            process.host.on_unknown(str(error))
            yield Output(2, f"mockube: {error} does not run: it is not simulated\n".encode())
            return 1

    return run


PROGRAMS: Final[Mapping[str, Program]] = {
    name: report_unknown(program) for name, program in _PROGRAMS.items()
}
