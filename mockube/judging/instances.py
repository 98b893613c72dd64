"""The running instances of an operator under test."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from mockube.operators.operator_pod import OperatorPod, paths_of_command
from mockube.operators.process import OperatorEnd, OperatorProcess

_SHOWN_LINES: Final = 8
_SHOWN_CHARACTERS: Final = 300
_STATUS: Final = "VmRSS:"


class Instance(Protocol):
    """One instance of an operator, as a kubelet sees a container."""

    is_stopped: bool
    """It was stopped by the test, and did not end by itself."""

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""

    def kill(self) -> OperatorEnd: ...

    def stop(self, grace: float = 5.0) -> OperatorEnd: ...

    def restart(self) -> None:
        """Start it again, after it was stopped, was killed or has ended."""

    def last_lines(self) -> str: ...

    def memory(self) -> int | None:
        """The resident memory in bytes; None if it is not known."""


class ProcessInstance:
    """The user's command as a process of this machine."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        kubeconfig: Path,
        environment: Mapping[str, str],
        pod: OperatorPod | None = None,
    ) -> None:
        """Start the command, with the files of a pod if it stands for one."""
        self._command, self._kubeconfig, self._environment, self._pod = command, kubeconfig, environment, pod
        self.is_stopped = False
        self._process = self._start()

    def _start(self) -> OperatorProcess:
        mounts = None
        if self._pod is not None:
            mounts = self._pod.mounts([self._kubeconfig, *paths_of_command(self._command)])
        return OperatorProcess(
            self._command, kubeconfig=self._kubeconfig, environment=self._environment, mounts=mounts
        )

    @property
    def code(self) -> int | None:
        return self._process.code

    def kill(self) -> OperatorEnd:
        self.is_stopped = True
        return self._process.kill()

    def stop(self, grace: float = 5.0) -> OperatorEnd:
        self.is_stopped = True
        return self._process.stop(grace)

    def restart(self) -> None:
        self._process.kill()
        self._process = self._start()
        self.is_stopped = False

    def last_lines(self) -> str:
        lines = self._process.log.text().strip().splitlines()[-_SHOWN_LINES:]
        return "\n".join(line.strip()[:_SHOWN_CHARACTERS] for line in lines)

    def memory(self) -> int | None:
        """Return the resident memory of the processes of the command; of Linux only."""
        sizes = [size for pid in self._process.pids() if (size := _memory_of(pid)) is not None]
        return sum(sizes) if sizes else None


def _memory_of(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith(_STATUS)), "")
    return int(found.split()[1]) * 1024 if found else None
