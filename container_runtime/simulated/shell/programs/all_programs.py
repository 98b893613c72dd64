"""All programs by their names: those of mockube itself, and those that other distributions add."""

from collections.abc import Mapping
from typing import Final

from mockube.container_runtime.simulated.shell.invocation import run_shell
from mockube.container_runtime.simulated.shell.network_programs.programs import PROGRAMS as NETWORK_PROGRAMS
from mockube.container_runtime.simulated.shell.process import Program

from . import (
    agnhost,
    archives,
    awk,
    blocks,
    comparing,
    dates,
    encoding,
    entering,
    files,
    finding,
    launchers,
    lines,
    listing,
    packages,
    permissions,
    privileges,
    processes,
    searching,
    sed,
    stress,
    system,
    text,
    transforming,
)
from .installed_programs import GROUP, InstalledPrograms, LayeredPrograms
from .installed_servers import PROGRAMS as SERVERS

_OWN_PROGRAMS: Final[Mapping[str, Program]] = {
    **agnhost.PROGRAMS,
    **dict.fromkeys(("sh", "bash", "ash", "dash", "zsh"), run_shell),
    **system.PROGRAMS,
    **files.PROGRAMS,
    **blocks.PROGRAMS,
    **packages.PROGRAMS,
    **permissions.PROGRAMS,
    **privileges.PROGRAMS,
    **finding.PROGRAMS,
    **listing.PROGRAMS,
    **launchers.PROGRAMS,
    **processes.PROGRAMS,
    **text.PROGRAMS,
    **archives.PROGRAMS,
    **awk.PROGRAMS,
    **comparing.PROGRAMS,
    **dates.PROGRAMS,
    **encoding.PROGRAMS,
    **entering.PROGRAMS,
    **lines.PROGRAMS,
    **searching.PROGRAMS,
    **stress.PROGRAMS,
    **transforming.PROGRAMS,
    "sed": sed.sed,
    **NETWORK_PROGRAMS,
}
INSTALLED_PROGRAMS: Final = InstalledPrograms(GROUP)
PROGRAMS: Final = LayeredPrograms(_OWN_PROGRAMS, SERVERS, INSTALLED_PROGRAMS)
