"""Score nodes by the alternatives of requests for which they have devices. Upstream: plugins/dynamicresources."""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.device_claims import allocation
from mockube.scheduler.devices.claims import DeviceClaims, DeviceSnapshot
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .score import normalize_scores

_MAX_ALTERNATIVES: Final = 8
"""The maximum number of alternatives of a request."""


def alternatives_score(pod: PodInfo, devices: DeviceSnapshot, nodes: Sequence[NodeInfo]) -> list[int] | None:
    """Prefer nodes with devices for the first alternatives of a pod's requests; None if no request has alternatives."""
    if devices.gates.is_before("1.35"):
        return None
    claims = DeviceClaims.of(pod, devices)
    if not any(request.get("firstAvailable") for claim in claims.of_user for request in _requests(claim)):
        return None
    return normalize_scores([_score(claims, node, devices) for node in nodes])


def _score(claims: DeviceClaims, node: NodeInfo, devices: DeviceSnapshot) -> int:
    """Return the sum of the ranks of the chosen alternatives; 0 if all claims were allocated before."""
    if not claims.on(node, devices).claims:
        return 0
    on_node, chosen, _ = claims.search(node, devices)
    if chosen is None:
        return 0
    names = [{device.alternative.name for device in devices_of_claim} for devices_of_claim in chosen]
    by_claim = {
        id(claim): names_of_claim for claim, names_of_claim in zip(on_node.claims, names, strict=True)
    }
    return sum(_rank(claim, by_claim.get(id(claim)) or _chosen_before(claim)) for claim in claims.of_user)


def _rank(claim: ReadOnlyTree, chosen: set[str]) -> int:
    return sum(
        _MAX_ALTERNATIVES - number
        for request in _requests(claim)
        for number, alternative in enumerate(request.get("firstAvailable") or ())
        if f"{request['name']}/{alternative['name']}" in chosen
    )


def _chosen_before(claim: ReadOnlyTree) -> set[str]:
    results = ((allocation(claim) or {}).get("devices") or {}).get("results") or ()
    return {result["request"] for result in results}


def _requests(claim: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    return (claim["spec"].get("devices") or {}).get("requests") or ()
