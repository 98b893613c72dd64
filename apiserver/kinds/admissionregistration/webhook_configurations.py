"""ValidatingWebhookConfiguration and MutatingWebhookConfiguration."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.cel.language import FULL_LANGUAGE, Language
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import checks, objectmeta, webhook_clients
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.cells import count
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.selectors import check_selector, check_selector_leniently
from mockube.apiserver.kinds.common.validation import NO_CHECKS, Validation
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from . import matching

_WEBHOOKS: Final = ROOT.child("webhooks")
_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_EFFECTS: Final = (*_NO_SIDE_EFFECTS, "Some", "Unknown")


class _Exemptions(Struct, frozen=True, kw_only=True):
    """Invalid values that an update may have because an old webhook has them: upstream added their rules later."""

    side_effects: bool = False
    review_versions: bool = False
    repeated_names: bool = False
    label_values: bool = False


_STRICT: Final = _Exemptions()


def _exemptions(old: Sequence[ReadOnlyTree]) -> _Exemptions:
    selectors = [hook.get(name) or {} for hook in old for name in ("namespaceSelector", "objectSelector")]
    return _Exemptions(
        side_effects=any(hook.get("sideEffects") not in _NO_SIDE_EFFECTS for hook in old),
        review_versions=any(
            not webhook_clients.accepts(hook.get("admissionReviewVersions") or ("v1",)) for hook in old
        ),
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
    def check(hook: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        effects, path = hook.get("sideEffects"), path.child("sideEffects")
        if effects is None:
            return (errors.required(path, f"must specify one of {', '.join(supported)}"),)
        return checks.one_of(*supported)(effects, path)

    return check


_TIMEOUT: Final = checks.require_that(
    lambda seconds: 1 <= seconds <= 30, "the timeout value must be between 1 and 30 seconds"
)


def _webhook(exemptions: _Exemptions, language: Language) -> Check:
    selector = check_selector_leniently if exemptions.label_values else check_selector

    def check_versions(versions: list[str], path: Path) -> Iterable[FieldError]:
        return webhook_clients.check_review_versions(versions, path, any_accepted=exemptions.review_versions)

    return checks.all_of(
        checks.require("name", _check_name),
        checks.field("rules", checks.each_item(matching.check_rule)),
        checks.pointer("failurePolicy", matching.check_failure_policy),
        checks.pointer("matchPolicy", matching.check_match_policy),
        _side_effects(_EFFECTS if exemptions.side_effects else _NO_SIDE_EFFECTS),
        checks.pointer("timeoutSeconds", _TIMEOUT),
        checks.pointer("namespaceSelector", selector),
        checks.pointer("objectSelector", selector),
        checks.pointer("reinvocationPolicy", checks.one_of("IfNeeded", "Never")),
        webhook_clients.client("clientConfig"),
        checks.field("matchConditions", partial(matching.check_match_conditions, language=language)),
        checks.require("admissionReviewVersions", check_versions, detail=webhook_clients.ONE_OF_REVIEWS),
    )


# --- the configuration


def _check(
    webhooks: Sequence[ReadOnlyTree], exemptions: _Exemptions, language: Language
) -> Iterator[FieldError]:
    check, seen = _webhook(exemptions, language), set()
    for index, hook in enumerate(webhooks):
        yield from check(hook, _WEBHOOKS.index(index))
        name = hook.get("name")
        if name and name in seen and not exemptions.repeated_names:
            yield errors.duplicate(_WEBHOOKS.index(index).child("name"), name)
        seen.add(name)


def _create(tree: ReadOnlyTree, language: Language) -> Iterable[FieldError]:
    return _check(tree.get("webhooks") or (), _STRICT, language)


def _update(new: ReadOnlyTree, old: ReadOnlyTree, language: Language) -> Iterator[FieldError]:
    yield from objectmeta.check(new, matching.NAMES, namespaced=False)
    yield from _check(new.get("webhooks") or (), _exemptions(old.get("webhooks") or ()), language)


def validation(language: Language = FULL_LANGUAGE) -> Validation:
    """Return the validation of configurations, with the match conditions of a CEL version."""
    create, update = (partial(check, language=language) for check in (_create, _update))
    return Validation(
        repeated_checks=NO_CHECKS,
        name=matching.NAMES,
        create=matching.reserved_name_check(create),
        update=update,
    )


def _warn_virtual_resources(configuration: ReadOnlyTree) -> Iterator[str]:
    for index, hook in enumerate(configuration.get("webhooks") or ()):
        rules_path = _WEBHOOKS.index(index).child("rules")
        for rule_index, rule in enumerate(hook.get("rules") or ()):
            for resource in matching.virtual_resources_of(rule):
                yield (
                    f"{rules_path.index(rule_index)}: {resource} is excluded from admission webhooks; "
                    "this rule will have no effect"
                )


def _warn_update(new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterator[str]:
    yield from matching.warn_static_name(new)
    yield from _warn_virtual_resources(new)


_WARNINGS: Final = Warnings(create=_warn_virtual_resources, update=_warn_update)

_STRATEGY: Final = Strategy(
    generation=(("webhooks",),), first_generation=1, empty_counts=True, unconditional_update=False
)

_DEFAULTS: Final = {"failurePolicy": "Fail", **matching.MATCH_DEFAULTS, "timeoutSeconds": 10}


def _cells(configuration: Tree, now: datetime) -> list[Any]:
    return [meta.name(configuration), count(configuration, "webhooks"), age(configuration, now)]


_PRINTER: Final = Printer(columns=(NAME, Column(name="Webhooks", type="integer"), AGE_COLUMN), cells=_cells)


MUTATING_WEBHOOK_CONFIGURATION: Final = Kind(
    resource=Resource(
        group="admissionregistration.k8s.io",
        version="v1",
        name="mutatingwebhookconfigurations",
        kind="MutatingWebhookConfiguration",
        namespaced=False,
        categories=("api-extensions",),
    ),
    strategy=_STRATEGY,
    defaults=defaults_table(
        "io.k8s.api.admissionregistration.v1",
        {"MutatingWebhook": {**_DEFAULTS, "reinvocationPolicy": "Never"}},
    ),
    validation=validation(),
    warnings=_WARNINGS,
    printer=_PRINTER,
)

VALIDATING_WEBHOOK_CONFIGURATION: Final = Kind(
    resource=Resource(
        group="admissionregistration.k8s.io",
        version="v1",
        name="validatingwebhookconfigurations",
        kind="ValidatingWebhookConfiguration",
        namespaced=False,
        categories=("api-extensions",),
    ),
    strategy=_STRATEGY,
    defaults=defaults_table("io.k8s.api.admissionregistration.v1", {"ValidatingWebhook": _DEFAULTS}),
    validation=validation(),
    warnings=_WARNINGS,
    printer=_PRINTER,
)
