"""StatefulSet."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import structs

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import SCALE, STATUS, Resource
from mockube.apiserver.kinds.common import ages, cells, checks
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.defaults import Fill, Table, defaults_table
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objectmeta import LABEL
from mockube.apiserver.kinds.common.validation import Update, Validation, in_order
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.core.pod import pod_template, workloads
from mockube.apiserver.kinds.core.pod.context import STRICT, PodValidationOptions
from mockube.apiserver.kinds.core.pod.defaults import INTERNAL_CHANGES_OF_TEMPLATE
from mockube.apiserver.kinds.core.pod.strategy import EMPTIABLE_IN_TEMPLATE, disabled_in_template
from mockube.apiserver.kinds.core.volumes.claim_spec import check_claim_spec
from mockube.apiserver.kinds.core.volumes.warnings import claim_warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import SPEC, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_ON_DELETE, _RECREATE, _ROLLING_UPDATE = "OnDelete", "Recreate", "RollingUpdate"
_ORDERED, _PARALLEL = "OrderedReady", "Parallel"
_SPEC: Final = ROOT.child("spec")


# --- fields


def _check_management(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    policy, path = spec.get("podManagementPolicy", ""), path.child("podManagementPolicy")
    if not policy:
        return (errors.required(path),)
    if policy in (_ORDERED, _PARALLEL):
        return ()
    return (errors.invalid(path, policy, f"must be '{_ORDERED}' or '{_PARALLEL}'"),)


def _check_rolling_update(update: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    yield from checks.non_negative(update.get("partition"), path.child("partition"))
    max_unavailable, path = update.get("maxUnavailable"), path.child("maxUnavailable")
    if max_unavailable is None:
        return
    yield from workloads.check_amount(max_unavailable, path)
    if not workloads.value_of(max_unavailable):
        yield errors.invalid(path, max_unavailable, "cannot be 0")
    yield from workloads.check_not_more_than_100_percent(max_unavailable, path)


def _check_strategy(
    strategy: ReadOnlyTree, path: Path, *, allows_recreate: bool = False
) -> Iterable[FieldError]:
    strategy_type, update = strategy.get("type", ""), strategy.get("rollingUpdate")
    if not strategy_type:
        return (errors.required(path),)
    is_recreate = allows_recreate and strategy_type == _RECREATE
    if strategy_type not in (_ON_DELETE, _ROLLING_UPDATE) and not is_recreate:
        value = internal("apps.StatefulSetUpdateStrategy", strategy)
        detail = f"must be '{_ROLLING_UPDATE}' or '{_ON_DELETE}'"
        if allows_recreate:
            detail = f"must be '{_ROLLING_UPDATE}', '{_ON_DELETE}', or '{_RECREATE}'"
        return (errors.invalid(path, value, detail),)
    if update is None:
        return ()
    if strategy_type == _ROLLING_UPDATE:
        return _check_rolling_update(update, path.child("rollingUpdate"))
    value = internal("apps.RollingUpdateStatefulSetStrategy", update)
    problem = f"only allowed for updateStrategy '{_ROLLING_UPDATE}'"
    return (errors.invalid(path.child("rollingUpdate"), value, problem),)


_RETENTION: Final = checks.one_of("Retain", "Delete")


def _policies(check_strategy: Check) -> Check:
    return checks.all_of(
        _check_management,
        checks.field("updateStrategy", check_strategy, absent={}),
        checks.pointer(
            "persistentVolumeClaimRetentionPolicy",
            checks.field("whenDeleted", _RETENTION, absent=""),
            checks.field("whenScaled", _RETENTION, absent=""),
        ),
    )


POLICIES: Final = _policies(_check_strategy)
_POLICIES_WITH_RECREATE: Final = _policies(partial(_check_strategy, allows_recreate=True))


def _policies_after(old: ReadOnlyTree) -> Check:
    """Return the checks of an update: a set that has the strategy Recreate may keep it without its feature gate."""
    had_recreate = (old.get("updateStrategy") or {}).get("type") == _RECREATE
    return _POLICIES_WITH_RECREATE if had_recreate else POLICIES


_CLAIMS: Final = checks.field(
    "volumeClaimTemplates", checks.each_item(checks.field("spec", check_claim_spec, absent={}))
)


def _check_ordinals(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    return checks.non_negative((spec.get("ordinals") or {}).get("start"), path.child("ordinals.start"))


NUMBERS: Final = checks.all_of(
    checks.field("replicas", checks.non_negative),
    checks.field("minReadySeconds", checks.non_negative),
    _check_ordinals,
)
_SERVICE_NAME: Final = checks.optional("serviceName", checks.report(names.check_dns1123_label))


# --- the template

_SET_BY_CONTROLLER: Final = ("subdomain", "hostname")


def _pod_template(spec: ReadOnlyTree) -> ReadOnlyTree:
    """Return the template of the created pods: with a volume for each claim, without `hostname` and `subdomain`."""
    template = spec.get("template") or {}
    pod_spec = {
        key: value for key, value in (template.get("spec") or {}).items() if key not in _SET_BY_CONTROLLER
    }
    claims = dict.fromkeys(
        (claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates", ())
    )
    if claims:
        claim_volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        others = [volume for volume in pod_spec.get("volumes", ()) if volume.get("name", "") not in claims]
        pod_spec["volumes"] = [*claim_volumes, *others]
    return {**template, "spec": pod_spec}


def _check_template(
    spec: ReadOnlyTree, path: Path, options: PodValidationOptions, *, old_is_invalid: bool
) -> Iterator[FieldError]:
    """Check the template. Upstream checks labels and annotations twice, and only these if the old template was invalid."""
    yield from workloads.check_required_selector(spec, path, "statefulset")
    template, selector, field_path = _pod_template(spec), workloads.selector_of(spec), path.child("template")
    if selector is None:
        yield errors.invalid(path.child("selector"), spec.get("selector"), "")
    else:
        if not selector.empty:
            yield from workloads.check_matches(template, selector, field_path)
        if not old_is_invalid:
            yield from pod_template.check_pod_template(template, field_path, options)
        yield from pod_template.check_template_metadata(template, field_path, options)
    yield from workloads.check_restarts(template, field_path, "StatefulSet")


# --- the whole object


def _check_changeable(
    spec: ReadOnlyTree, path: Path, options: PodValidationOptions, policies: Check, *, old_is_invalid: bool
) -> Iterator[FieldError]:
    """Check the fields that an update can change."""
    yield from policies(spec, path)
    yield from NUMBERS(spec, path)
    yield from _check_template(spec, path, options, old_is_invalid=old_is_invalid)


def _create(stateful_set: ReadOnlyTree, policies: Check = POLICIES) -> Iterator[FieldError]:
    spec = stateful_set.get("spec") or {}
    yield from policies(spec, _SPEC)
    yield from _CLAIMS(spec, _SPEC)
    yield from NUMBERS(spec, _SPEC)
    yield from _SERVICE_NAME(spec, _SPEC)
    yield from _check_template(spec, _SPEC, STRICT, old_is_invalid=False)


_IMMUTABLE: Final = ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy")


def _check_unchanged(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    for name in _IMMUTABLE:
        value = new.get(name)
        if (value or None) != (old.get(name) or None):
            yield errors.invalid(_SPEC.child(name), _internal_value(name, value), checks.IMMUTABLE)


def _internal_value(name: str, value: Any) -> Any:
    if name == "volumeClaimTemplates":
        return value and [internal("core.PersistentVolumeClaim", claim) for claim in value]
    return ("" if name == "serviceName" else None) if value is None else value


_CHANGEABLE: Final = frozenset(
    {
        "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
    }
)  # fmt: skip


def _check_all_unchanged(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    """Refuse all changes of other fields with one error, as older minors do."""
    fields = {*new, *old} - _CHANGEABLE
    if any((new.get(name) or None) != (old.get(name) or None) for name in fields):
        detail = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
            "'minReadySeconds' are forbidden"
        )
        yield errors.forbidden(_SPEC, detail)


def _check_update(
    new_set: ReadOnlyTree,
    old_set: ReadOnlyTree,
    check_unchanged: Update = _check_unchanged,
    policies_after: Callable[[ReadOnlyTree], Check] = _policies_after,
) -> Iterator[FieldError]:
    new, old = new_set.get("spec") or {}, old_set.get("spec") or {}
    options, policies = pod_template.options_from_old_template(old.get("template") or {}), policies_after(old)
    old_is_invalid = any(_check_changeable(old, ROOT, options, policies, old_is_invalid=False))
    yield from _check_changeable(new, _SPEC, options, policies, old_is_invalid=old_is_invalid)
    yield from check_unchanged(new, old)


_STATUS: Final = checks.all_of(
    workloads.counts(
        "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
        "collisionCount",
    ),
    workloads.at_most_field(
        "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas",
        title="status.replicas",
    ),
    workloads.at_most_field("readyReplicas", "availableReplicas", title="status.readyReplicas"),
)  # fmt: skip


_VALIDATION: Final = Validation(
    name=LABEL,
    create=_create,
    update=_check_update,
    subresources={"status": in_order(workloads.status_update(_STATUS), workloads.check_collisions)},
)
OLDER_VALIDATION: Final = structs.replace(
    _VALIDATION,
    update=partial(_check_update, check_unchanged=_check_all_unchanged, policies_after=lambda _: POLICIES),
)
_RECREATE_VALIDATION: Final = structs.replace(
    _VALIDATION,
    create=partial(_create, policies=_POLICIES_WITH_RECREATE),
    update=partial(_check_update, policies_after=lambda _: _POLICIES_WITH_RECREATE),
)


# --- strategy and defaults


_STRATEGY = Strategy(
    generation=SPEC,
    first_generation=1,
    disabled=disabled_in_template("spec.template"),
    emptiable=EMPTIABLE_IN_TEMPLATE,
)


def _default_older_update_strategy(strategy: Tree) -> None:
    """Set the strategy's defaults without the gate MaxUnavailableStatefulSet."""
    if "type" not in strategy:
        strategy["type"] = _ROLLING_UPDATE
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == _ROLLING_UPDATE and "rollingUpdate" in strategy:
        strategy["rollingUpdate"] = {"partition": 0} | strategy["rollingUpdate"]


def _default_update_strategy(strategy: Tree) -> None:
    """Set the strategy's defaults. Those of `rollingUpdate` are set only if it is there, or there is no type."""
    _default_older_update_strategy(strategy)
    if strategy["type"] == _ROLLING_UPDATE and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("maxUnavailable", 1)


def _defaults(of_strategy: Fill) -> Table:
    return defaults_table(
        "io.k8s.api.apps.v1",
        {
            "StatefulSetSpec": {
                "replicas": 1,
                "podManagementPolicy": "OrderedReady",
                "revisionHistoryLimit": 10,
                "persistentVolumeClaimRetentionPolicy": {},
            },
            "StatefulSetUpdateStrategy": of_strategy,
            "StatefulSetPersistentVolumeClaimRetentionPolicy": {
                "whenDeleted": "Retain",
                "whenScaled": "Retain",
            },
        },
    )


OLDER_DEFAULTS: Final = _defaults(_default_older_update_strategy)


# --- warnings and columns

_pod_warnings: Final = pod_template.pod_warnings_of(GroupKind("apps", "StatefulSet"))


def _spec_warnings(tree: ReadOnlyTree, *within_claim: str) -> Iterator[str]:
    spec = tree.get("spec") or {}
    claims = ROOT.child("spec", "volumeClaimTemplates")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from claim_warnings(claim.get("spec"), claims.index(index).child(*within_claim))
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        yield "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"


def _warn_create(tree: ReadOnlyTree) -> Iterator[str]:
    yield from _pod_warnings(tree)
    yield from _spec_warnings(tree)


def _warn_update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[str]:
    if pod_template.is_new_generation(new, old):
        yield from _pod_warnings(new)
    yield from _spec_warnings(new, "Spec")


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        workloads.ready_replicas(tree),
        ages.age(tree, now),
        *cells.names_and_images(cells.part(tree, "spec", "template")),
    ]


def _set_types_of_claims(stateful_set: Tree) -> None:
    """Set the kind and apiVersion of the templates of claims."""
    spec = stateful_set.get("spec") or {}
    if spec.get("volumeClaimTemplates"):
        typed = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
        claims = [typed | claim | typed for claim in spec["volumeClaimTemplates"]]
        stateful_set["spec"] = spec | {"volumeClaimTemplates": claims}


KIND: Final = Kind(
    resource=Resource(
        group="apps",
        version="v1",
        name="statefulsets",
        kind="StatefulSet",
        categories=("all",),
        short_names=("sts",),
        subresources=(SCALE, STATUS),
    ),
    strategy=_STRATEGY,
    validation=_VALIDATION,
    warnings=Warnings(create=_warn_create, update=_warn_update),
    printer=Printer(
        columns=(NAME, Column(name="Ready"), AGE_COLUMN, cells.CONTAINERS, cells.IMAGES), cells=_cells
    ),
    defaults=_defaults(_default_update_strategy),
    internal_changes=(*INTERNAL_CHANGES_OF_TEMPLATE, _set_types_of_claims),
    by_gate={"StatefulSetRecreateStrategy": {"validation": _RECREATE_VALIDATION}},
)
