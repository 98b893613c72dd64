"""Invariants: rules in CEL that hold at every revision, over an object, what it was before, and the other objects then and earlier."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.environment import CompiledExpression, Environment, ResultTypeError
from mockube.apimachinery.cel.program import ProgramError
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.cel.values import CelError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.suggestions import did_you_mean

_BY_KIND: Final = types.map_of(types.STRING, types.list_of(types.DYN))
_ENVIRONMENT: Final = Environment(
    {
        "object": types.DYN,
        "oldObject": types.DYN,
        "objects": types.list_of(types.DYN),
        "cluster": _BY_KIND,
        "history": _BY_KIND,
        "user": types.STRING,
        "operator": types.STRING,
    }
)
_COST_LIMIT: Final = 100_000_000
"""That of an expression over some thousand objects."""
_FIELDS: Final = ("name", "kinds", "expression")
ANY_KIND: Final = "*"


class InvalidInvariant(Exception):
    """An invariant has a mistake."""


class RevisionState(Struct, frozen=True, kw_only=True):
    """What an invariant sees of a write."""

    object: ReadOnlyTree | None
    """None after a deletion."""
    old_object: ReadOnlyTree | None
    """None after a creation."""
    objects: Sequence[ReadOnlyTree] = ()
    """Those of its kind that the run has touched."""
    cluster: Mapping[str, Sequence[ReadOnlyTree]] = {}
    """All that exist after the write, by kind."""
    history: Mapping[str, Sequence[ReadOnlyTree]] = {}
    """Their versions until then, and those of objects that were deleted."""
    user: str = ""
    """Who wrote it."""
    operator: str = ""
    """The user that the operator is."""


class Invariant(Struct, frozen=True, kw_only=True):
    """A rule."""

    name: str
    kinds: Sequence[str]
    """The kinds to whose objects it applies; `*` for all."""
    expression: str
    compiled: CompiledExpression
    is_of_library: bool = False

    def applies_to(self, kind: str) -> bool:
        return ANY_KIND in self.kinds or kind in self.kinds or kind.partition(".")[0] in self.kinds

    def problem(self, state: RevisionState) -> str:
        """Return how a write violates it, or ""."""
        values = {
            "object": state.object,
            "oldObject": state.old_object,
            "objects": [*state.objects],
            "cluster": state.cluster,
            "history": state.history,
            "user": state.user,
            "operator": state.operator,
        }
        try:
            value, _ = self.compiled.program.evaluate(values, _COST_LIMIT)
        except CelError as error:
            return f"{self.name} cannot be evaluated: {error}"
        if value is True:
            return ""
        return f"{self.name} does not hold{'' if self.is_of_library else f': {self.expression}'}"


def invariant(name: str, kinds: Sequence[str], expression: str) -> Invariant:
    try:
        compiled = _ENVIRONMENT.compile(expression, (types.BOOL, types.DYN).__contains__)
    except (Issues, ProgramError) as error:
        raise InvalidInvariant(f"expression: {error}") from error
    except ResultTypeError as error:
        raise InvalidInvariant(f"expression: must be a bool, not {error}") from error
    return Invariant(name=name, kinds=kinds, expression=expression, compiled=compiled)


def read_invariant(value: Any) -> Invariant:
    """Return the invariant of a scenario: the name of one of the library, or a map."""
    if isinstance(value, str):
        if value not in LIBRARY:
            raise InvalidInvariant(f'no invariant of the library is "{value}"{did_you_mean(value, LIBRARY)}')
        return replace(invariant(value, *LIBRARY[value]), is_of_library=True)
    if not isinstance(value, Mapping):
        raise InvalidInvariant(f"must be a map or the name of one of the library, not {value!r}")
    for name in value:
        if name not in _FIELDS:
            raise InvalidInvariant(f'unknown field "{name}": must be one of {", ".join(_FIELDS)}')
    expression, kinds = value.get("expression"), value.get("kinds", [ANY_KIND])
    if not isinstance(expression, str):
        raise InvalidInvariant("expression: must be a text in CEL")
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise InvalidInvariant("kinds: must be a list of kinds")
    return invariant(str(value.get("name") or expression), kinds, expression)


_WORKLOADS: Final = ("Deployment.apps", "StatefulSet.apps")
_DELETES: Final = (
    "(user == operator && oldObject != null && !has(oldObject.metadata.deletionTimestamp) && "
    "(object == null || has(object.metadata.deletionTimestamp)))"
)
"""The operator deletes the object."""
_CREATED: Final = "(oldObject == null && object != null)"
_UPDATED: Final = "(oldObject != null && object != null && object.metadata.uid == oldObject.metadata.uid)"
_WRITTEN: Final = f"(user == operator && {_UPDATED})"
"""The operator changes the object."""
_RUNNING_PODS: Final = (
    "cluster[?'Pod'].orValue([]).filter(pod, pod.metadata.?namespace == oldObject.metadata.?namespace && "
    "!has(pod.metadata.deletionTimestamp) && !(pod.?status.?phase.orValue('') in ['Succeeded', 'Failed']))"
)
"""The pods beside an object that is deleted."""
_VOLUMES: Final = "pod.?spec.?volumes.orValue([])"
_INDEX: Final = "metadata.?labels[?'apps.kubernetes.io/pod-index'].orValue('')"
_TIME: Final = "metadata.?annotations[?'batch.kubernetes.io/cronjob-scheduled-timestamp'].orValue('')"

_CONFIGURATION: Final = {"ConfigMap": ("configMap", "name"), "Secret": ("secret", "secretName")}
"""The field of a volume with an object of a kind, and the field with its name there."""


def _uses(kind: str) -> str:
    """Return whether a pod needs the object that is deleted, a ConfigMap or a Secret."""
    field, name = _CONFIGURATION[kind]
    own = "oldObject.metadata.name"
    containers = "(pod.?spec.?containers.orValue([]) + pod.?spec.?initContainers.orValue([]))"
    return (
        f"(oldObject.kind == '{kind}' && ({_VOLUMES}.exists(volume, "
        f"volume.?{field}.?{name}.orValue('') == {own} && !volume.?{field}.?optional.orValue(false) || "
        f"volume.?projected.?sources.orValue([]).exists(source, source.?{field}.?name.orValue('') == {own} && "
        f"!source.?{field}.?optional.orValue(false))) || {containers}.exists(container, "
        f"container.?envFrom.orValue([]).exists(from, from.?{field}Ref.?name.orValue('') == {own} && "
        f"!from.?{field}Ref.?optional.orValue(false)) || container.?env.orValue([]).exists(variable, "
        f"variable.?valueFrom.?{field}KeyRef.?name.orValue('') == {own} && "
        f"!variable.?valueFrom.?{field}KeyRef.?optional.orValue(false)))))"
    )


def _ready(pod: str) -> str:
    return (
        f"{pod}.?status.?conditions.orValue([]).exists(each, each.type == 'Ready' && each.status == 'True')"
    )


def _controller(tree: str) -> str:
    """Return the owner that controls an object, as a list of at most one."""
    return f"{tree}.metadata.?ownerReferences.orValue([]).filter(owner, owner.?controller.orValue(false))"


def _owner_kind(owner: str) -> str:
    """Return the kind of an owner with its group, as a key of `cluster`."""
    group = f"({owner}.apiVersion.contains('/') ? '.' + {owner}.apiVersion.split('/')[0] : '')"
    return f"({owner}.kind + {group})"


_OTHERS: Final = (
    "cluster[?'Pod'].orValue([]).filter(pod, pod.metadata.name != oldObject.metadata.name && "
    "!has(pod.metadata.deletionTimestamp) && "
    f"{_controller('pod')}.exists(owner, owner.uid == {_controller('oldObject')}[0].uid))"
)
"""The other pods of the same owner as a pod that is deleted."""
_SET: Final = "cluster[?'StatefulSet.apps'].orValue([]).filter(set, {pod}.metadata.?ownerReferences.orValue([]).exists(owner, owner.uid == set.metadata.uid))"
_NOT_COUNTED_OWNERS: Final = "['ReplicaSet', 'ReplicationController', 'DaemonSet', 'Job']"
"""Owners whose pods need no majority."""
_NEW_OWNERS: Final = (
    "object == null || (oldObject != null && oldObject.metadata.?ownerReferences == object.metadata.?ownerReferences) || "
    "object.metadata.?ownerReferences.orValue([]).all(owner, "
)
LIBRARY: Final[Mapping[str, tuple[Sequence[str], str]]] = {
    "bound-claims-are-kept": (
        ("PersistentVolumeClaim",),
        f"!{_DELETES} || oldObject.?status.?phase.orValue('') != 'Bound'",
    ),
    "one-pod-for-each-ordinal": (
        ("Pod",),
        (
            "object == null || !has(object.metadata.labels) || !('apps.kubernetes.io/pod-index' in object.metadata.labels) || "
            "objects.filter(other, other.?metadata.?labels[?'apps.kubernetes.io/pod-index'] == "
            "object.?metadata.?labels[?'apps.kubernetes.io/pod-index'] && other.?metadata.?ownerReferences[?0].?uid == "
            "object.?metadata.?ownerReferences[?0].?uid).size() <= 1"
        ),
    ),
    "replicas-are-not-removed": (
        _WORKLOADS,
        (
            f"!{_WRITTEN} || object.?spec.?replicas.orValue(1) > 0 || "
            "oldObject.?spec.?replicas.orValue(1) == 0"
        ),
    ),
    "quorum-is-kept": (
        ("StatefulSet",),
        (f"!{_WRITTEN} || object.?spec.?replicas.orValue(1) * 2 > oldObject.?spec.?replicas.orValue(1)"),
    ),
    "volume-claims-of-pods-exist": (
        ("StatefulSet",),
        (
            f"!{_WRITTEN} || object.?spec.?volumeClaimTemplates.orValue([]).size() == "
            "oldObject.?spec.?volumeClaimTemplates.orValue([]).size()"
        ),
    ),
    "observed-generation-grows": (
        (ANY_KIND,),
        (
            "object == null || oldObject == null || object.metadata.uid != oldObject.metadata.uid || "
            "object.?status.?observedGeneration.orValue(0) >= oldObject.?status.?observedGeneration.orValue(0)"
        ),
    ),
    "observed-generation-is-real": (
        (ANY_KIND,),
        (
            "object == null || object.?status.?observedGeneration.orValue(0) <= object.?metadata.?generation.orValue(0) || "
            "!has(object.metadata.generation)"
        ),
    ),
    "owners-are-kept": (
        (ANY_KIND,),
        (
            f"!{_WRITTEN} || has(object.metadata.deletionTimestamp) || "
            "object.?metadata.?ownerReferences.orValue([]).size() >= oldObject.?metadata.?ownerReferences.orValue([]).size()"
        ),
    ),
    "secrets-keep-their-type": (
        ("Secret",),
        f"!{_WRITTEN} || object.?type.orValue('') == oldObject.?type.orValue('')",
    ),
    "certificates-keep-their-secret": (
        ("Certificate.cert-manager.io",),
        (f"!{_WRITTEN} || object.?spec.?secretName.orValue('') == oldObject.?spec.?secretName.orValue('')"),
    ),
    "finalizers-go-at-the-end": (
        (ANY_KIND,),
        (
            f"!{_WRITTEN} || has(object.metadata.deletionTimestamp) || "
            "object.?status.?phase.orValue('') in ['Succeeded', 'Failed'] || "
            "object.?metadata.?finalizers.orValue([]).size() >= oldObject.?metadata.?finalizers.orValue([]).size()"
        ),
    ),
    "conditions-are-unique": (
        (ANY_KIND,),
        (
            "object == null || !has(object.status) || type(object.status) != map || !has(object.status.conditions) || "
            "type(object.status.conditions) != list || object.status.conditions.all(one, "
            "object.status.conditions.filter(other, other.?type == one.?type).size() == 1)"
        ),
    ),
    "claims-of-running-pods-are-kept": (
        ("PersistentVolumeClaim",),
        (
            f"!{_DELETES} || !{_RUNNING_PODS}.exists(pod, {_VOLUMES}.exists(volume, "
            "volume.?persistentVolumeClaim.?claimName.orValue('') == oldObject.metadata.name))"
        ),
    ),
    "configuration-of-running-pods-is-kept": (
        tuple(_CONFIGURATION),
        f"!{_DELETES} || !{_RUNNING_PODS}.exists(pod, {' || '.join(map(_uses, _CONFIGURATION))})",
    ),
    "accounts-of-running-pods-are-kept": (
        ("ServiceAccount",),
        (
            f"!{_DELETES} || !{_RUNNING_PODS}.exists(pod, "
            "pod.?spec.?serviceAccountName.orValue('') == oldObject.metadata.name)"
        ),
    ),
    "ready-pods-keep-a-majority": (
        ("Pod",),
        (
            f"!{_DELETES} || !{_ready('oldObject')} || {_controller('oldObject')}.size() == 0 || "
            f"{_controller('oldObject')}[0].kind in {_NOT_COUNTED_OWNERS} || {_OTHERS}.size() == 0 || "
            f"{_SET.format(pod='oldObject')}.exists(set, oldObject.{_INDEX} != '' && int(oldObject.{_INDEX}) >= "
            "set.?spec.?replicas.orValue(1) + set.?spec.?ordinals.?start.orValue(0)) || "
            f"{_OTHERS}.filter(pod, {_ready('pod')}).size() * 2 > {_OTHERS}.size()"
        ),
    ),
    "earlier-ordinals-were-ready": (
        ("Pod",),
        (
            f"!{_CREATED} || object.{_INDEX} == '' || {_SET.format(pod='object')}.all(set, "
            "set.?spec.?podManagementPolicy.orValue('OrderedReady') != 'OrderedReady' || "
            f"int(object.{_INDEX}) <= set.?spec.?ordinals.?start.orValue(0) || "
            f"history[?'Pod'].orValue([]).exists(pod, int(object.{_INDEX}) - 1 == "
            f"int(pod.{_INDEX} == '' ? '-1' : pod.{_INDEX}) && {_ready('pod')} && "
            "pod.metadata.?ownerReferences.orValue([]).exists(owner, owner.uid == set.metadata.uid)))"
        ),
    ),
    "ready-replicas-are-real": (
        ("Deployment.apps", "StatefulSet.apps", "ReplicaSet.apps", "ReplicationController"),
        (
            "object == null || (object.?status.?readyReplicas.orValue(0) <= object.?status.?replicas.orValue(0) && "
            "object.?status.?availableReplicas.orValue(0) <= object.?status.?readyReplicas.orValue(0))"
        ),
    ),
    "replicas-of-autoscaled-workloads-are-kept": (
        _WORKLOADS,
        (
            f"!{_WRITTEN} || user.endsWith(':horizontal-pod-autoscaler') || "
            "object.?spec.?replicas == oldObject.?spec.?replicas || "
            "!cluster[?'HorizontalPodAutoscaler.autoscaling'].orValue([]).exists(scaler, "
            "scaler.metadata.?namespace == object.metadata.?namespace && scaler.?spec.?scaleTargetRef.?kind.orValue('') == object.kind && "
            "scaler.?spec.?scaleTargetRef.?name.orValue('') == object.metadata.name)"
        ),
    ),
    "owners-are-in-the-same-namespace": (
        (ANY_KIND,),
        (
            f"{_NEW_OWNERS}!cluster[?{_owner_kind('owner')}].orValue([]).exists(other, "
            "other.metadata.uid == owner.uid && other.metadata.?namespace.orValue('') != '' && "
            "other.metadata.?namespace != object.metadata.?namespace))"
        ),
    ),
    "owners-have-existed": (
        (ANY_KIND,),
        (
            f"{_NEW_OWNERS}!({_owner_kind('owner')} in history) || "
            f"history[{_owner_kind('owner')}].exists(other, other.metadata.uid == owner.uid))"
        ),
    ),
    "jobs-run-once-for-each-time": (
        ("Job.batch",),
        (
            f"!{_CREATED} || object.{_TIME} == '' || !history[?'Job.batch'].orValue([]).exists(job, "
            f"job.metadata.uid != object.metadata.uid && job.{_TIME} == object.{_TIME} && "
            f"{_controller('job')}.map(owner, owner.uid) == {_controller('object')}.map(owner, owner.uid))"
        ),
    ),
    "finished-jobs-stay-finished": (
        ("Job.batch",),
        (
            f"!{_UPDATED} || oldObject.?status.?conditions.orValue([]).all(old, "
            "!(old.type in ['Complete', 'Failed'] && old.status == 'True') || object.?status.?conditions.orValue([]).exists("
            "each, each.type == old.type && each.status == 'True'))"
        ),
    ),
    "secrets-of-certificates-are-kept": (
        ("Secret",),
        (
            f"!{_DELETES} || !(cluster[?'Certificate.cert-manager.io'].orValue([]).exists(certificate, "
            "certificate.metadata.?namespace == oldObject.metadata.?namespace && "
            "!has(certificate.metadata.deletionTimestamp) && certificate.?spec.?secretName.orValue('') == oldObject.metadata.name) || "
            "cluster[?'Ingress.networking.k8s.io'].orValue([]).exists(ingress, "
            "ingress.metadata.?namespace == oldObject.metadata.?namespace && !has(ingress.metadata.deletionTimestamp) && "
            "ingress.?spec.?tls.orValue([]).exists(each, each.?secretName.orValue('') == oldObject.metadata.name)))"
        ),
    ),
    "volumes-keep-their-claim": (
        ("PersistentVolume",),
        (
            f"!{_UPDATED} || oldObject.?status.?phase.orValue('') != 'Bound' || "
            "!cluster[?'PersistentVolumeClaim'].orValue([]).exists(claim, "
            "claim.metadata.uid == oldObject.?spec.?claimRef.?uid.orValue('')) || "
            "object.?spec.?claimRef.?uid == oldObject.?spec.?claimRef.?uid"
        ),
    ),
    "definitions-in-use-are-kept": (
        ("CustomResourceDefinition.apiextensions.k8s.io",),
        (
            f"!{_DELETES} || cluster[?(oldObject.spec.names.kind + '.' + oldObject.spec.group)].orValue([]).size() == 0"
        ),
    ),
    "transition-times-change-with-the-status": (
        (ANY_KIND,),
        (
            f"!{_UPDATED} || !has(object.status) || type(object.status) != map || !has(object.status.conditions) || "
            "type(object.status.conditions) != list || object.status.conditions.all(one, "
            "oldObject.?status.?conditions.orValue([]).all(old, old.?type != one.?type || old.?status != one.?status || "
            "old.?lastTransitionTime == one.?lastTransitionTime))"
        ),
    ),
}
"""The invariants that a scenario can name, with the kinds to which they apply."""
