"""The checks that the level restricted adds: they harden a pod beyond the known ways to escalate privileges."""

from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree

from . import baseline
from .check import (
    Annotations,
    Check,
    CheckPod,
    Violation,
    container_names,
    containers,
    has_user_namespace,
    is_windows,
    name_list,
    plural_of,
    quote_names,
    security_context,
    setters,
)
from .policy import RESTRICTED

_ALLOWED: Final = """
    configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret
"""
_OTHER_VOLUME_NAMES: Final = """
    hostPath gcePersistentDisk awsElasticBlockStore gitRepo nfs iscsi glusterfs rbd flexVolume cinder cephfs flocker fc
    azureFile vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos
"""
VOLUMES: Final = frozenset(_ALLOWED.split())
_OTHER_VOLUMES: Final = tuple(_OTHER_VOLUME_NAMES.split())


def _exempt_pods(is_exempt: Callable[[ReadOnlyTree], bool], check: CheckPod) -> CheckPod:
    """Return a check that accepts all exempt pods."""

    def check_unless_exempt(annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
        return None if is_exempt(spec) else check(annotations, spec)

    return check_unless_exempt


def _allow_privilege_escalation(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    def is_bad(container: ReadOnlyTree) -> bool:
        return security_context(container).get("allowPrivilegeEscalation") is not False

    names = container_names(spec, is_bad)
    if not names:
        return None
    problem = f"{name_list('container', names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", problem)


def _capabilities(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    def lacks_drop(container: ReadOnlyTree) -> bool:
        return "ALL" not in ((security_context(container).get("capabilities") or {}).get("drop") or ())

    reason, details = "unrestricted capabilities", list[str]()
    if names := container_names(spec, lacks_drop):
        details.append(f'{name_list("container", names)} must set securityContext.capabilities.drop=["ALL"]')
    if added := baseline.added_capabilities(reason, spec, ("NET_BIND_SERVICE",)):
        details.append(added.detail)
    return Violation(reason, "; ".join(details)) if details else None


def _volumes(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    names, types = list[str](), set[str]()
    for volume in spec.get("volumes") or ():
        present = {name for name, source in volume.items() if source is not None}
        if VOLUMES.isdisjoint(present):
            names.append(volume["name"])
            types.add(next((name for name in _OTHER_VOLUMES if name in present), "unknown"))
    if not names:
        return None
    subject = f"{name_list('volume', names)} {plural_of('uses', len(names), 'use')}"
    return Violation(
        "restricted volume types", f"{subject} {name_list('restricted volume type', sorted(types))}"
    )


def _run_as_non_root(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    reason = "runAsNonRoot != true"
    if setter_names := setters(spec, lambda context: context.get("runAsNonRoot") is False):
        return Violation(
            reason, f"{' and '.join(setter_names)} must not set securityContext.runAsNonRoot=false"
        )
    names = _containers_without(spec, "runAsNonRoot", lambda value: value is True)
    if not names:
        return None
    return Violation(
        reason, f"pod or {name_list('container', names)} must set securityContext.runAsNonRoot=true"
    )


def _containers_without(spec: ReadOnlyTree, field: str, is_set: Callable[[Any], bool]) -> list[str]:
    """Return the names of the containers that do not set a field, unless the pod sets it."""
    if is_set(security_context(spec).get(field)):
        return []
    return [
        container["name"] for container in containers(spec) if security_context(container).get(field) is None
    ]


def _run_as_user(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    setter_names = setters(spec, lambda context: context.get("runAsUser") == 0)
    return (
        Violation("runAsUser=0", f"{' and '.join(setter_names)} must not set runAsUser=0")
        if setter_names
        else None
    )


def _seccomp(annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    if violation := baseline.seccomp(annotations, spec):
        return violation
    names = _containers_without(
        spec, "seccompProfile", lambda profile: (profile or {}).get("type") in baseline.PROFILES
    )
    if not names:
        return None
    problem = f"pod or {name_list('container', names)} must set securityContext.seccompProfile.type to"
    return Violation(
        "seccompProfile", f"{problem} {' or '.join(map(quote_names, (['RuntimeDefault'], ['Localhost'])))}"
    )


CHECKS: Final = (
    Check(
        "allowPrivilegeEscalation",
        RESTRICTED,
        ((8, _allow_privilege_escalation), (25, _exempt_pods(is_windows, _allow_privilege_escalation))),
    ),
    Check(
        "capabilities_restricted",
        RESTRICTED,
        ((22, _capabilities), (25, _exempt_pods(is_windows, _capabilities))),
        "capabilities_baseline",
    ),
    Check("procMount_restricted", RESTRICTED, ((35, baseline.proc_mount),), "procMount"),
    Check("restrictedVolumes", RESTRICTED, ((0, _volumes),), "hostPathVolumes"),
    Check(
        "runAsNonRoot",
        RESTRICTED,
        ((0, _run_as_non_root), (35, _exempt_pods(has_user_namespace, _run_as_non_root))),
    ),
    Check(
        "runAsUser", RESTRICTED, ((23, _run_as_user), (35, _exempt_pods(has_user_namespace, _run_as_user)))
    ),
    Check(
        "seccompProfile_restricted",
        RESTRICTED,
        ((19, _seccomp), (25, _exempt_pods(is_windows, _seccomp))),
        "seccompProfile_baseline",
    ),
)
"""Sorted by id; evaluated after those of baseline."""
