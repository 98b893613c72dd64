"""Which events an operator gets, from the Changes of a run and from the watches that it has opened."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from mockube.apimachinery import labels, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver import fields
from mockube.operators.end_state import Identity, Varying, end_state
from mockube.operators.writes import LEASES

from .change import Change
from .plans import OperatorEvent
from .trace import OperatorRequest, Trace

MAX_EVENTS: Final = 500
"""How many events plans are made of."""
_Group = tuple[str, str, str, str]
"""The type, the resource, the namespace and the name of an event."""


class OperatorWatch(Struct, frozen=True, kw_only=True):
    """What a watch of the operator selects."""

    resource: str
    namespace: str
    label_selector: labels.Selector
    field_selector: fields.Selector

    def type_of(self, change: Change) -> str:
        """Return the type of the event that a change is for the watch; "" for none."""
        was, is_now = self._selects(change.before), self._selects(change.after)
        if is_now:
            return "MODIFIED" if was else "ADDED"
        return "DELETED" if was else ""

    def _selects(self, tree: ReadOnlyTree | None) -> bool:
        if tree is None or self.namespace not in ("", meta.namespace(tree)):
            return False
        of_object = {"metadata.name": meta.name(tree), "metadata.namespace": meta.namespace(tree)}
        known = fields.Selector(tuple(term for term in self.field_selector.terms if term.field in of_object))
        return self.label_selector.matches(meta.labels(tree)) and known.matches(of_object)


def watches_of(requests: Sequence[OperatorRequest]) -> Sequence[OperatorWatch]:
    """Return what the operator watches, but for Leases."""
    watches = (each for each in requests if each.verb == "watch" and not each.is_error)
    return [*dict.fromkeys(_watch(each) for each in watches if each.resource != LEASES)]


def _watch(request: OperatorRequest) -> OperatorWatch:
    query = parse_qs(urlsplit(request.uri).query)
    (label_selector,), (field_selector,) = (
        query.get(name, [""])[:1] for name in ("labelSelector", "fieldSelector")
    )
    names = f"metadata.name={request.name}" if request.name and not field_selector else field_selector
    return OperatorWatch(
        resource=request.resource,
        namespace=request.namespace,
        label_selector=labels.parse(label_selector),
        field_selector=fields.parse(names),
    )


def learn_events(first: Trace, second: Trace, varying: Varying) -> Mapping[OperatorEvent, Sequence[str]]:
    """Return the events that the operator gets in both runs, each with the other resources of which it gets events later."""
    groups = [*_groups(first, varying)]
    counts = Counter(_groups(second, varying))
    seen: Counter[_Group] = Counter()
    events: dict[OperatorEvent, Sequence[str]] = {}
    for index, group in enumerate(groups[:MAX_EVENTS]):
        type_, resource, namespace, name = group
        event = OperatorEvent(
            type=type_, resource=resource, namespace=namespace, name=name, number=seen[group]
        )
        seen[group] += 1
        if event.number < counts[group]:
            events[event] = sorted({each[1] for each in groups[index:]} - {resource})
    return events


def _groups(trace: Trace, varying: Varying) -> Iterator[_Group]:
    """Yield the events of a run, in their order."""
    watches = watches_of(trace.requests)
    names = _names(trace, varying)
    for change in trace.changes:
        types = (each.type_of(change) for each in watches if each.resource == change.resource)
        if type_ := next(filter(None, types), ""):
            yield type_, change.resource, change.identity[1], names[change.identity]


def _names(trace: Trace, varying: Varying) -> Mapping[Identity, str]:
    """Return the names of all objects of a run, with a star for what is random."""
    trees = {change.identity: change.after or change.before for change in trace.changes}
    roles = end_state((tree for tree in trees.values() if tree is not None), varying).labels
    return {identity: roles[identity][2] if identity in roles else identity[2] for identity in trees}
