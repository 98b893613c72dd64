"""Validation of updates of Jobs."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from mockube.apimachinery import conditions, errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.batch.job.validation import (
    NAME_LABEL,
    UID_LABEL,
    check_job,
    check_selected_job_spec,
    is_indexed,
)
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.kinds.common.checks import IMMUTABLE, immutable
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN
from mockube.apiserver.kinds.common.selectors import (
    check_selector,
    check_selector_leniently,
    has_wrong_values,
)
from mockube.apiserver.kinds.core.pod.pod_template import options_from_old_template

_SPEC: Final = ROOT.child("spec")


def check_job_change(new_job: ReadOnlyTree, old_job: ReadOnlyTree) -> Iterator[FieldError]:
    """Check an update by the rules of new Jobs; as upstream, check the spec twice; check the immutable fields."""
    new, old = new_job.get("spec") or {}, old_job.get("spec") or {}
    template = old.get("template") or {}
    options = options_from_old_template(template)
    is_lenient = options.selector_values or has_wrong_values(old.get("selector") or {})
    selector = check_selector_leniently if is_lenient else check_selector
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
    return (errors.invalid(path, reported_value, IMMUTABLE),)


def _check_completions(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Check that completions change only for an indexed Job, and to the value of its parallelism."""
    completions, path = new.get("completions"), _SPEC.child("completions")
    if not is_indexed(new):
        return immutable(completions, old.get("completions"), path)
    if completions in (old.get("completions"), None) or completions == new.get("parallelism"):
        return ()
    return (errors.invalid(path, completions, "can only be modified in tandem with spec.parallelism"),)


# --- the template


def _allows_scheduling_changes(job: ReadOnlyTree) -> bool:
    """Return whether the Job is suspended without pods, so that their scheduling constraints can change."""
    spec, status = job.get("spec") or {}, job.get("status") or {}
    is_idle = not status.get("startTime") or conditions.is_true(job, "Suspended")
    return bool(spec.get("suspend")) and is_idle and not status.get("active")


def _check_template(new: ReadOnlyTree, old: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if new == old:
        return ()
    return (errors.invalid(path.child("template"), internal("core.PodTemplateSpec", new), IMMUTABLE),)


def _check_scheduling_changes(new: ReadOnlyTree, old: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    new_spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if _immutable_fields(new_spec) == _immutable_fields(old_spec):
        return ()
    return (errors.invalid(path.child("template.spec"), internal("core.PodSpec", new_spec), IMMUTABLE),)


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
