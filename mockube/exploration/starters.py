"""How an operator is started for a run: a command of the user, or a function of Python in a process of its own."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from mockube.container_runtime.process.mount_namespace import Mounts
from mockube.failure import Failure
from mockube.operators.function_process import FunctionServer, OperatorFunction
from mockube.operators.operator_pod import paths_of_command
from mockube.operators.process import OperatorProcess, RunningOperator, check_command

_WRITES_NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"
_BYTECODE_FOLDER: Final = "PYTHONPYCACHEPREFIX"


class Starter(Protocol):
    @property
    def text(self) -> str:
        """How the operator is started, for reports."""

    @property
    def paths(self) -> Sequence[Path]:
        """The files and folders of this machine that the operator needs."""

    def start(
        self, kubeconfig: Path, environment: Mapping[str, str], mounts: Mounts | None = None, server: str = ""
    ) -> RunningOperator:
        """Start the operator, with the mounts of its pod if it stands for one; with the URL of its server, in its own network."""

    def close(self) -> None: ...


class CommandStarter:
    def __init__(self, command: Sequence[str], folder: Path | None = None) -> None:
        check_command(command, folder)
        self._command, self._folder = command, folder

    @property
    def text(self) -> str:
        return shlex.join(self._command)

    @property
    def paths(self) -> Sequence[Path]:
        folder = [] if self._folder is None else [self._folder.absolute()]
        return [*folder, *paths_of_command(self._command)]

    def start(
        self, kubeconfig: Path, environment: Mapping[str, str], mounts: Mounts | None = None, server: str = ""
    ) -> RunningOperator:
        return OperatorProcess(
            self._command,
            kubeconfig=kubeconfig,
            environment=environment,
            folder=self._folder,
            mounts=mounts,
            server=server,
        )

    def close(self) -> None:
        """Do nothing: each process ends with its run."""


def bytecode_variables(folder: Path) -> Mapping[str, str]:
    """Return the variables with which an operator in Python stores what it has compiled, if it would not store it elsewhere.

    An operator is started hundreds of times, and to compile its libraries takes longer than everything else.
    """
    if not os.environ.get(_WRITES_NO_BYTECODE) or os.environ.get(_BYTECODE_FOLDER):
        return {}
    return {_WRITES_NO_BYTECODE: "", _BYTECODE_FOLDER: str(folder / "bytecode")}


class FunctionStarter:
    def __init__(self, main: OperatorFunction) -> None:
        self._main, self._server = main, FunctionServer(main)

    @property
    def text(self) -> str:
        name = getattr(self._main, "__qualname__", "")  # a partial and an object with __call__ have none
        return f"{self._main.__module__}.{name}" if name else repr(self._main)

    @property
    def paths(self) -> Sequence[Path]:
        return [Path(each).absolute() for each in sys.path if each]

    def start(
        self, kubeconfig: Path, environment: Mapping[str, str], mounts: Mounts | None = None, server: str = ""
    ) -> RunningOperator:
        if server:
            raise Failure(
                "operator.ownNetwork: an operator that is a function has this machine's; use a command"
            )
        return self._server.start(kubeconfig, environment, mounts)

    def close(self) -> None:
        self._server.close()
