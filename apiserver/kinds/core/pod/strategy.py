"""The strategy of pods, and the fields of pods and pod templates whose feature gates are off.

Pods begin as Pending, are updated as a whole or through three subresources, and terminate gracefully.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.wellknown import CONDITION_POD_SCHEDULED
from mockube.apiserver.kinds import strategy
from mockube.apiserver.kinds.strategy import DisabledFields, Gate, Strategy, StrategyContext

from .pod_level import fill_pod_level
from .qos import older_qos_class, qos_class

_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_STATUS_LISTS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")

# --- fields of gates that are off by default

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("lifecycle.postStart", "lifecycle.preStop")
_FILES: Final = ("secret", "configMap", "downwardAPI")
_PROJECTED: Final = "volumes.*.projected.sources.*"


def _in_containers(*fields: str) -> tuple[str, ...]:
    return tuple(f"{name}.*.{field}" for name in _CONTAINER_LISTS for field in fields)


_SPEC_GATES: Final = (
    Gate(_in_containers("lifecycle.stopSignal"), drops_empty=True),
    Gate(("schedulingGroup",)),
    Gate(("evictionResponders",), name="EvictionRequestAPI"),
    Gate(("volumes.*.emptyDir.mode",), name="EmptyDirVolumeMode"),
    Gate(_in_containers("volumeMounts.*.bindMountOptions"), name="VolumeBindMountOptions"),
    Gate(
        _in_containers(*(f"{action}.httpGet.protocol" for action in (*_PROBES, *_HOOKS))),
        name="H2CContainerProbe",
    ),
    Gate(_in_containers(*(f"{probe}.grpc.mode" for probe in _PROBES)), name="GRPCContainerProbeTLS"),
    Gate(
        (
            *(f"volumes.*.{source}.defaultUser" for source in (*_FILES, "projected")),
            *(f"volumes.*.{source}.items.*.user" for source in _FILES),
            *(f"{_PROJECTED}.{source}.items.*.user" for source in _FILES),
            *(
                f"{_PROJECTED}.{source}.user"
                for source in ("serviceAccountToken", "clusterTrustBundle", "podCertificate")
            ),
        ),
        name="AtomicWriteVolumeUserFields",
    ),
)
_STATUS_GATES: Final = (
    Gate(tuple(f"{name}.*.volumeMounts.*.volumeStatus" for name in _STATUS_LISTS)),
    Gate(("nodeAllocatableResourceClaimStatuses",)),
    Gate(("volumeHealth",)),
)

DISABLED_IN_PODS: Final = DisabledFields(
    (
        *(gate.with_prefix("spec") for gate in _SPEC_GATES),
        *(gate.with_prefix("status") for gate in _STATUS_GATES),
    )
)


def disabled_in_template(path: str, *others: Gate) -> DisabledFields:
    """Return the disabled fields of a kind with a template at a path, and with other gates."""
    return DisabledFields((*(gate.with_prefix(f"{path}.spec") for gate in _SPEC_GATES), *others))


DISABLED_IN_TEMPLATE: Final = disabled_in_template("spec.template")
"""The disabled fields of kinds with a template at spec.template."""


def emptiable_in(path: str) -> tuple[tuple[str, ...], ...]:
    """Return `Strategy.emptiable` of a kind with the spec of a pod at a path."""
    return ((*path.split("."), "resources", "claims"),)


EMPTIABLE_IN_TEMPLATE: Final = emptiable_in("spec.template.spec")

# --- preparation and deletion

TERMINAL = frozenset({"Succeeded", "Failed"})

_GATED = {
    "type": CONDITION_POD_SCHEDULED,
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def _prepare_create(pod: Tree, request: StrategyContext) -> None:
    pod.setdefault("spec", {})
    _complete(pod, request)
    fill_pod_level(pod["spec"])
    pod["status"] = _pending(pod, qos_class(pod), request)


def _prepare_older_create(pod: Tree, request: StrategyContext) -> None:
    """Prepare a new pod as minors before 1.37 do."""
    pod.setdefault("spec", {})
    pod["status"] = _pending(pod, older_qos_class(pod), request)
    _complete(pod, request)


def _pending(pod: Tree, qos: str, request: StrategyContext) -> Tree:
    status: Tree = {"phase": "Pending", "qosClass": qos}
    if pod["spec"].get("schedulingGates"):
        status["conditions"] = conditions.set_condition((), _GATED, request.now)
    return status


def _complete(pod: Tree, request: StrategyContext) -> None:
    drop_init_containers(pod)
    complete_selectors(pod)
    take_apparmor_annotations(pod, request)


def _keep_pod_level(new: Tree, old: Tree) -> None:
    """Keep resources of the pod that a client without the field dropped."""
    resources = (old.get("spec") or {}).get("resources")
    if resources is not None and new["spec"].get("resources") is None:
        new["spec"] = new["spec"] | {"resources": resources}


def _prepare_update(new: Tree, old: Tree, _request: StrategyContext) -> None:
    _keep_pod_level(new, old)
    drop_init_containers(new)


def _prepare_resize(new: Tree, old: Tree, _request: StrategyContext) -> None:
    _keep_pod_level(new, old)
    new["spec"] = dict(new["spec"])
    fill_pod_level(new["spec"])


_STATUS_FIELDS: Final = ("qosClass", "observedGeneration")
"""The fields of a status that an older kubelet does not have, and would otherwise drop."""
_CLAIM_FIELDS: Final = (
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "nodeAllocatableResourceClaimStatuses",
)
"""More such fields, which minors before 1.37 do not keep."""


def _prepare_status(new: Tree, old: Tree, _request: StrategyContext) -> None:
    _keep_status(new, old, (*_STATUS_FIELDS, *_CLAIM_FIELDS))


def _prepare_older_status(new: Tree, old: Tree, _request: StrategyContext) -> None:
    """Prepare a new status as minors before 1.37 do."""
    _keep_status(new, old, _STATUS_FIELDS)


def _keep_status(new: Tree, old: Tree, fields: Sequence[str]) -> None:
    status, before = dict(new.get("status") or {}), old.get("status") or {}
    for field in fields:
        if field in before:
            status.setdefault(field, before[field])
    if status.get("conditions"):
        status["conditions"] = _observe_conditions(status["conditions"], before.get("conditions", ()))
    new["status"] = status


def _observe_conditions(new: list[Tree], old: list[Tree]) -> list[Tree]:
    """Return conditions with the generations at which they were last observed. There may be several of one type."""
    generations: defaultdict[str, deque[Any]] = defaultdict(deque)
    for condition in old:
        generations[condition.get("type", "")].append(condition.get("observedGeneration"))
    observed = []
    for condition in new:
        of_type = generations[condition.get("type", "")]
        generation = of_type.popleft() if of_type else None
        is_complete = "observedGeneration" in condition or generation is None
        observed.append(condition if is_complete else condition | {"observedGeneration": generation})
    return observed


def _grace(pod: Tree, requested_seconds: int | None) -> int:
    """Return the grace period of the delete options or of the pod; 0 if the pod is not scheduled or is terminal."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in TERMINAL:
        return 0
    period: int = (
        spec.get("terminationGracePeriodSeconds", 0) if requested_seconds is None else requested_seconds
    )
    return 1 if period < 0 else period


# --- affinity and topology spread constraints

_PREFERRED, _REQUIRED = (
    "preferredDuringSchedulingIgnoredDuringExecution",
    "requiredDuringSchedulingIgnoredDuringExecution",
)
_OPERATORS = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}


def complete_selectors(pod: Tree) -> None:
    """Complete the selectors of pod affinity and of topology spread constraints."""
    spec, labels = pod["spec"], dict(meta.labels(pod))
    changed: dict[str, Any] = {}
    if spec.get("affinity"):
        affinity = spec["affinity"]
        kinds = [kind for kind in ("podAffinity", "podAntiAffinity") if affinity.get(kind)]
        changed["affinity"] = affinity | {kind: _complete_affinity(affinity[kind], labels) for kind in kinds}
    if spec.get("topologySpreadConstraints"):
        constraints = spec["topologySpreadConstraints"]
        changed["topologySpreadConstraints"] = [
            _complete_term(constraint, labels) for constraint in constraints
        ]
    pod["spec"] = spec | changed


def _complete_affinity(affinity: Tree, labels: dict[str, str]) -> Tree:
    changed: dict[str, Any] = {}
    if _REQUIRED in affinity:
        changed[_REQUIRED] = [_complete_term(term, labels) for term in affinity[_REQUIRED]]
    if _PREFERRED in affinity:
        changed[_PREFERRED] = [
            weighted | {"podAffinityTerm": _complete_term(weighted["podAffinityTerm"], labels)}
            for weighted in affinity[_PREFERRED]
        ]
    return affinity | changed


def _complete_term(term: Tree, labels: dict[str, str]) -> Tree:
    """Add a requirement for each label key of a term. A term without a selector selects nothing, and is not changed."""
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in _OPERATORS.items()
        for key in term.get(field, ())
        if key in labels
    ]
    selector = term.get("labelSelector")
    if selector is None or not added:
        return term
    expressions = [*selector.get("matchExpressions", ()), *added]
    return term | {"labelSelector": selector | {"matchExpressions": expressions}}


# --- annotations of init containers

_INIT_CONTAINERS: Final = tuple(
    f"pod.{version}.kubernetes.io/init-{subject}"
    for version in ("beta", "alpha")
    for subject in ("containers", "container-statuses")
)


def drop_init_containers(pod: Tree) -> None:
    """Drop the annotations that were the init containers of a pod before Kubernetes 1.8."""
    annotations = meta.annotations(pod)
    if any(name in annotations for name in _INIT_CONTAINERS):
        others = {name: text for name, text in annotations.items() if name not in _INIT_CONTAINERS}
        metadata = {name: value for name, value in pod["metadata"].items() if name != "annotations"}
        pod["metadata"] = metadata | ({"annotations": others} if others else {})


# --- AppArmor annotations

APPARMOR_ANNOTATION_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
_LOCALHOST = "localhost/"
_PROFILES = {"unconfined": {"type": "Unconfined"}, "runtime/default": {"type": "RuntimeDefault"}}


def take_apparmor_annotations(pod: Tree, request: StrategyContext) -> None:
    spec = pod["spec"]
    if (spec.get("os") or {}).get("name") == "windows":
        return
    annotated = {
        name.removeprefix(APPARMOR_ANNOTATION_PREFIX): value
        for name, value in meta.annotations(pod).items()
        if name.startswith(APPARMOR_ANNOTATION_PREFIX)
    }
    if annotated:
        of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
        changed = {
            field: [_with_profile(container, annotated, of_pod, request) for container in spec[field]]
            for field in _CONTAINER_LISTS
            if spec.get(field)
        }
        pod["spec"] = spec | changed


def _with_profile(
    container: Tree, annotated: dict[str, str], of_pod: Tree | None, request: StrategyContext
) -> Tree:
    """Return a container with the profile of its annotation, unless that is the pod's profile."""
    name = container.get("name", "")
    context = container.get("securityContext") or {}
    if name not in annotated or "appArmorProfile" in context:
        return container
    profile = apparmor_profile(annotated[name])
    if profile is not None and profile == of_pod:
        return container
    request.warn(
        f'metadata.annotations[{APPARMOR_ANNOTATION_PREFIX}{name}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    )
    if profile is None:
        return container
    return container | {"securityContext": context | {"appArmorProfile": profile}}


def apparmor_profile(value: str) -> Tree | None:
    if value.startswith(_LOCALHOST) and (local := value.removeprefix(_LOCALHOST).strip()):
        return {"type": "Localhost", "localhostProfile": local}
    profile = _PROFILES.get(value)
    return dict(profile) if profile else None


STRATEGY = Strategy(
    resets={
        strategy.MAIN: strategy.STATUS,
        "status": (*strategy.SPEC, ("metadata", "ownerReferences"), ("metadata", "deletionTimestamp")),
    },
    only={
        "ephemeralcontainers": (("spec", "ephemeralContainers"),),
        "resize": (
            ("spec", "resources"),
            ("spec", "containers", strategy.EACH_ITEM, "resources"),
            ("spec", "containers", strategy.EACH_ITEM, "resizePolicy"),
            ("spec", "initContainers", strategy.EACH_ITEM, "resources"),
            ("spec", "initContainers", strategy.EACH_ITEM, "resizePolicy"),
        ),
    },
    generation=strategy.SPEC,
    first_generation=1,
    disabled=DISABLED_IN_PODS,
    emptiable=emptiable_in("spec"),
    prepare_create=_prepare_create,
    prepare_update={strategy.MAIN: _prepare_update, "resize": _prepare_resize, "status": _prepare_status},
    grace=_grace,
    returns_deleted=True,
)
OLDER_STRATEGY: Final = replace(
    STRATEGY, prepare_create=_prepare_older_create, prepare_update={"status": _prepare_older_status}
)
"""The strategy of minors before 1.37."""
