"""How an operator is started for a run: a command of the user, or a function of Python in a process of its own."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from mockube.operators.function_process import FunctionServer, OperatorFunction
from mockube.operators.process import OperatorProcess, RunningOperator, check_command


class Starter(Protocol):
    @property
    def text(self) -> str:
        """How the operator is started, for reports."""

    def start(self, kubeconfig: Path, environment: Mapping[str, str]) -> RunningOperator: ...

    def close(self) -> None: ...


class CommandStarter:
    def __init__(self, command: Sequence[str]) -> None:
        check_command(command)
        self._command = command

    @property
    def text(self) -> str:
        return shlex.join(self._command)

    def start(self, kubeconfig: Path, environment: Mapping[str, str]) -> RunningOperator:
        return OperatorProcess(self._command, kubeconfig=kubeconfig, environment=environment)

    def close(self) -> None:
        """Do nothing: each process ends with its run."""


class FunctionStarter:
    def __init__(self, main: OperatorFunction) -> None:
        self._main, self._server = main, FunctionServer(main)

    @property
    def text(self) -> str:
        name = getattr(self._main, "__qualname__", "")  # a partial and an object with __call__ have none
        return f"{self._main.__module__}.{name}" if name else repr(self._main)

    def start(self, kubeconfig: Path, environment: Mapping[str, str]) -> RunningOperator:
        return self._server.start(kubeconfig, environment)

    def close(self) -> None:
        self._server.close()
