"""Validation in older minors: rules that they do not have yet, and values that they do not allow yet.

A rule has the last minor to which it applies. `ignored` are fields whose errors an older minor does not report;
`check` returns additional errors. An update does not report those that the old object has.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import IMMUTABLE
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.validation import Update, Validation
from mockube.apiserver.kinds.common.validation_context import validate_as
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind

from . import wording
from .fields import CONTAINERS, TEMPLATES
from .older_parts import NAMED_BY_MANIFESTS

Check: TypeAlias = Callable[[ReadOnlyTree], Iterable[FieldError]]


def _no_errors(_tree: ReadOnlyTree) -> Iterable[FieldError]:
    return ()


def _no_update_errors(_new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterable[FieldError]:
    return ()


class MinorRule(NamedTuple):
    until: str
    check: Check = _no_errors
    ignored: tuple[str, ...] = ()
    """Fields, with all fields below them."""
    known_fields: tuple[str, ...] = ()
    """Fields below `ignored` whose errors the older minor reports."""
    reported_detail: str = ""
    """The detail of an error below `ignored` that the older minor reports."""
    check_update: Callable[[ReadOnlyTree, ReadOnlyTree], Iterable[FieldError]] = _no_update_errors
    """Takes the new object and the old one."""
    reword: Callable[[FieldError], Sequence[FieldError]] | None = None
    """Returns the errors that an older minor reports instead of an error."""


# --- pods and their templates


def _spec(tree: ReadOnlyTree, fields: Sequence[str]) -> tuple[ReadOnlyTree, Path]:
    path = ROOT
    for field in fields:
        tree, path = tree.get(field) or {}, path.child(field)
    return tree, path


def _containers(spec: ReadOnlyTree, path: Path) -> Iterator[tuple[ReadOnlyTree, Path]]:
    for name in CONTAINERS:
        for index, container in enumerate(spec.get(name) or ()):
            yield container, path.child(name).index(index)


def _strict_names(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the names of environment variables, for which older minors allow fewer characters."""
    for container, container_path in _containers(spec, path):
        for index, variable in enumerate(container.get("env") or ()):
            name = variable.get("name") or ""
            for problem in names.check_env_var_name(name) if name else ():
                yield errors.invalid(container_path.child("env").index(index).child("name"), name, problem)
        for index, source in enumerate(container.get("envFrom") or ()):
            prefix = source.get("prefix") or ""
            for problem in names.check_env_var_name(prefix) if prefix else ():
                yield errors.invalid(
                    container_path.child("envFrom").index(index).child("prefix"), prefix, problem
                )


def _strict_searches(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check that search domains are DNS names: without underscores, and not a single dot."""
    field_path = path.child("dnsConfig", "searches")
    for index, search in enumerate((spec.get("dnsConfig") or {}).get("searches") or ()):
        name = search.removesuffix(".")
        if name and not names.check_dns1123_subdomain_with_underscore(name) and "_" not in name:
            continue
        for problem in names.check_dns1123_subdomain(name):
            yield errors.invalid(field_path.index(index), search, problem)


def _positive_sleeps(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    grace = spec.get("terminationGracePeriodSeconds")
    for container, container_path in _containers(spec, path):
        for hook in ("postStart", "preStop"):
            sleep = ((container.get("lifecycle") or {}).get(hook) or {}).get("sleep")
            if sleep is not None and grace is not None and sleep.get("seconds", 0) == 0:
                problem = f"must be greater than 0 and less than terminationGracePeriodSeconds ({grace})"
                yield errors.invalid(container_path.child("lifecycle", hook, "sleep"), 0, problem)


_POD_RULES: Final[Sequence[tuple[str, Callable[[ReadOnlyTree, Path], Iterable[FieldError]]]]] = (
    ("1.31", _strict_names),
    ("1.32", _strict_searches),
    ("1.32", _positive_sleeps),
)


def _pod_rules(fields: tuple[str, ...]) -> tuple[MinorRule, ...]:
    def check_pods(check: Callable[[ReadOnlyTree, Path], Iterable[FieldError]]) -> Check:
        return lambda tree: check(*_spec(tree, fields))

    return tuple(MinorRule(until, check_pods(check)) for until, check in _POD_RULES)


# --- other kinds


def _check_traffic_distribution(service: ReadOnlyTree) -> Iterator[FieldError]:
    distribution = (service.get("spec") or {}).get("trafficDistribution")
    if distribution is not None and distribution != "PreferClose":
        yield errors.not_supported(ROOT.child("spec", "trafficDistribution"), distribution, ("PreferClose",))


def _check_name_begins_with_letter(service: ReadOnlyTree) -> Iterator[FieldError]:
    name = meta.name(service)
    if name and not names.check_dns1123_label(name):
        for problem in names.check_dns1035_label(name):
            yield errors.invalid(ROOT.child("metadata", "name"), name, problem)


def _check_history_limit(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    old_limit, new_limit = ((tree.get("spec") or {}).get("revisionHistoryLimit") for tree in (old, new))
    if old_limit != new_limit:
        detail = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        yield errors.forbidden(ROOT.child("spec"), detail)


# --- suspended Jobs

_TEMPLATE: Final = ROOT.child("spec", "template")
_DIRECTIVES: Final = frozenset({"nodeSelector", "tolerations", "schedulingGates", "affinity"})


def _ignore_template_error(error: FieldError) -> Sequence[FieldError]:
    """Ignore the error of the newest minor's rule: `_check_template_change` replaces the rule."""
    template_paths = (str(_TEMPLATE), str(_TEMPLATE.child("spec")))
    return () if error.field in template_paths and error.detail == IMMUTABLE else (error,)


def _check_template_change(new_job: ReadOnlyTree, old_job: ReadOnlyTree) -> Iterable[FieldError]:
    """Check that the template does not change, except for scheduling directives before a suspended Job starts."""
    new, old = ((job.get("spec") or {}).get("template") or {} for job in (new_job, old_job))
    is_suspended = bool((old_job.get("spec") or {}).get("suspend"))
    if is_suspended and not (old_job.get("status") or {}).get("startTime"):
        is_same = _without_scheduling(new) == _without_scheduling(old)
    else:
        is_same = new == old
    return () if is_same else (errors.invalid(_TEMPLATE, internal("core.PodTemplateSpec", new), IMMUTABLE),)


def _without_scheduling(template: ReadOnlyTree) -> dict[str, object]:
    """Return a template without the fields of scheduling, labels and annotations."""
    spec = template.get("spec") or {}
    affinity = spec.get("affinity") or {}
    return {
        "metadata": _without_fields(template.get("metadata") or {}, {"labels", "annotations"}),
        "spec": _without_fields(spec, _DIRECTIVES),
        "affinity": _without_fields(affinity, {"nodeAffinity"}),
    }


def _without_fields(tree: ReadOnlyTree, names: Collection[str]) -> dict[str, object]:
    return {name: value for name, value in tree.items() if name not in names}


_RBAC: Final = "rbac.authorization.k8s.io"
SERVICE: Final = GroupKind("", "Service")
STATEFUL_SET: Final = GroupKind("apps", "StatefulSet")

_OTHERS: Final[Mapping[GroupKind, tuple[MinorRule, ...]]] = {
    SERVICE: (
        MinorRule("1.33", _check_traffic_distribution, ("spec.trafficDistribution",)),
        MinorRule("1.35", _check_name_begins_with_letter),
    ),
    STATEFUL_SET: (
        MinorRule(
            "1.33",
            ignored=("spec.template.spec",),
            known_fields=("spec.template.spec.restartPolicy", "spec.template.spec.activeDeadlineSeconds"),
        ),
        MinorRule(
            "1.32",
            ignored=("spec.serviceName",),
            check_update=_check_history_limit,
            reword=wording.without_history_limit,
        ),
    ),
    GroupKind("discovery.k8s.io", "EndpointSlice"): (
        MinorRule("1.32", reword=wording.without_canonical_form),
    ),
    GroupKind("node.k8s.io", "RuntimeClass"): (
        MinorRule("1.34", reword=wording.with_doubled_tolerations),
        MinorRule("1.35", reword=wording.of_missing_handler),
    ),
    GroupKind("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): (
        MinorRule("1.35", reword=wording.of_missing_type),
    ),
    GroupKind("storage.k8s.io", "StorageClass"): (MinorRule("1.35", reword=wording.of_forbidden_update),),
    **dict.fromkeys(
        (GroupKind(_RBAC, "RoleBinding"), GroupKind(_RBAC, "ClusterRoleBinding")),
        (MinorRule("1.36", reword=wording.of_changed_role),),
    ),
    **dict.fromkeys(NAMED_BY_MANIFESTS, (MinorRule("1.36", reword=wording.without_reserved_name),)),
    GroupKind("storage.k8s.io", "CSINode"): (MinorRule("1.34", reword=wording.of_missing_driver),),
    GroupKind("storage.k8s.io", "VolumeAttachment"): (
        MinorRule("1.34", reword=wording.of_missing_driver),
        MinorRule("1.36", reword=wording.of_long_message),
    ),
    GroupKind("resource.k8s.io", "ResourceSlice"): (MinorRule("1.36", reword=wording.of_capacity_ranges),),
    GroupKind("resource.k8s.io", "ResourceClaim"): (
        MinorRule("1.36", reword=wording.without_allocated_tolerations),
    ),
    GroupKind("apps", "ControllerRevision"): (
        MinorRule("1.30", ignored=("data",), reported_detail="data is mandatory"),
    ),
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): (
        MinorRule("1.33", ignored=("spec.scaleTargetRef.apiVersion",)),
        MinorRule("1.35", reword=wording.of_missing_replicas),
    ),
}
_JOB: Final = GroupKind("batch", "Job")
_KINDS: Final[Mapping[str, GroupKind]] = {
    "podtemplates": GroupKind("", "PodTemplate"),
    "replicationcontrollers": GroupKind("", "ReplicationController"),
    "daemonsets": GroupKind("apps", "DaemonSet"),
    "deployments": GroupKind("apps", "Deployment"),
    "replicasets": GroupKind("apps", "ReplicaSet"),
    "cronjobs": GroupKind("batch", "CronJob"),
    "jobs": _JOB,
}
"""The kinds whose pod templates are checked. Those of StatefulSets are not."""
RULES: Final[Mapping[GroupKind, tuple[MinorRule, ...]]] = {
    GroupKind("", "Pod"): _pod_rules(("spec",)),
    **{
        _KINDS[resource.resource]: _pod_rules((*path.split("."), "spec"))
        for resource, path in TEMPLATES.items()
        if resource.resource in _KINDS
    },
    **_OTHERS,
    _JOB: (
        *_pod_rules(("spec", "template", "spec")),
        MinorRule("1.35", check_update=_check_template_change, reword=_ignore_template_error),
    ),
}


_DECLARED_SINCE: Final = "1.37"
"""The first minor that enforces declared rules. Older ones only compare them with those by hand."""


def rules_of(kind: GroupKind, minor: str) -> Sequence[MinorRule]:
    return [rule for rule in RULES.get(kind, ()) if not minors.is_before(rule.until, minor)]


def older_validation(kind: Kind, minor: str) -> Validation | None:
    """Return the validation of a kind in a minor, derived from its own."""
    rules, own = rules_of(kind.resource.group_kind, minor), kind.validation
    if own is None:
        return None
    if minors.is_before(minor, _DECLARED_SINCE):
        own = replace(own, declared=None)
    return _of_minor(_with_rules(own, rules) if rules else own, minor)


def _of_minor(own: Validation, minor: str) -> Validation:
    """Return a validation that follows the rules of a minor."""

    def create(tree: ReadOnlyTree) -> list[FieldError]:
        with validate_as(minor):
            return [*own.create(tree)]

    def update_of(check: Update) -> Update:
        def update(new: ReadOnlyTree, old: ReadOnlyTree) -> list[FieldError]:
            with validate_as(minor):
                return [*check(new, old)]

        return update

    updates = {subresource: update_of(check) for subresource, check in own.subresources.items()}
    return replace(own, create=create, update=update_of(own.update), subresources=updates)


def _with_rules(own: Validation, rules: Sequence[MinorRule]) -> Validation:
    def create(tree: ReadOnlyTree) -> list[FieldError]:
        return [*_select_errors(own.create(tree), rules), *_run_rules(tree, rules)]

    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> list[FieldError]:
        old_errors = {(error.type, error.value, error.detail) for error in _run_rules(old, rules)}
        new_errors = [
            error
            for error in _run_rules(new, rules)
            if (error.type, error.value, error.detail) not in old_errors
        ]
        changed = [error for rule in rules for error in rule.check_update(new, old)]
        return [*_select_errors(own.update(new, old), rules), *new_errors, *changed]

    def select_in(check: Update) -> Update:
        return lambda new, old: [*_select_errors(check(new, old), rules)]

    updates = {subresource: select_in(check) for subresource, check in own.subresources.items()}
    return replace(own, create=create, update=update, subresources=updates)


def _run_rules(tree: ReadOnlyTree, rules: Sequence[MinorRule]) -> list[FieldError]:
    return [error for rule in rules for error in rule.check(tree)]


def _select_errors(field_errors: Iterable[FieldError], rules: Sequence[MinorRule]) -> Iterator[FieldError]:
    for error in field_errors:
        if any(_is_ignored(error, rule) for rule in rules):
            continue
        reworded: Sequence[FieldError] = (error,)
        for reword in (rule.reword for rule in rules if rule.reword is not None):
            reworded = [reworded_error for each in reworded for reworded_error in reword(each)]
        yield from reworded


def _is_ignored(error: FieldError, rule: MinorRule) -> bool:
    if rule.reported_detail and error.detail == rule.reported_detail:
        return False
    return _is_below(error.field, rule.ignored) and not _is_below(error.field, rule.known_fields)


def _is_below(field: str, fields: Iterable[str]) -> bool:
    return any(field == parent or field.startswith((f"{parent}.", f"{parent}[")) for parent in fields)


# --- warnings

_SINCE: Final[Sequence[tuple[str, str]]] = (
    ("this rule will have no effect", "1.37"),
    ("x-kubernetes-list-type: set for items", "1.37"),
    ("metadata.name: names ending with ", "1.36"),
    ("spec.externalIPs is deprecated", "1.36"),
    (" contains uppercase characters", "1.35"),
    ("ResourceQuota ", "1.35"),
    ("spec.serviceAccountTokenInSecrets is unset", "1.35"),
    ('spec.trafficDistribution: "PreferClose" is deprecated', "1.35"),
    (" is ignored for headless services", "1.34"),
    ("unrecognized format ", "1.34"),
    (": duplicate port name ", "1.33"),
    ("spec.revisionHistoryLimit: a negative value retains all", "1.33"),
    ("[kubernetes.io/enforce-mountable-secrets]: ", "1.32"),
    (" (Projected) has no sources provided", "1.32"),
    (": overlapping paths: ", "1.32"),
    ("[volume.beta.kubernetes.io/mount-options]: ", "1.31"),
    (": The Recycle reclaim policy is deprecated", "1.30"),
    (': deprecated since v1.30; use the "appArmorProfile" field', "1.30"),
)
"""Parts of warnings, and the first minor that has them."""


def older_warnings(kind: Kind, minor: str) -> Warnings | None:
    own = kind.warnings
    if own is None:
        return None
    later = tuple(text for text, since in _SINCE if minors.is_before(minor, since))
    reword = wording.warning_of(kind.resource.group_kind, minor)

    def older(warnings: Iterable[str]) -> Iterator[str]:
        for text in warnings:
            if not any(part in text for part in later):
                yield from reword(text)

    def create(tree: ReadOnlyTree) -> Iterable[str]:
        return older(own.create(tree))

    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[str]:
        return older(own.update(new, old))

    return replace(own, create=create, update=update)
