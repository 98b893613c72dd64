"""Rules that OpenKruise workloads share: defaults and validation of pod templates, update order, and changes."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import orjson

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.labels.selector import SelectorError, from_label_selector
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.core.pod import workloads
from mockube.apiserver.kinds.core.pod.context import STRICT
from mockube.apiserver.kinds.core.pod.pod_template import check_pod_template, options_from_old_template
from mockube.apiserver.kinds.core.pod.workloads import CheckTemplate

from .pod_defaults import set_claim_defaults, set_pod_defaults

# --- defaults of templates


def pod_template(template: ReadOnlyTree) -> Tree:
    """Return a pod template with OpenKruise's defaults."""
    defaulted: Tree = orjson.loads(orjson.dumps(template))
    set_pod_defaults(defaulted["spec"])
    return defaulted


def set_template_defaults(spec: Tree, old: ReadOnlyTree | None) -> None:
    """Set the defaults of pod and claim templates in a workload's spec, unless the pod template is unchanged."""
    if old is None or spec["template"] != old["template"]:
        set_pod_defaults(spec["template"]["spec"])
        for claim in spec.get("volumeClaimTemplates") or ():
            set_claim_defaults(claim)


# --- validation of templates and selectors

_SPEC: Final = ROOT.child("spec")


def check_own_template(
    spec: ReadOnlyTree,
    old_spec: ReadOnlyTree | None,
    template: ReadOnlyTree,
    names: tuple[str, str],
    check: CheckTemplate = check_pod_template,
) -> Iterator[FieldError]:
    """Validate a workload's pod template and selector.

    `template` is the template from which pods are created; `names` are the kind's names in messages about the selector and
    about the pods.
    """
    for_selector, for_pods = names
    yield from workloads.check_required_selector(spec, _SPEC, for_selector)
    selector, path = workloads.selector_of(spec), _SPEC.child("template")
    if selector is None:
        yield errors.invalid(_SPEC.child("selector"), spec["selector"], "")
        yield from workloads.check_restarts(template, path, for_pods)
        return
    options = STRICT if old_spec is None else options_from_old_template(old_spec["template"])
    yield from workloads.check_selected_template(
        template, selector, path, kind=for_pods, options=options, check=check
    )


# --- the order in which pods are updated
# As in OpenKruise's webhooks, only the first error is reported.


def check_priorities(strategy: ReadOnlyTree | None, path: Path) -> Iterable[FieldError]:
    problem = _priority_problem(strategy or {})
    return (errors.required(path, problem),) if problem else ()


def check_scattering(terms: Sequence[ReadOnlyTree] | None, path: Path) -> Iterable[FieldError]:
    problem = _scatter_problem(terms or ())
    return (errors.required(path, problem),) if problem else ()


def _priority_problem(strategy: ReadOnlyTree) -> str:
    weights, orders = strategy.get("weightPriority") or (), strategy.get("orderPriority") or ()
    if weights and orders:
        return "only one of weightPriority and orderPriority can be used"
    for term in weights:
        if not 0 <= term["weight"] <= 100:
            return "weight must be valid number in the range 1-100"
        if not any(term["matchSelector"].values()):
            return "selector can not be empty"
        try:
            from_label_selector(term["matchSelector"])
        except SelectorError as error:
            return f"invalid selector {error}"
    return "" if all(term["orderedKey"] for term in orders) else "order key can not be empty"


def _scatter_problem(terms: Sequence[ReadOnlyTree]) -> str:
    seen = set()
    for term in terms:
        key, value = term["key"], term["value"]
        if not key:
            return "key should not be empty"
        if (key, value) in seen:
            return f"duplicated key={key} value={value}"
        seen.add((key, value))
    return ""


# --- changes


def has_other_changes(new: ReadOnlyTree, old: ReadOnlyTree, changeable: Collection[str]) -> bool:
    """Return whether another field changed. Absent and empty are equal, as in Go's semantic comparison."""
    fields = {*new, *old} - {*changeable}
    return any((new.get(name) or None) != (old.get(name) or None) for name in fields)
