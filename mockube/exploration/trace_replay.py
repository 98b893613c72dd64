"""The objects of a cluster at each revision of a run, for invariants."""

from collections import defaultdict
from collections.abc import Mapping

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.operators.end_state import Identity

from .change import Change
from .invariants import RevisionState
from .trace import Trace

_Objects = defaultdict[str, dict[Identity, ReadOnlyTree]]
"""Objects by kind."""


class TraceReplay:
    """What existed before a run, to which its Changes are applied in their order."""

    def __init__(self, trace: Trace) -> None:
        self._operator = trace.operator
        self._existing: _Objects = defaultdict(dict)
        self._touched: _Objects = defaultdict(dict)
        for identity, tree in _before(trace).items():
            self._existing[identity[0]][identity] = tree
        self._cluster = {kind: [*objects.values()] for kind, objects in self._existing.items()}
        self._history = {kind: [*objects] for kind, objects in self._cluster.items()}

    def apply(self, change: Change) -> RevisionState:
        """Return the state after the next Change. It is valid until the following one."""
        kind, identity = change.identity[0], change.identity
        if change.before is not None:
            self._touched[kind].setdefault(identity, change.before)
        for objects in (self._existing[kind], self._touched[kind]):
            if change.after is None:
                objects.pop(identity, None)
            else:
                objects[identity] = change.after
        if change.after is not None:
            self._history.setdefault(kind, []).append(change.after)
        self._cluster[kind] = [*self._existing[kind].values()]
        return RevisionState(
            object=change.after,
            old_object=change.before,
            objects=[*self._touched[kind].values()],
            cluster=self._cluster,
            history=self._history,
            user=change.user,
            operator=self._operator,
        )


def _before(trace: Trace) -> Mapping[Identity, ReadOnlyTree]:
    """Return the objects that existed before the run."""
    first: dict[Identity, ReadOnlyTree | None] = {}
    for change in trace.changes:
        first.setdefault(change.identity, change.before)
    untouched = {identity: tree for identity, tree in trace.objects.items() if identity not in first}
    return {**untouched, **{identity: tree for identity, tree in first.items() if tree is not None}}
