"""Fields behind feature gates that were off in older minors and are on by now: they are dropped from writes.

Fields that a minor does not have at all are absent from its types. `field_gates` has the gates that a flag may switch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from msgspec.json import decode

from mockube.apimachinery.groups import PODS, GroupResource
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.strategy import DisabledFields, Gate

Drop: TypeAlias = Callable[[Tree], None]
"""Drops a feature from a pod's spec."""

CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
TERMS: Final = (
    "preferredDuringSchedulingIgnoredDuringExecution.*.podAffinityTerm",
    "requiredDuringSchedulingIgnoredDuringExecution.*",
)


def _paths_of(parents: Sequence[str], *fields: str) -> tuple[str, ...]:
    return tuple(f"{parent}.*.{field}" for parent in parents for field in fields)


def _claims(path: str) -> Mapping[str, tuple[str, ...]]:
    """Return the fields of a claim by gate; `path` is that of its spec."""
    requests = (f"{path}.devices.requests.*.exactly", f"{path}.devices.requests.*.firstAvailable.*")
    return {
        "DRAConsumableCapacity": (
            *(f"{request}.capacity" for request in requests),
            f"{path}.devices.constraints.*.distinctAttribute",
        ),
        "DRADeviceTaints": tuple(f"{request}.tolerations" for request in requests),
    }


POD_SPEC: Final[Mapping[str, tuple[str, ...]]] = {
    "ClusterTrustBundleProjection": ("volumes.*.projected.sources.*.clusterTrustBundle",),
    "PodCertificateRequest": ("volumes.*.projected.sources.*.podCertificate",),
    "DynamicResourceAllocation": ("resourceClaims", *_paths_of(CONTAINERS, "resources.claims")),
    "GenericWorkload": ("workloadRef",),
    "EnvFiles": _paths_of(CONTAINERS, "env.*.valueFrom.fileKeyRef"),
    "HostnameOverride": ("hostnameOverride",),
    "InPlacePodVerticalScaling": _paths_of(CONTAINERS, "resizePolicy"),
    "MatchLabelKeysInPodAffinity": tuple(
        f"affinity.{kind}.{term}.{field}"
        for kind in ("podAffinity", "podAntiAffinity")
        for term in TERMS
        for field in ("matchLabelKeys", "mismatchLabelKeys")
    ),
    "PodLevelResources": ("resources",),
    "RecursiveReadOnlyMounts": _paths_of(CONTAINERS, "volumeMounts.*.recursiveReadOnly"),
    "SELinuxChangePolicy": ("securityContext.seLinuxChangePolicy",),
    "SupplementalGroupsPolicy": ("securityContext.supplementalGroupsPolicy",),
    "UserNamespacesSupport": ("hostUsers",),
}
"""The paths of fields in a pod's spec, by gate."""
POD_STATUS: Final[Mapping[str, tuple[str, ...]]] = {
    "DRAExtendedResource": ("extendedResourceClaimStatus",),
    "DynamicResourceAllocation": ("resourceClaimStatuses",),
    "InPlacePodLevelResourcesVerticalScaling": ("resources", "allocatedResources"),
    "InPlacePodVerticalScaling": ("resize", *_paths_of(STATUSES, "allocatedResources", "resources")),
    "PodObservedGenerationTracking": ("observedGeneration", "conditions.*.observedGeneration"),
    "RecursiveReadOnlyMounts": _paths_of(STATUSES, "volumeMounts"),
    "ResourceHealthStatus": _paths_of(STATUSES, "allocatedResourcesStatus"),
    "SupplementalGroupsPolicy": _paths_of(STATUSES, "user"),
}
TEMPLATES: Final[Mapping[GroupResource, str]] = {
    GroupResource("", "podtemplates"): "template",
    GroupResource("", "replicationcontrollers"): "spec.template",
    GroupResource("apps", "daemonsets"): "spec.template",
    GroupResource("apps", "deployments"): "spec.template",
    GroupResource("apps", "replicasets"): "spec.template",
    GroupResource("apps", "statefulsets"): "spec.template",
    GroupResource("batch", "cronjobs"): "spec.jobTemplate.spec.template",
    GroupResource("batch", "jobs"): "spec.template",
}
"""The paths of pod templates."""
OTHERS: Final[Mapping[GroupResource, Mapping[str, tuple[str, ...]]]] = {
    GroupResource("", "nodes"): {
        "NodeDeclaredFeatures": ("status.declaredFeatures",),
        "RecursiveReadOnlyMounts": ("status.runtimeHandlers",),
        "SupplementalGroupsPolicy": ("status.features",),
    },
    GroupResource("", "persistentvolumeclaims"): {
        "RecoverVolumeExpansionFailure": ("status.allocatedResources", "status.allocatedResourceStatuses"),
        "VolumeAttributesClass": (
            "spec.volumeAttributesClassName",
            "status.currentVolumeAttributesClassName",
            "status.modifyVolumeStatus",
        ),
    },
    GroupResource("", "persistentvolumes"): {"VolumeAttributesClass": ("spec.volumeAttributesClassName",)},
    GroupResource("", "services"): {
        "LoadBalancerIPMode": ("status.loadBalancer.ingress.*.ipMode",),
        "ServiceTrafficDistribution": ("spec.trafficDistribution",),
    },
    GroupResource("apiextensions.k8s.io", "customresourcedefinitions"): {
        "CRDObservedGenerationTracking": (
            "status.observedGeneration",
            "status.conditions.*.observedGeneration",
        ),
        "CustomResourceFieldSelectors": ("spec.versions.*.selectableFields",),
    },
    GroupResource("apps", "deployments"): {
        "DeploymentReplicaSetTerminatingReplicas": ("status.terminatingReplicas",)
    },
    GroupResource("apps", "replicasets"): {
        "DeploymentReplicaSetTerminatingReplicas": ("status.terminatingReplicas",)
    },
    GroupResource("apps", "statefulsets"): {
        "MaxUnavailableStatefulSet": ("spec.updateStrategy.rollingUpdate.maxUnavailable",),
    },
    GroupResource("autoscaling", "horizontalpodautoscalers"): {
        "HPAConfigurableTolerance": ("spec.behavior.scaleUp.tolerance", "spec.behavior.scaleDown.tolerance"),
    },
    GroupResource("batch", "cronjobs"): {},
    GroupResource("batch", "jobs"): {
        "JobManagedBy": ("spec.managedBy",),
        "JobSuccessPolicy": ("spec.successPolicy",),
    },
    GroupResource("discovery.k8s.io", "endpointslices"): {
        "PreferSameTrafficDistribution": ("endpoints.*.hints.forNodes",),
    },
    GroupResource("resource.k8s.io", "deviceclasses"): {
        "DRAExtendedResource": ("spec.extendedResourceName",),
    },
    GroupResource("resource.k8s.io", "resourceclaims"): _claims("spec"),
    GroupResource("resource.k8s.io", "resourceclaimtemplates"): _claims("spec.spec"),
    GroupResource("resource.k8s.io", "resourceslices"): {
        "DRAConsumableCapacity": _paths_of(
            ("spec.devices",), "allowMultipleAllocations", "capacity.*.requestPolicy"
        ),
        "DRADeviceBindingConditions": _paths_of(
            ("spec.devices",), "bindsToNode", "bindingConditions", "bindingFailureConditions"
        ),
        "DRADeviceTaints": ("spec.devices.*.taints",),
        "DRANodeAllocatableResources": ("spec.devices.*.nodeAllocatableResourceMappings",),
        "DRAPartitionableDevices": (
            "spec.sharedCounters",
            "spec.perDeviceNodeSelection",
            *_paths_of(("spec.devices",), "consumesCounters", "nodeName", "nodeSelector", "allNodes"),
        ),
    },
    GroupResource("storage.k8s.io", "csidrivers"): {
        "MutableCSINodeAllocatableCount": ("spec.nodeAllocatableUpdatePeriodSeconds",),
        "VolumeLimitScaling": ("spec.preventPodSchedulingIfMissing",),
    },
    GroupResource("storage.k8s.io", "volumeattachments"): {
        "MutableCSINodeAllocatableCount": ("status.attachError.errorCode", "status.detachError.errorCode"),
    },
}


@cache
def gates_off_by_default(minor: str) -> frozenset[str]:
    """Return the gates that are off by default in a minor, and on in the newest or removed by then."""
    changed = minors.changes(minor, "gates").items()
    off = {name for name, gate in changed if gate is not None and not decode(gate, type=list)[1]}
    # The fields of these gates have other names in the newest, where the gates are off as well.
    return frozenset(off | {"DRANodeAllocatableResources", "GenericWorkload"})


def disabled_fields(resource: GroupResource, own: DisabledFields, minor: str) -> DisabledFields:
    """Return the fields that a minor drops; `own` are those that the newest drops."""
    off = gates_off_by_default(minor)
    gates = [*own.gates, *_gates(resource, off)]
    template = TEMPLATES.get(resource, "")
    spec_path = "spec" if resource == PODS else f"{template}.spec" if template else ""
    drops = [drop for gate, drop in POD_DROPS.items() if gate in off] if spec_path else []
    if len(gates) == len(own.gates) and not drops:
        return own
    return _OlderFields(gates, drops, tuple(spec_path.split(".")))


def _gates(resource: GroupResource, off: frozenset[str]) -> Iterator[Gate]:
    if resource == PODS:
        yield from _gates_below("spec", POD_SPEC, off)
        yield from _gates_below("status", POD_STATUS, off)
    if resource in TEMPLATES:
        yield from _gates_below(f"{TEMPLATES[resource]}.spec", POD_SPEC, off)
    for name, paths in OTHERS.get(resource, {}).items():
        if name in off:
            yield Gate(paths)


def _gates_below(prefix: str, table: Mapping[str, tuple[str, ...]], off: frozenset[str]) -> Iterator[Gate]:
    return (Gate(paths).with_prefix(prefix) for name, paths in table.items() if name in off)


class _OlderFields(DisabledFields):
    """The dropped fields of an older minor, and the dropped features of pods that have more than one field."""

    def __init__(
        self, gates: Sequence[Gate], drops: Sequence[tuple[Any, Drop]], spec_path: tuple[str, ...]
    ) -> None:
        super().__init__(gates)
        self._drops = drops
        self._spec_path = spec_path

    def drop(self, new: Tree, old: ReadOnlyTree | None) -> None:
        super().drop(new, old)
        spec = _get_path(new, self._spec_path)
        old_spec = _get_path(old, self._spec_path) if old is not None else None
        for is_used, drop in self._drops:
            if spec is not None and not (old_spec is not None and is_used(old_spec)):
                drop(spec)


def _get_path(tree: Any, path: Sequence[str]) -> Any:
    for step in path:
        tree = (tree or {}).get(step)
    return tree


def _containers(spec: ReadOnlyTree) -> Iterator[Any]:
    for name in CONTAINERS:
        yield from spec.get(name) or ()


# --- features of pods with more than one field


def _has_restart_rules(spec: ReadOnlyTree) -> bool:
    return any(
        container.get("restartPolicyRules") or container.get("restartPolicy", "Always") != "Always"
        for container in _containers(spec)
    )


def _drop_restart_rules(spec: Tree) -> None:
    for name in CONTAINERS:
        for container in spec.get(name) or ():
            container.pop("restartPolicyRules", None)
            if name != "initContainers" or container.get("restartPolicy") != "Always":
                container.pop("restartPolicy", None)


def _has_images(spec: ReadOnlyTree) -> bool:
    return any("image" in volume for volume in spec.get("volumes") or ())


def _drop_images(spec: Tree) -> None:
    """Drop image volumes and their mounts."""
    volumes = spec.get("volumes") or ()
    image_volumes = {volume.get("name") for volume in volumes if volume.get("image") is not None}
    if not image_volumes:
        return
    _keep(spec, "volumes", [volume for volume in volumes if volume.get("image") is None])
    for container in _containers(spec):
        mounts = container.get("volumeMounts") or ()
        _keep(
            container, "volumeMounts", [mount for mount in mounts if mount.get("name") not in image_volumes]
        )


def _keep(parent: Tree, name: str, items: list[Any]) -> None:
    if items:
        parent[name] = items
    else:
        parent.pop(name, None)


def _has_proc_mount(spec: ReadOnlyTree) -> bool:
    return any(
        (container.get("securityContext") or {}).get("procMount", "Default") != "Default"
        for container in _containers(spec)
    )


def _reset_proc_mount(spec: Tree) -> None:
    for container in _containers(spec):
        context = container.get("securityContext")
        if context and context.get("procMount") is not None:
            container["securityContext"] = context | {"procMount": "Default"}


HOOKS: Final = ("postStart", "preStop")


def _has_sleep(spec: ReadOnlyTree) -> bool:
    return any(
        "sleep" in ((container.get("lifecycle") or {}).get(hook) or {})
        for container in _containers(spec)
        for hook in HOOKS
    )


def _drop_sleep(spec: Tree) -> None:
    """Drop the sleep actions, and the hooks and lifecycles that are empty without them."""
    for container in _containers(spec):
        lifecycle = dict(container.get("lifecycle") or {})
        for hook in HOOKS:
            handler = {name: value for name, value in (lifecycle.get(hook) or {}).items() if name != "sleep"}
            if "sleep" in (lifecycle.get(hook) or {}):
                lifecycle |= {hook: handler}
                if not handler:
                    del lifecycle[hook]
        if lifecycle != (container.get("lifecycle") or {}):
            container["lifecycle"] = lifecycle
            if not lifecycle:
                del container["lifecycle"]


POD_DROPS: Final[Mapping[str, tuple[Any, Drop]]] = {
    "ContainerRestartRules": (_has_restart_rules, _drop_restart_rules),
    "ImageVolume": (_has_images, _drop_images),
    "PodLifecycleSleepAction": (_has_sleep, _drop_sleep),
    "ProcMountType": (_has_proc_mount, _reset_proc_mount),
}
"""For each gate: whether a pod's spec uses the feature, and the function that drops it."""
