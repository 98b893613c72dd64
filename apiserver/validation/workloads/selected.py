"""A template of pods, and the selector by which their controller finds them again."""

from collections.abc import Callable, Iterable, Iterator

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.labels.requirement import SelectorError
from apimachinery.labels.selector import Selector, from_label_selector
from apimachinery.paths import Path
from apiserver.validation.labels import check_selector
from apiserver.validation.pods.leniency import STRICT, Leniency
from apiserver.validation.pods.template import check_pod_template
from apiserver.validation.rules import Tree

ALWAYS = "Always"
CheckTemplate = Callable[[Tree, Path, Leniency], Iterable[FieldError]]


def selector_of(spec: Tree) -> Selector | None:
    """None if it cannot be read."""
    try:
        return from_label_selector(spec.get("selector"))
    except SelectorError:
        return None


def is_empty(selector: Tree) -> bool:
    return not (selector.get("matchLabels") or selector.get("matchExpressions"))


def check_matches(template: Tree, selector: Selector, path: Path) -> Iterable[FieldError]:
    """Refuse a template whose pods would not be found."""
    labels = (template.get("metadata") or {}).get("labels")
    if selector.matches(labels or {}):
        return ()
    problem = "`selector` does not match template `labels`"
    return (errors.invalid(path.child("metadata", "labels"), labels, problem),)


def check_required_selector(spec: Tree, path: Path, kind: str) -> Iterator[FieldError]:
    """A selector that selects something, in messages about a `kind`."""
    selector, path = spec.get("selector"), path.child("selector")
    if selector is None:
        yield errors.required(path)
        return
    yield from check_selector(selector, path)
    if is_empty(selector):
        yield errors.invalid(path, selector, f"empty selector is invalid for {kind}")


def check_restarts(template: Tree, path: Path, kind: str) -> Iterator[FieldError]:
    """Pods that are kept running must neither stay stopped nor have an end."""
    spec, path = template.get("spec") or {}, path.child("spec")
    if spec.get("restartPolicy") != ALWAYS:
        policy = spec.get("restartPolicy", "")
        yield errors.not_supported(path.child("restartPolicy"), policy, (ALWAYS,))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield errors.forbidden(path.child("activeDeadlineSeconds"), detail)


def check_selected_template(
    template: Tree,
    selector: Selector,
    path: Path,
    *,
    kind: str,
    leniency: Leniency = STRICT,
    check: CheckTemplate = check_pod_template,
) -> Iterator[FieldError]:
    """A template of pods that are kept running; `check` says what else is looked at than those two."""
    if not selector.empty:
        yield from check_matches(template, selector, path)
    yield from check(template, path, leniency)
    yield from check_restarts(template, path, kind)
