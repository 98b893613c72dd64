"""The bodies of requests to extenders and of their responses. Pure. Upstream: k8s.io/kube-scheduler/extender/v1.

As Go's decoder, it ignores the case of field names in responses, so that `nodeNames` is `NodeNames`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.plugin_failure import PluginFailure
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.preemption import Candidate

_TYPE_META: Final = ("apiVersion", "kind")
_FIRST_CHARACTER: Final = re.compile(rb"[ \t\r\n]*([^ \t\r\n])")
_STARTS: Final = b'{["-0123456789tfn'
"""The first characters of JSON values."""


class ExtenderError(PluginFailure):
    """An extender did not answer, or not what it may; the message is upstream's."""


# --- requests


def filter_args(pod: PodInfo, nodes: Sequence[NodeInfo], *, names_only: bool) -> ReadOnlyTree:
    """Return the ExtenderArgs of a pod and its nodes; an extender that caches nodes gets only their names."""
    items = None if names_only else {"metadata": {}, "items": [_object(node.node) for node in nodes]}
    return {
        "Pod": _object(pod.view.object),
        "Nodes": items,
        "NodeNames": [node.name for node in nodes] if names_only else None,
    }


def preemption_args(pod: PodInfo, candidates: Sequence[Candidate], *, names_only: bool) -> ReadOnlyTree:
    """Return the ExtenderPreemptionArgs; an extender that caches nodes gets only the uids of the victims."""

    def victims_of(candidate: Candidate) -> ReadOnlyTree:
        victims = [
            {"UID": victim.view.uid} if names_only else _object(victim.view.object)
            for victim in candidate.victims
        ]
        return {"Pods": victims, "NumPDBViolations": candidate.pdb_violations}

    by_node = {candidate.node: victims_of(candidate) for candidate in candidates}
    return {
        "Pod": _object(pod.view.object),
        "NodeNameToVictims": None if names_only else by_node,
        "NodeNameToMetaVictims": by_node if names_only else None,
    }


def binding_args(pod: PodInfo, node: str) -> ReadOnlyTree:
    key = pod.view.key
    return {"PodName": key.name, "PodNamespace": key.namespace, "PodUID": pod.view.uid, "Node": node}


def _object(tree: ReadOnlyTree) -> ReadOnlyTree:
    """Return an object as client-go's caches have it: without its kind."""
    return {name: value for name, value in tree.items() if name not in _TYPE_META}


# --- responses


def decode(body: bytes) -> Any:
    """Return the JSON value of a response."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ExtenderError(_syntax_problem(body)) from error


def _syntax_problem(body: bytes) -> str:
    first = _FIRST_CHARACTER.match(body)
    if first is None:
        return "EOF"
    if first[1] not in _STARTS:
        return f"invalid character '{first[1].decode('latin-1')}' looking for beginning of value"
    return "the response is no valid JSON"


class FilterResult(NamedTuple):
    """An ExtenderFilterResult."""

    nodes: Sequence[ReadOnlyTree] | None
    names: Sequence[str] | None
    failed: Mapping[str, str]
    """The reasons by the names of nodes."""
    unresolvable: Mapping[str, str]
    """The same for nodes on which a preemption does not help."""
    error: str


def filter_result(tree: Any) -> FilterResult:
    fields = _Fields(tree, "ExtenderFilterResult")
    node_list = _Fields(fields.mapping("Nodes", "v1.NodeList"), "NodeList")
    has_nodes = fields.value("Nodes") is not None
    return FilterResult(
        nodes=[*node_list.objects("items", "v1.Node")] if has_nodes else None,
        names=fields.texts("NodeNames"),
        failed=fields.text_map("FailedNodes"),
        unresolvable=fields.text_map("FailedAndUnresolvableNodes"),
        error=fields.text("Error"),
    )


def scores(tree: Any) -> Sequence[tuple[str, int]]:
    """Return the hosts and their scores of a HostPriorityList."""
    if tree is not None and not isinstance(tree, list):
        raise ExtenderError(_mistyped(tree, "value of type v1.HostPriorityList"))
    hosts = [_Fields(one, "HostPriority") for one in tree or ()]
    return [(host.text("Host"), host.number("Score")) for host in hosts]


class Victims(NamedTuple):
    """A MetaVictims."""

    uids: Sequence[str]
    pdb_violations: int


def preemption_result(tree: Any) -> Mapping[str, Victims]:
    """Return the victims by the name of the node of an ExtenderPreemptionResult."""
    by_node = _Fields(tree, "ExtenderPreemptionResult").mapping(
        "NodeNameToMetaVictims", "map[string]*v1.MetaVictims"
    )
    return {name: _victims(value) for name, value in by_node.items()}


def _victims(tree: Any) -> Victims:
    fields = _Fields(tree, "MetaVictims")
    uids = [_Fields(pod, "MetaPod").text("UID") for pod in fields.objects("Pods", "v1.MetaPod")]
    return Victims(uids, fields.number("NumPDBViolations"))


def binding_error(tree: Any) -> str:
    """Return the error of an ExtenderBindingResult; "" if there is none."""
    return _Fields(tree, "ExtenderBindingResult").text("Error")


_JSON_TYPES: Final = ((bool, "bool"), (str, "string"), (list, "array"), (dict, "object"))


def _mistyped(value: Any, target: str) -> str:
    kind = next((name for type_, name in _JSON_TYPES if isinstance(value, type_)), "number")
    if isinstance(value, float):
        kind = f"number {value}"
    return f"json: cannot unmarshal {kind} into Go {target}"


class _Fields:
    """The fields of an object, of which a null is no value."""

    def __init__(self, tree: Any, owner: str) -> None:
        if tree is not None and not isinstance(tree, dict):
            raise ExtenderError(_mistyped(tree, f"value of type v1.{owner}"))
        self._owner = owner
        self._values = {name.lower(): value for name, value in (tree or {}).items()}

    def value(self, name: str) -> Any:
        return self._values.get(name.lower())

    def text(self, name: str) -> str:
        return self._checked(name, str, "string") or ""

    def number(self, name: str) -> int:
        value = self._checked(name, int, "int64") or 0
        if isinstance(value, bool):
            raise self._error(name, value, "int64")
        return int(value)

    def texts(self, name: str) -> Sequence[str] | None:
        values = self._checked(name, list, "[]string")
        for value in values or ():
            if value is not None and not isinstance(value, str):
                raise self._error(name, value, "string")
        return None if values is None else [value or "" for value in values]

    def text_map(self, name: str) -> Mapping[str, str]:
        values = self.mapping(name, "v1.FailedNodesMap")
        for value in values.values():
            if value is not None and not isinstance(value, str):
                raise self._error(name, value, "string")
        return {key: value or "" for key, value in values.items()}

    def mapping(self, name: str, go_type: str) -> Mapping[str, Any]:
        return self._checked(name, dict, go_type) or {}

    def objects(self, name: str, go_type: str) -> Sequence[ReadOnlyTree]:
        values = self._checked(name, list, f"[]{go_type}") or []
        for value in values:
            if not isinstance(value, dict):
                raise self._error(name, value, go_type)
        return values

    def _checked(self, name: str, expected: type, go_type: str) -> Any:
        value = self.value(name)
        if value is not None and not isinstance(value, expected):
            raise self._error(name, value, go_type)
        return value

    def _error(self, name: str, value: Any, go_type: str) -> ExtenderError:
        return ExtenderError(_mistyped(value, f"struct field {self._owner}.{name} of type {go_type}"))
