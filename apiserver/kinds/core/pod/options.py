"""The validation options of an old pod or pod template, so that its update may keep invalid values."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

from mockube.apimachinery import gotext, quantity
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import pointer
from mockube.apiserver.kinds.common.resource_names import is_divisible, is_huge_page
from mockube.apiserver.kinds.common.selectors import check_node_selector, check_selector
from mockube.apiserver.kinds.core.volumes.projected import check_not_reserved

from . import scheduling
from .context import PodValidationOptions
from .lifecycle import ALWAYS, RESTART_CONTAINER
from .security import SYS_ADMIN, check_host_sysctl

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


def options_from_old_annotations(spec: ReadOnlyTree, metadata: ReadOnlyTree) -> PodValidationOptions:
    """Return the options of an old pod that depend on its annotations."""
    return PodValidationOptions(deletion_cost=_has_wrong_cost(metadata), comparisons=compares_taints(spec))


def options_from_old_pod(spec: ReadOnlyTree, metadata: ReadOnlyTree) -> PodValidationOptions:
    """Return the options of an old pod or template."""
    context, affinity = spec.get("securityContext") or {}, spec.get("affinity") or {}
    constraints = spec.get("topologySpreadConstraints") or ()
    own_users = spec.get("hostUsers") is False
    return PodValidationOptions(
        deletion_cost=_has_wrong_cost(metadata),
        huge_pages=_has_parts_of_pages(spec),
        selector_values=bool(affinity) and scheduling.has_wrong_selectors(affinity),
        node_affinity_values=bool(affinity) and _has_wrong_node_values(affinity),
        spread_selectors=any(any(_SELECTOR(constraint, ROOT)) for constraint in constraints),
        spread_label_keys=any(
            any(scheduling.check_match_label_keys(constraint, ROOT)) for constraint in constraints
        ),
        token_paths=any(any(check_not_reserved(path, ROOT)) for path in _token_paths(spec)),
        host_sysctls=any(
            any(check_host_sysctl(spec, sysctl.get("name", ""), ROOT))
            for sysctl in context.get("sysctls", ())
        ),
        selinux_policy=context.get("seLinuxChangePolicy") is not None,
        comparisons=compares_taints(spec),
        host_network_users=own_users and bool(spec.get("hostNetwork")),
        volume_devices=own_users
        and any(container.get("volumeDevices") for container in every_container(spec)),
        restarting_resizes=any(map(_restarts_when_resized, spec.get("initContainers", ()))),
        images_without_reference=any(map(_lacks_reference, spec.get("volumes") or ())),
        privileged_capability=any(
            _has_privileged_capability(container.get("securityContext") or {})
            for container in every_container(spec)
        ),
    )


_SELECTOR = pointer("labelSelector", check_selector)


def _has_wrong_cost(metadata: ReadOnlyTree) -> bool:
    cost = (metadata.get("annotations") or {}).get(DELETION_COST)
    return cost is not None and not is_deletion_cost(cost)


def is_deletion_cost(cost: str) -> bool:
    """Return whether the value of the annotation is a number as upstream writes it."""
    if cost.startswith("+") or (len(cost) > 1 and cost.startswith("0")):
        return False
    try:
        gotext.parse_int(cost, bits=32)
    except gotext.NumberError:
        return False
    return True


def compares_taints(spec: ReadOnlyTree) -> bool:
    """Return whether a toleration compares the values of taints."""
    return any(
        toleration.get("operator") in scheduling.COMPARISONS for toleration in spec.get("tolerations", ())
    )


def _has_parts_of_pages(spec: ReadOnlyTree) -> bool:
    requirements = [container.get("resources") or {} for container in every_container(spec)]
    amounts: Iterable[dict[str, Any]] = chain(
        (of.get(field) or {} for of in requirements for field in ("limits", "requests")),
        (spec.get("overhead") or {},),
    )
    return any(
        is_huge_page(name) and not is_divisible(name, quantity.parse(amount))
        for of in amounts
        for name, amount in of.items()
    )


def _has_wrong_node_values(affinity: ReadOnlyTree) -> bool:
    selector = (affinity.get("nodeAffinity") or {}).get(scheduling.REQUIRED)
    return selector is not None and any(check_node_selector(selector, ROOT))


def _token_paths(spec: ReadOnlyTree) -> Iterable[str]:
    return (
        source["serviceAccountToken"].get("path", "")
        for volume in spec.get("volumes", ())
        for source in (volume.get("projected") or {}).get("sources") or ()
        if source.get("serviceAccountToken") is not None
    )


def _restarts_when_resized(container: ReadOnlyTree) -> bool:
    if container.get("restartPolicy") == ALWAYS:
        return False
    return any(
        policy.get("restartPolicy") == RESTART_CONTAINER for policy in container.get("resizePolicy", ())
    )


def _lacks_reference(volume: ReadOnlyTree) -> bool:
    return volume.get("image") is not None and not volume["image"].get("reference")


def _has_privileged_capability(context: ReadOnlyTree) -> bool:
    """Return whether a container has the capability, and privilege escalation is not allowed expressly."""
    if context.get("allowPrivilegeEscalation"):
        return False
    return SYS_ADMIN in ((context.get("capabilities") or {}).get("add") or ())
