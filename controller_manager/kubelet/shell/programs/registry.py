"""All programs by their names."""

from collections.abc import Mapping
from typing import Final

from mockube.controller_manager.kubelet.shell.invocation import run_shell
from mockube.controller_manager.kubelet.shell.network_programs.programs import (
    PROGRAMS as NETWORK_PROGRAMS,
)
from mockube.controller_manager.kubelet.shell.process import Program
from mockube.controller_manager.kubelet.shell.programs import (
    agnhost,
    archives,
    files,
    launchers,
    processes,
    sed,
    system,
    text,
)

PROGRAMS: Final[Mapping[str, Program]] = {
    **agnhost.PROGRAMS,
    **dict.fromkeys(("sh", "bash", "ash", "dash", "zsh"), run_shell),
    **system.PROGRAMS,
    **files.PROGRAMS,
    **launchers.PROGRAMS,
    **processes.PROGRAMS,
    **text.PROGRAMS,
    "sed": sed.sed,
    "tar": archives.tar,
    **NETWORK_PROGRAMS,
}
