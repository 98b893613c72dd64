"""The types of filter plugins: a filter, its check of a single node, a rejection, and a restriction to some nodes."""

from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol

from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.group_form import GroupForm
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo


class Rejection(NamedTuple):
    """The reasons for which a node, or every node, is not feasible for a pod; kube-scheduler's Status."""

    reasons: tuple[str, ...]
    is_unresolvable: bool = False
    """Whether preemption does not help."""
    is_error: bool = False
    """Whether the pod's request is invalid for every node; the reason is the whole message."""
    plugin: str = ""
    """The plugin that rejects, if it is known."""


Check = Callable[[NodeInfo], Rejection | None]
"""Checks a single node; returns None if the filter does not reject it."""


class Restriction(NamedTuple):
    """The check of a filter that considers only some nodes; kube-scheduler's PreFilterResult."""

    names: frozenset[str]
    """The names of the nodes."""
    check: Check


Filter = Callable[[PodInfo, ClusterSnapshot], Check | Rejection | Restriction | None]
"""A filter plugin, which is called once for a pod. Returns its check, a rejection of all nodes, or None to reject none.

The first filter that rejects a node provides the reasons.
"""


class GroupFilter(GroupForm, Protocol):
    """A filter whose check of a node depends on other nodes, in the form that checks groups of nodes."""

    def check(self) -> Callable[[Hashable], Rejection | None]:
        """Return the check of a part, with the counts of now."""
