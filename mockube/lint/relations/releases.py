"""What helm does with the objects of a chart: the order of hooks, the wait for Jobs, objects of the same name. Pure."""

from collections.abc import Iterator
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind
from mockube.importing.cleaning import DEFINITION
from mockube.lint.findings import Outcome
from mockube.lint.objects import LintObject

from .hooks import hooks_of, weight_of
from .object_set import SERVICE_ACCOUNT, ObjectSet, PodTemplate
from .pod_data import data_references
from .problem import Problem

_JOB: Final = GroupKind("batch", "Job")
_BEFORE: Final = "pre-install"
_AFTER: Final = "post-install"


def jobs_without_wait(objects: ObjectSet) -> Iterator[Problem]:
    """Find Jobs of charts that are no hooks: `helm install --wait` reports success while they run, or after they failed."""
    for item in objects.of(_JOB):
        if item.chart and not hooks_of(item) and not meta.owner_references(item.tree):
            message = "helm --wait does not wait for this Job: use --wait-for-jobs, or make it a hook with the annotation helm.sh/hook"
            yield Problem(item=item, field="", message=message)


def hook_order(objects: ObjectSet) -> Iterator[Problem]:
    """Find pods that need an object that helm creates only after it waits for them."""
    for pod in objects.all_pods():
        if not pod.item.chart:
            continue
        for field, kind, name in _needs(pod):
            found = [each for each in objects.find(kind, pod.namespace, name) if each.chart]
            if found and all(_is_later(each, pod.item) for each in found):
                when = (
                    "after its hooks of pre-install"
                    if not hooks_of(found[0])
                    else f"in its hooks of {', '.join(hooks_of(found[0]))}"
                )
                message = f'{str(kind).lower()} "{name}" does not exist yet: helm creates it {when}, and waits for these pods before'
                outcome = None if hooks_of(pod.item) else Outcome.WARNED
                yield Problem(item=pod.item, field=field, message=message, outcome=outcome)


def _needs(pod: PodTemplate) -> Iterator[tuple[str, GroupKind, str]]:
    seen = set()
    for reference in data_references(pod):
        if (reference.kind, reference.name) not in seen:
            seen.add((reference.kind, reference.name))
            yield reference.field, reference.kind, reference.name
    if pod.spec.service_account_name:
        yield pod.field("serviceAccountName"), SERVICE_ACCOUNT, pod.spec.service_account_name


def _is_later(needed: LintObject, item: LintObject) -> bool:
    """Return whether helm creates an object only when the pods of another one are complete or ready.

    helm waits for hooks one weight after another, and for the other objects only with --wait.
    """
    hooks, needed_hooks = hooks_of(item), hooks_of(needed)
    if _BEFORE in hooks:
        if _BEFORE not in needed_hooks:
            return True
        return weight_of(needed) > weight_of(item)
    return not hooks and _AFTER in needed_hooks and _BEFORE not in needed_hooks


def duplicates(objects: ObjectSet) -> Iterator[Problem]:
    """Find objects of one name in a chart, which helm cannot install, or in one folder: the last one replaces the others."""
    first: dict[tuple[GroupKind, str, str, str], LintObject] = {}
    for item in objects.objects:
        if not item.name or hooks_of(item) or item.group_kind == DEFINITION or not _has_name(item):
            continue
        key = (item.group_kind, objects.namespace_of(item), item.name, item.place)
        is_first = key not in first
        earlier = first.setdefault(key, item)
        if is_first or (not item.chart and earlier.tree == item.tree):
            continue
        position = f"{earlier.file}:{earlier.line}" if earlier.line else earlier.file
        result = "helm cannot create two objects of one name" if item.chart else "this one replaces it"
        message = f"{item.title} is in {position} too: {result}"
        outcome = (
            Outcome.WARNED if earlier.file == item.file else Outcome.NOTED
        )  # two files may be alternatives
        yield Problem(
            item=item, field="metadata.name", message=message, outcome=None if item.chart else outcome
        )


def _has_name(item: LintObject) -> bool:
    return "name" in item.tree["metadata"]
