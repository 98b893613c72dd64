"""Validation of Jobs, and of the Job templates of CronJobs."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mockube.apimachinery import conditions, errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks, objectmeta
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objectmeta import METADATA, SUBDOMAIN
from mockube.apiserver.kinds.common.selectors import (
    check_selector,
    check_selector_leniently,
    has_wrong_values,
)
from mockube.apiserver.kinds.core.pod.context import STRICT, PodValidationOptions
from mockube.apiserver.kinds.core.pod.pod_template import check_pod_template, options_from_old_template
from mockube.apiserver.kinds.core.pod.workloads import check_matches, selector_of

from .policies import check_pod_failure_policy, check_pod_replacement_policy, check_success_policy

INDEXED, NON_INDEXED = "Indexed", "NonIndexed"
_ALWAYS, _ON_FAILURE, _NEVER = "Always", "OnFailure", "Never"

_MAX_INDEXED: Final = 100_000
_MANY_COMPLETIONS, _MAX_WITH_MANY_COMPLETIONS = 100_000, 10_000
_MAX_MANAGER_LENGTH: Final = 63

_SPEC: Final = ROOT.child("spec")


def is_indexed(spec: ReadOnlyTree) -> bool:
    return spec.get("completionMode") == INDEXED


# --- numbers

_HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def _check_manager(manager: str, path: Path) -> Iterator[FieldError]:
    """Check that the manager is a path that begins with a domain."""
    domain, _, manager_path = manager.partition("/")
    if not manager:
        yield errors.required(path)
    elif not domain or not manager_path:
        yield errors.invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        for problem in names.check_dns1123_subdomain(domain):
            yield errors.invalid(path, domain, problem)
        if not _HTTP_PATH.fullmatch(manager_path):
            problem = f"Invalid path (regex used for validation is '{_HTTP_PATH.pattern}')"
            yield errors.invalid(path, manager_path, problem)
    yield from checks.max_bytes(_MAX_MANAGER_LENGTH)(manager, path)


def _check_failed_indexes(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    if spec.get("maxFailedIndexes") is None:
        return
    yield from checks.non_negative(spec["maxFailedIndexes"], path.child("maxFailedIndexes"))
    if spec.get("backoffLimitPerIndex") is None:
        yield errors.required(path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified")


_NUMBERS: Final = checks.all_of(
    *(
        checks.field(name, checks.non_negative)
        for name in (
            "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
            "backoffLimitPerIndex",
        )
    ),
    _check_failed_indexes,
    checks.pointer("managedBy", _check_manager),
)  # fmt: skip


# --- indexes


def _at_most(spec: ReadOnlyTree, name: str, limit: int, condition: str, path: Path) -> Iterable[FieldError]:
    value = spec.get(name)
    if value is None or value <= limit:
        return ()
    return (errors.invalid(path.child(name), value, f"must be less than or equal to {limit}{condition}"),)


def _check_indexed(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    if completions is None:
        yield errors.required(path.child("completions"), f"when completion mode is {INDEXED}")
    condition = f" when completion mode is {INDEXED}"
    yield from _at_most(spec, "parallelism", _MAX_INDEXED, condition, path)
    if completions is not None and failed is not None and failed > completions:
        problem = "must be less than or equal to completions"
        yield errors.invalid(path.child("maxFailedIndexes"), failed, problem)
    yield from _at_most(spec, "maxFailedIndexes", _MAX_INDEXED, "", path)
    if (
        completions is not None
        and completions > _MANY_COMPLETIONS
        and spec.get("backoffLimitPerIndex") is not None
    ):
        yield from _check_many(spec, path)


def _check_many(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the lower limits of a Job with more than 100,000 completions."""
    condition = f" when completions are above {_MANY_COMPLETIONS} and used with backoff limit per index"
    if spec.get("maxFailedIndexes") is None:
        detail = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        yield errors.required(path.child("maxFailedIndexes"), detail)
    yield from _at_most(spec, "parallelism", _MAX_WITH_MANY_COMPLETIONS, condition, path)
    yield from _at_most(spec, "maxFailedIndexes", _MAX_WITH_MANY_COMPLETIONS, condition, path)


def _check_mode(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    mode = spec.get("completionMode")
    if mode is not None and mode not in (NON_INDEXED, INDEXED):
        yield errors.not_supported(path.child("completionMode"), mode, (NON_INDEXED, INDEXED))
    if mode == INDEXED:
        yield from _check_indexed(spec, path)
    if mode in (None, NON_INDEXED):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield errors.invalid(path.child(name), spec[name], "requires indexed completion mode")


def _check_success(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if spec.get("successPolicy") is None:
        return ()
    if is_indexed(spec):
        return check_success_policy(spec, path)
    value = internal("batch.SuccessPolicy", spec["successPolicy"])
    return (errors.invalid(path.child("successPolicy"), value, "requires indexed completion mode"),)


# --- specs


def _check_restarts(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the restart policy: containers of a Job cannot be restarted always."""
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    path = path.child("template", "spec", "restartPolicy")
    if policy in ("", _ALWAYS):
        yield errors.required(path, f'valid values: "{_ON_FAILURE}", "{_NEVER}"')
    elif policy not in (_ON_FAILURE, _NEVER):
        yield errors.not_supported(path, policy, (_ON_FAILURE, _NEVER))
    elif spec.get("podFailurePolicy") is not None and policy != _NEVER:
        problem = f'only "{_NEVER}" is supported when podFailurePolicy is specified'
        yield errors.invalid(path, policy, problem)


_WITHOUT_TEMPLATE: Final = checks.all_of(
    _NUMBERS, _check_mode, check_pod_failure_policy, _check_success, check_pod_replacement_policy
)


def check_job_spec(spec: ReadOnlyTree, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    """Check a Job's spec without its selector."""
    yield from _WITHOUT_TEMPLATE(spec, path)
    yield from check_pod_template(spec.get("template") or {}, path.child("template"), options)
    yield from _check_restarts(spec, path)


def check_selected_job_spec(
    spec: ReadOnlyTree, options: PodValidationOptions, selector: Check = check_selector
) -> Iterator[FieldError]:
    yield from check_job_spec(spec, _SPEC, options)
    label_selector, parsed_selector = spec.get("selector"), selector_of(spec)
    if label_selector is None:
        yield errors.required(_SPEC.child("selector"))
    else:
        yield from selector(label_selector, _SPEC.child("selector"))
    if parsed_selector is not None:
        yield from check_matches(spec.get("template") or {}, parsed_selector, _SPEC.child("template"))


# --- generated selectors

UID_LABEL, NAME_LABEL = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
_LEGACY_UID_LABEL, _LEGACY_NAME_LABEL = "controller-uid", "job-name"


def _check_label(labels: ReadOnlyTree, key: str, value: str) -> Iterable[FieldError]:
    path = _SPEC.child("template", "metadata", "labels").key(key)
    if key not in labels:
        return (errors.required(path, f"must be '{value}'"),)
    return () if labels[key] == value else (errors.invalid(path, labels, f"must be '{value}'"),)


def _check_generated_selector(job: ReadOnlyTree, *, prefixed_labels: bool) -> Iterator[FieldError]:
    """Check that the generated labels have not changed. The labels of older Jobs have no prefix."""
    spec = job.get("spec") or {}
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    if not meta.uid(job):
        yield errors.required(METADATA.child("uid"))
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    expected = {_LEGACY_UID_LABEL: meta.uid(job), _LEGACY_NAME_LABEL: meta.name(job)}
    if prefixed_labels:
        expected |= {UID_LABEL: meta.uid(job), NAME_LABEL: meta.name(job)}
    for key, value in expected.items():
        yield from _check_label(labels, key, value)
    selector = selector_of(spec)
    if selector is not None and not selector.matches(expected):
        yield errors.invalid(_SPEC.child("selector"), spec["selector"], "`selector` not auto-generated")


# --- Jobs


def _check_last_hostname(job: ReadOnlyTree) -> Iterator[FieldError]:
    """Check that the name of the pod with the highest index is a valid hostname."""
    spec, name = job.get("spec") or {}, meta.name(job)
    if not (is_indexed(spec) and spec.get("completions")):
        return
    hostname = f"{name}-{spec['completions'] - 1}"
    if names.check_dns1123_label(hostname):
        problem = f"will not able to create pod with invalid DNS label: {hostname}"
        yield errors.invalid(METADATA.child("name"), name, problem)


def check_job(
    job: ReadOnlyTree,
    options: PodValidationOptions = STRICT,
    selector: Check = check_selector,
    *,
    prefixed_labels: bool = True,
) -> Iterator[FieldError]:
    """Check a Job without its metadata."""
    yield from _check_generated_selector(job, prefixed_labels=prefixed_labels)
    yield from check_selected_job_spec(job.get("spec") or {}, options, selector)
    yield from _check_last_hostname(job)


_GENERATED: Final = frozenset({UID_LABEL, NAME_LABEL, _LEGACY_UID_LABEL, _LEGACY_NAME_LABEL})


def check_new_job(job: ReadOnlyTree) -> Iterator[FieldError]:
    """Check a new Job. Labels that were copied from its template are checked only there."""
    labels = meta.labels((job.get("spec") or {}).get("template") or {})
    checked_job = (
        job
        if labels.keys() - _GENERATED or meta.labels(job) != labels
        else meta.with_metadata(job, labels=None)
    )
    yield from objectmeta.check(checked_job, SUBDOMAIN, namespaced=True)
    yield from check_job(job)


# --- updates


def _update_checks(old: ReadOnlyTree) -> tuple[PodValidationOptions, Check]:
    """Return how the template and the selector of an update are checked."""
    options = options_from_old_template(old.get("template") or {})
    is_lenient = options.selector_values or has_wrong_values(old.get("selector") or {})
    return options, check_selector_leniently if is_lenient else check_selector


def check_job_change(new_job: ReadOnlyTree, old_job: ReadOnlyTree) -> Iterator[FieldError]:
    new, old = new_job.get("spec") or {}, old_job.get("spec") or {}
    options, selector = _update_checks(old)
    yield from objectmeta.check_change(new_job, old_job, SUBDOMAIN)
    yield from check_selected_job_spec(new, options, selector)
    yield from _check_changes(new, old, mutable_scheduling=_allows_scheduling_changes(old_job))
    yield from _check_last_hostname(new_job)


def check_older_job_change(new_job: ReadOnlyTree, old_job: ReadOnlyTree) -> Iterator[FieldError]:
    """Check an update by the rules of new Jobs; check the spec twice, as minors before 1.37 do; check the immutable fields."""
    new, old = new_job.get("spec") or {}, old_job.get("spec") or {}
    template = old.get("template") or {}
    options, selector = _update_checks(old)
    had_prefixed_labels = {UID_LABEL, NAME_LABEL} <= meta.labels(template).keys()
    yield from objectmeta.check(new_job, SUBDOMAIN, namespaced=True)
    yield from check_job(new_job, options, selector, prefixed_labels=had_prefixed_labels)
    yield from objectmeta.check_change(new_job, old_job, SUBDOMAIN)
    yield from check_selected_job_spec(new, options, selector)
    yield from _check_changes(new, old, mutable_scheduling=_allows_scheduling_changes(old_job))


def _check_changes(new: ReadOnlyTree, old: ReadOnlyTree, *, mutable_scheduling: bool) -> Iterator[FieldError]:
    yield from _check_completions(new, old)
    yield from _check_same(new, old, "selector")
    check_template = _check_scheduling_changes if mutable_scheduling else _check_template
    yield from check_template(new.get("template") or {}, old.get("template") or {}, _SPEC)
    yield from _check_same(new, old, "completionMode")
    yield from _check_same(new, old, "podFailurePolicy", "batch.PodFailurePolicy")
    yield from _check_same(new, old, "backoffLimitPerIndex")
    yield from _check_same(new, old, "managedBy")
    yield from _check_same(new, old, "successPolicy", "batch.SuccessPolicy")


def _check_same(new: ReadOnlyTree, old: ReadOnlyTree, name: str, struct: str = "") -> Iterable[FieldError]:
    """Check that a field is unchanged. Messages contain its value as upstream's `struct`, if that is set."""
    value, path = new.get(name), _SPEC.child(name)
    if value == old.get(name):
        return ()
    reported_value = internal(struct, value) if struct and value is not None else value
    return (errors.invalid(path, reported_value, checks.IMMUTABLE),)


def _check_completions(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Check that completions change only for an indexed Job, and to the value of its parallelism."""
    completions, path = new.get("completions"), _SPEC.child("completions")
    if not is_indexed(new):
        return checks.immutable(completions, old.get("completions"), path)
    if completions in (old.get("completions"), None) or completions == new.get("parallelism"):
        return ()
    return (errors.invalid(path, completions, "can only be modified in tandem with spec.parallelism"),)


# --- updates of the template


def _allows_scheduling_changes(job: ReadOnlyTree) -> bool:
    """Return whether the Job is suspended without pods, so that their scheduling constraints can change."""
    spec, status = job.get("spec") or {}, job.get("status") or {}
    is_idle = not status.get("startTime") or conditions.is_true(job, "Suspended")
    return bool(spec.get("suspend")) and is_idle and not status.get("active")


def _check_template(new: ReadOnlyTree, old: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if new == old:
        return ()
    return (errors.invalid(path.child("template"), internal("core.PodTemplateSpec", new), checks.IMMUTABLE),)


def _check_scheduling_changes(new: ReadOnlyTree, old: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    new_spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if _immutable_fields(new_spec) == _immutable_fields(old_spec):
        return ()
    return (
        errors.invalid(path.child("template.spec"), internal("core.PodSpec", new_spec), checks.IMMUTABLE),
    )


_MUTABLE_FIELDS: Final = frozenset({"nodeSelector", "tolerations", "schedulingGates"})


def _immutable_fields(spec: ReadOnlyTree) -> dict[str, Any]:
    """Return a pod's spec without the fields that a suspended Job without pods can change."""
    immutable_fields = {name: value for name, value in spec.items() if name not in _MUTABLE_FIELDS}
    immutable_fields["affinity"] = _without_field(spec.get("affinity") or {}, "nodeAffinity")
    for kind in ("containers", "initContainers"):
        immutable_fields[kind] = [
            _without_field(container, "resources") for container in spec.get(kind) or ()
        ]
    return immutable_fields


def _without_field(tree: ReadOnlyTree, name: str) -> dict[str, Any]:
    return {field_name: value for field_name, value in tree.items() if field_name != name}
