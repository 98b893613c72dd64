"""httpd of busybox: a server that runs until it is stopped. Its port is open and answers, see `servers.server_programs`."""

from collections.abc import Mapping
from math import inf
from typing import Final

from mockube.container_runtime.simulated.shell.options import has_letter
from mockube.container_runtime.simulated.shell.process import Process, Program, Run, Sleep, UnknownProgram


def httpd(process: Process) -> Run:
    if any(argument.startswith("-D") for argument in process.arguments):
        raise UnknownProgram(process.name)  # Apache's
    if any(has_letter(argument, "f") for argument in process.arguments):
        yield Sleep(inf)
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {"httpd": httpd}
