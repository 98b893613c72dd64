"""StatefulSets, which come with claims to volumes for each of their pods."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.internal import internal
from apiserver.validation.kind import Validation
from apiserver.validation.objectmeta import LABEL
from apiserver.validation.objects import together
from apiserver.validation.pods.leniency import STRICT, Leniency
from apiserver.validation.pods.template import (
    check_pod_template,
    check_template_metadata,
    leniency_towards_template,
)
from apiserver.validation.rules import (
    Tree,
    each,
    every,
    field,
    non_negative,
    one_of,
    optional,
    pointer,
    valid,
)
from apiserver.validation.volumes.claims import check_claim_spec
from apiserver.validation.workloads.counts import (
    check_collisions,
    counts,
    no_more_than_field,
    status_update,
)
from apiserver.validation.workloads.rolling import check_stateful_set
from apiserver.validation.workloads.selected import (
    check_matches,
    check_required_selector,
    check_restarts,
    selector_of,
)

_ON_DELETE, _ROLLING_UPDATE = "OnDelete", "RollingUpdate"
_ORDERED, _PARALLEL = "OrderedReady", "Parallel"
_SPEC: Final = ROOT.child("spec")


# --- fields


def _check_management(spec: Tree, path: Path) -> Iterable[FieldError]:
    policy, path = spec.get("podManagementPolicy", ""), path.child("podManagementPolicy")
    if not policy:
        return (errors.required(path),)
    if policy in (_ORDERED, _PARALLEL):
        return ()
    return (errors.invalid(path, policy, f"must be '{_ORDERED}' or '{_PARALLEL}'"),)


def _check_strategy(strategy: Tree, path: Path) -> Iterable[FieldError]:
    of_type, update = strategy.get("type", ""), strategy.get("rollingUpdate")
    if not of_type:
        return (errors.required(path),)
    if of_type not in (_ON_DELETE, _ROLLING_UPDATE):
        shown = internal("apps.StatefulSetUpdateStrategy", strategy)
        return (errors.invalid(path, shown, f"must be '{_ROLLING_UPDATE}' or '{_ON_DELETE}'"),)
    if update is None:
        return ()
    if of_type == _ROLLING_UPDATE:
        return check_stateful_set(update, path.child("rollingUpdate"))
    shown = internal("apps.RollingUpdateStatefulSetStrategy", update)
    problem = f"only allowed for updateStrategy '{_ROLLING_UPDATE}'"
    return (errors.invalid(path.child("rollingUpdate"), shown, problem),)


_RETENTION: Final = one_of("Retain", "Delete")

_POLICIES: Final = every(
    _check_management,
    field("updateStrategy", _check_strategy, absent={}),
    pointer(
        "persistentVolumeClaimRetentionPolicy",
        field("whenDeleted", _RETENTION, absent=""),
        field("whenScaled", _RETENTION, absent=""),
    ),
)
_CLAIMS: Final = field("volumeClaimTemplates", each(field("spec", check_claim_spec, absent={})))


def _check_ordinals(spec: Tree, path: Path) -> Iterable[FieldError]:
    return non_negative((spec.get("ordinals") or {}).get("start"), path.child("ordinals.start"))


_NUMBERS: Final = every(
    field("replicas", non_negative), field("minReadySeconds", non_negative), _check_ordinals
)
_SERVICE_NAME: Final = optional("serviceName", valid(names.check_dns1123_label))


# --- the template

_SET_BY_CONTROLLER: Final = ("subdomain", "hostname")


def _as_made(spec: Tree) -> Tree:
    """The template as pods are made of it: with a volume for each claim, and names that are not the template's to give."""
    template = spec.get("template") or {}
    of_pod = {
        key: value for key, value in (template.get("spec") or {}).items() if key not in _SET_BY_CONTROLLER
    }
    claims = dict.fromkeys(
        (claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates", ())
    )
    if claims:
        claimed = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        others = [volume for volume in of_pod.get("volumes", ()) if volume.get("name", "") not in claims]
        of_pod["volumes"] = [*claimed, *others]
    return {**template, "spec": of_pod}


def _check_template(spec: Tree, path: Path, leniency: Leniency, *, was_wrong: bool) -> Iterator[FieldError]:
    """Labels and annotations are told of twice; and alone, if the pods were wrong before."""
    yield from check_required_selector(spec, path, "statefulset")
    template, selector, at = _as_made(spec), selector_of(spec), path.child("template")
    if selector is None:
        yield errors.invalid(path.child("selector"), spec.get("selector"), "")
    else:
        if not selector.empty:
            yield from check_matches(template, selector, at)
        if not was_wrong:
            yield from check_pod_template(template, at, leniency)
        yield from check_template_metadata(template, at, leniency)
    yield from check_restarts(template, at, "StatefulSet")


# --- sets


def _check_changeable(spec: Tree, path: Path, leniency: Leniency, *, was_wrong: bool) -> Iterator[FieldError]:
    """What is looked at also of sets that are there already."""
    yield from _POLICIES(spec, path)
    yield from _NUMBERS(spec, path)
    yield from _check_template(spec, path, leniency, was_wrong=was_wrong)


def _create(stateful_set: Tree) -> Iterator[FieldError]:
    spec = stateful_set.get("spec") or {}
    yield from _POLICIES(spec, _SPEC)
    yield from _CLAIMS(spec, _SPEC)
    yield from _NUMBERS(spec, _SPEC)
    yield from _SERVICE_NAME(spec, _SPEC)
    yield from _check_template(spec, _SPEC, STRICT, was_wrong=False)


_CHANGEABLE: Final = frozenset(
    {
        "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
    }
)  # fmt: skip


def _check_unchanged(new: Tree, old: Tree) -> Iterator[FieldError]:
    fields = {*new, *old} - _CHANGEABLE
    if any((new.get(name) or None) != (old.get(name) or None) for name in fields):
        detail = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
            "'minReadySeconds' are forbidden"
        )
        yield errors.forbidden(_SPEC, detail)


def _update(new_set: Tree, old_set: Tree) -> Iterator[FieldError]:
    new, old = new_set.get("spec") or {}, old_set.get("spec") or {}
    leniency = leniency_towards_template(old.get("template") or {})
    was_wrong = any(_check_changeable(old, ROOT, leniency, was_wrong=False))
    yield from _check_changeable(new, _SPEC, leniency, was_wrong=was_wrong)
    yield from _check_unchanged(new, old)


_STATUS: Final = every(
    counts(
        "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
        "collisionCount",
    ),
    no_more_than_field(
        "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas",
        shown="status.replicas",
    ),
    no_more_than_field("readyReplicas", "availableReplicas", shown="status.readyReplicas"),
)  # fmt: skip

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("apps", "StatefulSet"): Validation(
        name=LABEL,
        create=_create,
        update=_update,
        subresources={"status": together(status_update(_STATUS), check_collisions)},
    ),
}
