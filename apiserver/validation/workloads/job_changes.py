"""What may become of a Job: little, once it runs."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from apimachinery import conditions, errors, meta
from apimachinery.errors import FieldError
from apimachinery.paths import ROOT, Path
from apiserver.validation import objectmeta
from apiserver.validation.internal import internal
from apiserver.validation.labels import check_selector, check_selector_leniently, has_wrong_values
from apiserver.validation.objectmeta import SUBDOMAIN
from apiserver.validation.pods.template import leniency_towards_template
from apiserver.validation.rules import IMMUTABLE, Tree, immutable
from apiserver.validation.workloads.jobs import (
    NAME_LABEL,
    UID_LABEL,
    check_job,
    check_selected_job_spec,
    is_indexed,
)

_SPEC: Final = ROOT.child("spec")


def check_job_change(new_job: Tree, old_job: Tree) -> Iterator[FieldError]:
    """All that is said of a new Job, its spec once more, and what has changed that may not."""
    new, old = new_job.get("spec") or {}, old_job.get("spec") or {}
    template = old.get("template") or {}
    leniency = leniency_towards_template(template)
    is_lenient = leniency.selector_values or has_wrong_values(old.get("selector") or {})
    selector = check_selector_leniently if is_lenient else check_selector
    had_domains = {UID_LABEL, NAME_LABEL} <= meta.labels(template).keys()
    yield from objectmeta.check(new_job, SUBDOMAIN, namespaced=True)
    yield from check_job(new_job, leniency, selector, with_domain=had_domains)
    yield from objectmeta.check_change(new_job, old_job, SUBDOMAIN)
    yield from check_selected_job_spec(new, leniency, selector)
    yield from _check_changes(new, old, waiting=_is_waiting(old_job))


def _check_changes(new: Tree, old: Tree, *, waiting: bool) -> Iterator[FieldError]:
    yield from _check_completions(new, old)
    yield from _check_same(new, old, "selector")
    check_template = _check_waiting_template if waiting else _check_template
    yield from check_template(new.get("template") or {}, old.get("template") or {}, _SPEC)
    yield from _check_same(new, old, "completionMode")
    yield from _check_same(new, old, "podFailurePolicy", "batch.PodFailurePolicy")
    yield from _check_same(new, old, "backoffLimitPerIndex")
    yield from _check_same(new, old, "managedBy")
    yield from _check_same(new, old, "successPolicy", "batch.SuccessPolicy")


def _check_same(new: Tree, old: Tree, name: str, struct: str = "") -> Iterable[FieldError]:
    """A field that stays as it is; if it is of a struct of upstream's own, it is shown as that."""
    value, path = new.get(name), _SPEC.child(name)
    if value == old.get(name):
        return ()
    shown = internal(struct, value) if struct and value is not None else value
    return (errors.invalid(path, shown, IMMUTABLE),)


def _check_completions(new: Tree, old: Tree) -> Iterable[FieldError]:
    """A Job with indexes may become larger or smaller as a whole."""
    now, path = new.get("completions"), _SPEC.child("completions")
    if not is_indexed(new):
        return immutable(now, old.get("completions"), path)
    if now in (old.get("completions"), None) or now == new.get("parallelism"):
        return ()
    return (errors.invalid(path, now, "can only be modified in tandem with spec.parallelism"),)


# --- the template


def _is_waiting(job: Tree) -> bool:
    """It is suspended and none of its pods runs: where they will run, and with what, is still open."""
    spec, status = job.get("spec") or {}, job.get("status") or {}
    is_idle = not status.get("startTime") or conditions.is_true(job, "Suspended")
    return bool(spec.get("suspend")) and is_idle and not status.get("active")


def _check_template(new: Tree, old: Tree, path: Path) -> Iterable[FieldError]:
    if new == old:
        return ()
    return (errors.invalid(path.child("template"), internal("core.PodTemplateSpec", new), IMMUTABLE),)


def _check_waiting_template(new: Tree, old: Tree, path: Path) -> Iterable[FieldError]:
    now, was = new.get("spec") or {}, old.get("spec") or {}
    if _fixed(now) == _fixed(was):
        return ()
    return (errors.invalid(path.child("template.spec"), internal("core.PodSpec", now), IMMUTABLE),)


_OPEN: Final = frozenset({"nodeSelector", "tolerations", "schedulingGates"})


def _fixed(spec: Tree) -> dict[str, Any]:
    """A pod's spec without what may change as long as there is no pod."""
    fixed = {name: value for name, value in spec.items() if name not in _OPEN}
    fixed["affinity"] = _without(spec.get("affinity") or {}, "nodeAffinity")
    for kind in ("containers", "initContainers"):
        fixed[kind] = [_without(container, "resources") for container in spec.get(kind) or ()]
    return fixed


def _without(tree: Tree, name: str) -> dict[str, Any]:
    return {kept: value for kept, value in tree.items() if kept != name}
