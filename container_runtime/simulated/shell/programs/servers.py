"""Servers that run until they are stopped. Their ports are open and answer, see `servers.server_programs`."""

from collections.abc import Mapping
from math import inf
from typing import Final

from mockube.container_runtime.behavior import NOT_FOUND
from mockube.container_runtime.simulated.shell.options import has_letter
from mockube.container_runtime.simulated.shell.process import (
    Output,
    Process,
    Program,
    Run,
    Sleep,
    UnknownProgram,
    listening,
)


def httpd(process: Process) -> Run:
    if any(argument.startswith("-D") for argument in process.arguments):
        raise UnknownProgram(process.name)  # Apache's
    if any(has_letter(argument, "f") for argument in process.arguments):
        yield Sleep(inf)
    return 0


_NO_TEXT: Final = "Missing -text option!\n"
_LISTENING: Final = ("TCP-L", "TCP4-L", "TCP6-L", "OPENSSL-L", "SSL-L", "TCP-LISTEN", "TCP4-LISTEN", "TCP6-LISTEN", "OPENSSL-LISTEN", "SSL-LISTEN")  # fmt: skip
"""The addresses at which socat listens."""


def _http_echo(process: Process) -> Run:
    has_text = any(word.lstrip("-").partition("=")[0] == "text" for word in process.arguments)
    if not has_text and not process.environment.get("ECHO_TEXT"):
        yield Output(2, _NO_TEXT.encode())
        return NOT_FOUND
    process.host.note_call(process)
    yield Sleep(inf)
    return 0


def _socat(process: Process) -> Run:
    process.host.note_call(process)
    if not any(word.partition(":")[0].upper() in _LISTENING for word in process.arguments):
        raise UnknownProgram(process.path_name or process.name)
    yield Sleep(inf)
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {"httpd": listening(httpd)}
OTHERS: Final[Mapping[str, Program]] = {"http-echo": _http_echo, "socat": _socat}
"""The servers of which no image counts as having them."""
