"""Indexes that several controllers ask for, so that each is kept once."""

from collections.abc import Iterable
from typing import Final

from apimachinery import meta
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView

BY_OWNER: Final = "owner"
"""By the uid of the controller; those that have none by `orphans_of` their namespace."""
BY_NODE: Final = "node"
BY_CLAIM: Final = "claim"
"""Pods by the claims that they use, as `namespace/name`."""


def orphans_of(namespace: str) -> str:
    return f"orphans/{namespace}"


def owner_of_pod(pod: PodView) -> Iterable[str]:
    return (pod.owner_uid or orphans_of(pod.key.namespace),)


def owner_of(obj: Tree) -> Iterable[str]:
    controller = meta.controller_of(obj)
    return (controller["uid"] if controller else orphans_of(meta.namespace(obj)),)


def node_of_pod(pod: PodView) -> Iterable[str]:
    return (pod.node,) if pod.node else ()


def claims_of_pod(pod: PodView) -> Iterable[str]:
    """Also those that are made for its ephemeral volumes: they have its name and theirs."""
    for volume in (pod.object.get("spec") or {}).get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield f"{pod.key.namespace}/{volume['persistentVolumeClaim']['claimName']}"
        elif "ephemeral" in volume:
            yield f"{pod.key.namespace}/{pod.key.name}-{volume['name']}"
