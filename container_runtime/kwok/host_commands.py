"""Commands of this machine that kwok's Exec runs instead of those of a container."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.process.command import CommandSpec, Identity, find_program
from mockube.container_runtime.process.local_process import LocalProcess, start_process
from mockube.container_runtime.start_errors import StartError


class HostCommands:
    """Starts commands of this machine for kwok's Exec."""

    def __init__(self, entry: ReadOnlyTree) -> None:
        self._entry = entry

    async def start_exec(
        self, command: Sequence[str], *, stdin: bool = False, terminal: bool = False
    ) -> LocalProcess:
        local = self._entry.get("local") or {}
        user = local.get("securityContext") or {}
        if user and os.geteuid() != 0:
            raise StartError("only root can run commands as another user")
        environment = exec_variables(self._entry, {"PATH": os.environ.get("PATH") or os.defpath})
        directory, group = Path(local.get("workDir") or "/"), user.get("runAsGroup")
        spec = CommandSpec(
            argv=[find_program(command[0], environment, directory), *command[1:]],
            environment=environment,
            directory=directory,
            identity=Identity(user=user.get("runAsUser"), groups=() if group is None else (group,)),
        )
        return await start_process(spec, stdin=stdin, terminal=terminal)

    async def end_exec(self, process: LocalProcess) -> None:
        await process.end()


def exec_variables(entry: ReadOnlyTree, base: Mapping[str, str]) -> dict[str, str]:
    local: Mapping[str, Any] = entry.get("local") or {}
    return {**base, **{variable["name"]: variable.get("value") or "" for variable in local.get("envs") or ()}}
