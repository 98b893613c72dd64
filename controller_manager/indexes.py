"""Indexes that several controllers ask for, so that each is kept once."""

from collections.abc import Iterable
from typing import Final

from apimachinery import meta
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView

BY_OWNER: Final = "owner"
"""By the uid of the controller; those that have none by `orphans_of` their namespace."""
BY_NODE: Final = "node"


def orphans_of(namespace: str) -> str:
    return f"orphans/{namespace}"


def owner_of_pod(pod: PodView) -> Iterable[str]:
    return (pod.owner_uid or orphans_of(pod.key.namespace),)


def owner_of(obj: Tree) -> Iterable[str]:
    controller = meta.controller_of(obj)
    return (controller["uid"] if controller else orphans_of(meta.namespace(obj)),)


def node_of_pod(pod: PodView) -> Iterable[str]:
    return (pod.node,) if pod.node else ()
