"""Which pods are garbage: too many that have ended, those of nodes that are gone or given up, those never bound.

Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from apimachinery import conditions, meta
from apimachinery.wellknown import CONDITION_READY, TAINT_OUT_OF_SERVICE
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView

_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def over_threshold(pods: Iterable[PodView], threshold: int) -> Sequence[PodView]:
    """The evicted and then the oldest of those that have ended, so that as many are left as may be; 0 keeps all."""
    ended = sorted((pod for pod in pods if pod.is_terminal), key=_order)
    return ended[: len(ended) - threshold] if 0 < threshold < len(ended) else []


def on_given_up_nodes(pods: Iterable[PodView], nodes: Mapping[str, Tree]) -> Sequence[PodView]:
    """Those that are to go, on nodes that are not ready and were put out of service by hand."""
    given_up = {name for name, node in nodes.items() if _is_given_up(node)}
    return sorted((pod for pod in pods if pod.deleting and pod.node in given_up), key=_order)


def on_absent_nodes(pods: Iterable[PodView], absent: frozenset[str]) -> Iterator[PodView]:
    return (pod for pod in pods if pod.node in absent)


def never_bound(pods: Iterable[PodView]) -> Iterator[PodView]:
    """Those that are to go, and that no kubelet will let go."""
    return (pod for pod in pods if pod.deleting and not pod.node)


def _is_given_up(node: Tree) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    is_out = any(taint["key"] == TAINT_OUT_OF_SERVICE for taint in taints)
    return is_out and not conditions.is_true(node, CONDITION_READY)


def _order(pod: PodView) -> tuple[bool, datetime, str]:
    was_evicted = (pod.object.get("status") or {}).get("reason") == "Evicted"
    return not was_evicted, meta.creation_timestamp(pod.object) or _NEVER, pod.key.name
