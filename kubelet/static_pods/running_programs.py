"""Which programs of static pods run on which nodes: what else depends on that follows it, such as a leader election."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from posixpath import basename

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component import ComponentContext


class RunningPrograms:
    def __init__(self) -> None:
        self._nodes = defaultdict[str, set[str]](set)
        """The nodes on which a static pod runs a program, by the program's name."""
        self._handlers: list[Callable[[], None]] = []

    def nodes(self, program: str) -> frozenset[str]:
        return frozenset(self._nodes[program])

    def on_change(self, handler: Callable[[], None]) -> None:
        """Call the handler whenever a program begins to run on a node, or runs there no more."""
        self._handlers.append(handler)

    def set(self, node: str, programs: Collection[str]) -> None:
        """Note the programs that run on a node."""
        changed = False
        for program in {*self._nodes, *programs}:
            nodes = self._nodes[program]
            if (program in programs) == (node in nodes):
                continue
            changed = True
            if program in programs:
                nodes.add(node)
            else:
                nodes.discard(node)
        for handler in self._handlers if changed else ():
            handler()


def running_programs(context: ComponentContext) -> RunningPrograms:
    """Return what runs on the nodes of this manager; the first call creates it."""
    present: RunningPrograms | None = context.shared.get(RunningPrograms)
    if present is None:
        present = context.shared[RunningPrograms] = RunningPrograms()
    return present


def programs_of(pod: ReadOnlyTree, status: ReadOnlyTree) -> Iterator[str]:
    """Yield the programs of the containers that run by the status of their pod."""
    statuses = status.get("containerStatuses") or ()
    running = {each["name"] for each in statuses if "running" in (each.get("state") or {})}
    for container in pod["spec"].get("containers") or ():
        if container.get("name") in running and (program := program_of(container)):
            yield program


def program_of(container: ReadOnlyTree) -> str:
    """Return the name of the program of a container's command; "" if it has none."""
    command = container.get("command") or ("",)
    return basename(str(command[0]))
