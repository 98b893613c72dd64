"""The servers that programs of containers have started or reloaded, by their containers: they say which ports are open, and what answers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.records import Records
from mockube.container_runtime.runs import container_status
from mockube.container_runtime.simulated.server_contract import RunningServer
from mockube.container_runtime.simulated.shell.process import ProgramCall


class _Entry(Struct, frozen=True):
    restarts: int
    server: RunningServer
    is_live: bool
    """Whether the command of the container runs in real time, and starts the server itself."""


class _Entries(dict[str, _Entry]):
    """The servers of a pod by the container's name."""


_NONE: Final[Mapping[str, _Entry]] = {}


class _Calls(dict[str, tuple[int, Sequence[ProgramCall]]]):
    """The programs that may listen and that the commands of a pod in real time have called, with the number of the run, by the container's name."""


class RunningServers:
    def __init__(self, records: Records) -> None:
        self._records = records

    def start(self, uid: str, name: str, restarts: int, server: RunningServer) -> None:
        """Note the server of a run that begins, and which it may start."""
        self._records.ensure(uid, _Entries)[name] = _Entry(restarts, server, is_live=True)

    def note_calls(self, uid: str, name: str, restarts: int, calls: Sequence[ProgramCall]) -> None:
        """Note the programs that a run in real time calls, to which it adds."""
        self._records.ensure(uid, _Calls)[name] = restarts, calls

    def calls(self, pod: ReadOnlyTree, name: str) -> Sequence[ProgramCall] | None:
        """Return the programs that may listen and that the present run of a container has called; None for one that is not in real time."""
        of_pod = self._records.find(meta.uid(pod), _Calls)
        noted = None if of_pod is None else of_pod.get(name)
        restarts = (container_status(pod, name) or {}).get("restartCount") or 0
        return noted[1] if noted is not None and noted[0] == restarts else None

    def end(self, uid: str, name: str, restarts: int) -> None:
        """Note the end of a run."""
        entry = self._of_uid(uid).get(name)
        if entry is not None and entry.restarts == restarts:
            entry.server.configuration = None

    def of_run(
        self, uid: str, name: str, restarts: int, make: Callable[[], RunningServer] = RunningServer
    ) -> RunningServer:
        """Return the server of a run, for the command of a client; `make` returns the one of a run without."""
        entry = self._of_uid(uid).get(name)
        if entry is None or entry.restarts != restarts:
            entry = _Entry(restarts, make(), is_live=False)
            self._records.ensure(uid, _Entries)[name] = entry
        return entry.server

    def is_starting(self, uid: str, name: str) -> bool:
        """Return whether a program of a container reads a configuration."""
        entry = self._of_uid(uid).get(name)
        return entry is not None and entry.server.is_starting

    def find(self, pod: ReadOnlyTree, name: str) -> RunningServer | None:
        """Return the server that a program has started in the present run of a container, also one that has not read its configuration yet."""
        entry = self._of_uid(meta.uid(pod)).get(name)
        if entry is None or not (entry.is_live or entry.server.configuration):
            return None
        restarts = (container_status(pod, name) or {}).get("restartCount") or 0
        return entry.server if entry.restarts == restarts else None

    def of_pod(self, pod: ReadOnlyTree) -> Mapping[str, RunningServer]:
        """Return the servers that programs have started in the present runs of a pod's containers, by their names.

        A container of which the status does not say yet that it runs is one of them, as for its own hooks.
        """
        found = ((name, self.find(pod, name)) for name in self._of_uid(meta.uid(pod)))
        return {name: server for name, server in found if server is not None}

    def _of_uid(self, uid: str) -> Mapping[str, _Entry]:
        return self._records.find(uid, _Entries) or _NONE
