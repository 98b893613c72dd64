"""Configurations of admission webhooks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation import objectmeta
from apiserver.validation.admissionregistration.matching import (
    check_failure_policy,
    check_match_conditions,
    check_match_policy,
    check_rule,
)
from apiserver.validation.kind import Validation
from apiserver.validation.labels import check_selector, check_selector_leniently
from apiserver.validation.objectmeta import SUBDOMAIN, with_any_finalizers
from apiserver.validation.rules import Check, Tree, each, every, field, must, one_of, pointer, required
from apiserver.validation.webhook_clients import ONE_OF_REVIEWS, accepts, check_review_versions, client

_GROUP: Final = "admissionregistration.k8s.io"
_WEBHOOKS: Final = ROOT.child("webhooks")
_HARMLESS: Final = ("None", "NoneOnDryRun")
_EFFECTS: Final = (*_HARMLESS, "Some", "Unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leniency:
    """What webhooks may keep that had it: rules that came later than they."""

    side_effects: bool = False
    review_versions: bool = False
    repeated_names: bool = False
    label_values: bool = False


_STRICT: Final = _Leniency()


def _leniency(old: Sequence[Tree]) -> _Leniency:
    selectors = [hook.get(name) or {} for hook in old for name in ("namespaceSelector", "objectSelector")]
    return _Leniency(
        side_effects=any(hook.get("sideEffects") not in _HARMLESS for hook in old),
        review_versions=any(not accepts(hook.get("admissionReviewVersions") or ("v1",)) for hook in old),
        repeated_names=len({hook.get("name") for hook in old}) < len(old),
        label_values=any(any(check_selector(selector, ROOT)) for selector in selectors),
    )


# --- one webhook


def _check_name(name: str, path: Path) -> Iterable[FieldError]:
    problems = names.check_dns1123_subdomain(name)
    if problems:
        return (errors.invalid(path, name, ",".join(problems)),)
    if name.count(".") > 1:
        return ()
    problem = "should be a domain with at least three segments separated by dots"
    return (errors.invalid(path, name, problem),)


def _side_effects(supported: Sequence[str]) -> Check:
    def check(hook: Tree, path: Path) -> Iterable[FieldError]:
        effects, path = hook.get("sideEffects"), path.child("sideEffects")
        if effects is None:
            return (errors.required(path, f"must specify one of {', '.join(supported)}"),)
        return one_of(*supported)(effects, path)

    return check


_TIMEOUT: Final = must(
    lambda seconds: 1 <= seconds <= 30, "the timeout value must be between 1 and 30 seconds"
)


def _webhook(leniency: _Leniency) -> Check:
    selector = check_selector_leniently if leniency.label_values else check_selector

    def check_versions(versions: list[str], path: Path) -> Iterable[FieldError]:
        return check_review_versions(versions, path, any_accepted=leniency.review_versions)

    return every(
        required("name", _check_name),
        field("rules", each(check_rule)),
        pointer("failurePolicy", check_failure_policy),
        pointer("matchPolicy", check_match_policy),
        _side_effects(_EFFECTS if leniency.side_effects else _HARMLESS),
        pointer("timeoutSeconds", _TIMEOUT),
        pointer("namespaceSelector", selector),
        pointer("objectSelector", selector),
        pointer("reinvocationPolicy", one_of("IfNeeded", "Never")),
        client("clientConfig"),
        field("matchConditions", check_match_conditions),
        required("admissionReviewVersions", check_versions, detail=ONE_OF_REVIEWS),
    )


# --- all of them


_NAMES: Final = with_any_finalizers(SUBDOMAIN)


def _check(webhooks: Sequence[Tree], leniency: _Leniency) -> Iterator[FieldError]:
    check, seen = _webhook(leniency), set()
    for index, hook in enumerate(webhooks):
        yield from check(hook, _WEBHOOKS.index(index))
        name = hook.get("name")
        if name and name in seen and not leniency.repeated_names:
            yield errors.duplicate(_WEBHOOKS.index(index).child("name"), name)
        seen.add(name)


def _create(tree: Tree) -> Iterable[FieldError]:
    return _check(tree.get("webhooks") or (), _STRICT)


def _update(new: Tree, old: Tree) -> Iterator[FieldError]:
    yield from objectmeta.check(new, _NAMES, namespaced=False)
    yield from _check(new.get("webhooks") or (), _leniency(old.get("webhooks") or ()))


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind(_GROUP, "ValidatingWebhookConfiguration"): Validation(
        name=_NAMES, create=_create, update=_update
    ),
    GroupKind(_GROUP, "MutatingWebhookConfiguration"): Validation(
        name=_NAMES, create=_create, update=_update
    ),
}
