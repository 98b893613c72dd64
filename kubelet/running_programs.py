"""Which programs of static pods run on which nodes: what else depends on that follows it, such as a leader election."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from posixpath import basename

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component import ComponentContext


class RunningPrograms:
    def __init__(self) -> None:
        self._runs = defaultdict[str, dict[str, int]](dict)
        """The nodes on which a static pod runs a program, with the restarts of its container, by the program's name."""
        self._handlers: list[Callable[[], None]] = []

    def runs(self, program: str) -> Mapping[str, int]:
        """Return the nodes on which a program runs, with the number of its run there."""
        return dict(self._runs[program])

    def on_change(self, handler: Callable[[], None]) -> None:
        """Call the handler whenever a program begins to run on a node, or runs there no more."""
        self._handlers.append(handler)

    def start(self, node: str, program: str) -> None:
        """Note that a program runs on a node of a new cluster, before its static pods are read."""
        if node not in self._runs[program]:
            self._runs[program][node] = 0

    def set(self, node: str, programs: Mapping[str, int]) -> None:
        """Note the programs that run on a node, with the number of each run."""
        changed = False
        for program in {*self._runs, *programs}:
            runs = self._runs[program]
            if runs.get(node) == programs.get(program):
                continue
            changed = True
            if program in programs:
                runs[node] = programs[program]
            else:
                del runs[node]
        for handler in self._handlers if changed else ():
            handler()


def running_programs(context: ComponentContext) -> RunningPrograms:
    """Return what runs on the nodes of this manager; the first call creates it."""
    present: RunningPrograms | None = context.shared.get(RunningPrograms)
    if present is None:
        present = context.shared[RunningPrograms] = RunningPrograms()
    return present


def programs_of(pod: ReadOnlyTree, status: ReadOnlyTree) -> Iterator[tuple[str, int]]:
    """Yield the programs of the containers that run by the status of their pod, each with the restarts of its container."""
    statuses = status.get("containerStatuses") or ()
    running = {
        each["name"]: each.get("restartCount") or 0
        for each in statuses
        if "running" in (each.get("state") or {})
    }
    for container in pod["spec"].get("containers") or ():
        if container.get("name") in running and (program := program_of(container)):
            yield program, running[container["name"]]


def program_of(container: ReadOnlyTree) -> str:
    """Return the name of the program of a container's command; "" if it has none."""
    command = container.get("command") or ("",)
    return basename(str(command[0]))
