"""Read from the caches what a StatefulSet is decided on: its pods, its claims, its history."""

from collections.abc import Iterable
from dataclasses import replace

from controller_manager import kinds
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.claims import Claims, claims_of
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.stateful import identity, storage
from controller_manager.workloads.stateful.setview import SetView


def pods(caches: Caches, owner: SetView) -> Claims[PodView]:
    """A pod belongs to the set only if it has one of its names, too."""
    found = claims_of(caches, kinds.PODS, owner.object, owner.selector)
    misnamed = tuple(pod for pod in found.owned if not _is_named_by(owner, pod))
    return Claims(
        owned=tuple(pod for pod in found.owned if pod not in misnamed),
        orphans=tuple(pod for pod in found.orphans if _is_named_by(owner, pod)),
        strays=found.strays if owner.deleting else (*found.strays, *misnamed),
    )


def _is_named_by(owner: SetView, pod: PodView) -> bool:
    return identity.ordinal_in(owner, pod.key.name) is not None


def revisions(caches: Caches, owner: SetView) -> Claims[Tree]:
    """What it recorded stays its own, whatever its labels are now."""
    found = claims_of(caches, kinds.CONTROLLER_REVISIONS, owner.object, owner.selector)
    return replace(found, owned=(*found.owned, *found.strays), strays=())


def claims(caches: Caches, owner: SetView, ordinals: Iterable[int]) -> storage.Claims:
    lister = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS)
    names = (name for ordinal in ordinals for name in storage.claim_names(owner, ordinal))
    found = ((name, lister.get(owner.key.namespace, name)) for name in names)
    return {name: claim for name, claim in found if claim is not None}
