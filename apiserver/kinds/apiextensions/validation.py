"""Validation of CustomResourceDefinitions: names, versions together, conversion, approval."""

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from mockube.apimachinery import conditions, errors, meta, names
from mockube.apimachinery.cel.language import FULL_LANGUAGE, Language
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.x509 import pool
from mockube.apiserver.kinds.common import checks, objectmeta
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objectmeta import NameRule, with_any_finalizers
from mockube.apiserver.kinds.common.validation import Validation, get_struct, immutable_fields
from mockube.apiserver.kinds.common.webhook_clients import accepts, check_review_versions, client

from .versions import common_check, has_status, to_internal, version_check

_SPEC, _STATUS = ROOT.child("spec"), ROOT.child("status")


# --- names


def _join_problems(problems: Callable[[str], list[str]], prefix: str = "") -> Check:
    """Return a check that reports all problems of a value in one error."""

    def check(value: str, path: Path) -> Iterable[FieldError]:
        texts = problems(value)
        return (errors.invalid(path, value, prefix + ",".join(texts)),) if texts else ()

    return check


_LABEL: Final = _join_problems(names.check_dns1035_label)
_KIND: Final = _join_problems(
    lambda kind: names.check_dns1035_label(kind.lower()),
    "may have mixed case, but should otherwise match: ",
)


def _check_kinds_differ(names_: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    kind = names_.get("kind")
    if not kind or kind != names_.get("listKind"):
        return ()
    return (errors.invalid(path.child("listKind"), kind, "kind and listKind may not be the same"),)


_NAMES: Final = checks.all_of(
    checks.optional("plural", _LABEL),
    checks.optional("singular", _LABEL),
    checks.optional("kind", _KIND),
    checks.optional("listKind", _KIND),
    checks.field("shortNames", checks.each_item(_LABEL)),
    _check_kinds_differ,
    checks.field("categories", checks.each_item(_LABEL)),
)
_REQUIRED_NAMES: Final = checks.all_of(*map(checks.require, ("plural", "singular", "kind", "listKind")))


def _check_group(group: str, path: Path) -> Iterable[FieldError]:
    field_errors = [*_join_problems(names.check_dns1123_subdomain)(group, path)]
    if field_errors or "." in group:
        return field_errors
    return (errors.invalid(path, group, "should be a domain with at least one dot"),)


# --- versions


def _check_schemas(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    if get_struct(spec, "validation").get("openAPIV3Schema") is not None:
        return
    for index, version in enumerate(spec.get("versions") or ()):
        if get_struct(version, "schema").get("openAPIV3Schema") is None:
            yield errors.required(path.index(index).child("schema", "openAPIV3Schema"))


def _check_versions(spec: ReadOnlyTree, path: Path, language: Language) -> Iterator[FieldError]:
    versions, path = spec.get("versions") or (), path.child("versions")
    yield from _check_schemas(spec, path)
    for index, version in enumerate(versions):
        yield from checks.field("name", _LABEL, absent="")(version, path.index(index))
        check = version_check(language, has_status=has_status(spec) or has_status(version))
        yield from check(version, path.index(index))
    if len({version.get("name") for version in versions}) < len(versions):
        yield errors.invalid(path, _internal_versions(spec), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        problem = "must have exactly one version marked as storage version"
        yield errors.invalid(path, _internal_versions(spec), problem)
    # Upstream's internal type has the name of the first version in spec.version, too.
    first = versions[0].get("name") if versions else ""
    yield from _LABEL(first, path.parent.child("version")) if first and path.parent else ()


def _internal_versions(spec: ReadOnlyTree) -> list[Any] | None:
    """Return the versions as upstream prints them: for errors only, because it takes longer than the other checks."""
    versions = spec.get("versions")
    if versions is None:
        return None
    return [internal("apiextensions.CustomResourceDefinitionVersion", version) for version in versions]


def _check_common(spec: ReadOnlyTree, path: Path, language: Language) -> Iterable[FieldError]:
    any_has_status = any(map(has_status, (spec, *(spec.get("versions") or ()))))
    return common_check(language, has_status=any_has_status)(spec, path)


def _check_stored(tree: ReadOnlyTree) -> Iterator[FieldError]:
    """Refuse a definition without a version in which objects may be stored."""
    stored, path = get_struct(tree, "status").get("storedVersions"), _STATUS.child("storedVersions")
    versions = get_struct(tree, "spec").get("versions") or []
    if not stored:
        yield errors.invalid(path, stored, "must have at least one stored version")
        return
    unused = {*stored}
    for version in versions:
        name = version.get("name", "")
        if version.get("storage") and name not in unused:  # a second version of that name is missing
            yield errors.invalid(path, stored, f"must have the storage version {name}")
        unused.discard(name)
    for index, name in enumerate(stored):
        if name in unused:
            problem = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield errors.invalid(path.index(index), name, problem)


# --- conversion


def authorities_problem(definition: ReadOnlyTree) -> str:
    """Return the problem of the conversion webhook's caBundle, or an empty string."""
    return _bundle_problem(get_struct(definition, "spec", "conversion", "webhook", "clientConfig"))


def _bundle_problem(client_config: ReadOnlyTree) -> str:
    return pool.authorities_problem(base64.b64decode(client_config.get("caBundle") or ""))


def _conversion(*, any_accepted: bool, any_authorities: bool) -> Check:
    """Return the check of the conversion. Paths in messages are those of upstream's internal type."""

    def check_authorities(config: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
        problem = "" if any_authorities else _bundle_problem(config)
        if problem:
            yield errors.invalid(path.child("caBundle"), config["caBundle"], problem)

    def check_versions(versions: list[str], path: Path) -> Iterable[FieldError]:
        return check_review_versions(versions, path, any_accepted=any_accepted)

    webhook = checks.all_of(
        checks.pointer("webhookClientConfig", checks.all_of()),
        checks.require("conversionReviewVersions", check_versions),
    )
    none = checks.all_of(
        checks.pointer(
            "webhookClientConfig", checks.refuse_any("should not be set when strategy is not set to Webhook")
        ),
        checks.optional(
            "conversionReviewVersions",
            checks.refuse_any("should not be set when strategy is not set to Webhook"),
        ),
    )

    def check(conversion: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
        yield from checks.require("strategy", checks.one_of("None", "Webhook"))(conversion, path)
        hook = conversion.get("webhook") or {}
        internal_conversion = {
            "webhookClientConfig": hook.get("clientConfig"),
            "conversionReviewVersions": hook.get("conversionReviewVersions"),
        }
        if conversion.get("strategy") != "Webhook":
            yield from none(internal_conversion, path)
        elif internal_conversion["webhookClientConfig"] is None:
            detail = "required when strategy is set to Webhook"
            yield errors.required(path.child("webhookClientConfig"), detail)
            yield from webhook(internal_conversion, path)
        else:
            yield from client("webhookClientConfig")(internal_conversion, path)
            yield from check_authorities(
                internal_conversion["webhookClientConfig"], path.child("webhookClientConfig")
            )
            yield from webhook(internal_conversion, path)

    return checks.pointer("conversion", check)


# --- the definition


def _spec(language: Language, *, any_accepted: bool = False, any_authorities: bool = True) -> Check:
    return checks.all_of(
        checks.require("group", _check_group),
        checks.require("scope", checks.one_of("Cluster", "Namespaced")),
        partial(_check_versions, language=language),
        checks.field("names", _REQUIRED_NAMES, _NAMES, absent={}),
        partial(_check_common, language=language),
        _conversion(any_accepted=any_accepted, any_authorities=any_authorities),
    )


APPROVAL: Final = "api-approved.kubernetes.io"
_PROTECTED: Final = ("k8s.io", "kubernetes.io")


def is_protected(group: str) -> bool:
    """Return whether a group belongs to Kubernetes, so that its definitions need an approval."""
    return any(group == domain or group.endswith(f".{domain}") for domain in _PROTECTED)


def approval_problem(annotation: str) -> str:
    """Return why the annotation does not approve an API in a protected group, or an empty string."""
    if annotation.startswith("unapproved") or re.match("[A-Za-z][A-Za-z0-9+.-]*://[^/?#]", annotation):
        return ""
    needed = f'protected groups must have approval annotation "{APPROVAL}"'
    instead = ' with either a URL or a reason starting with "unapproved"' if annotation else ""
    return f"{needed}{instead}, see https://github.com/kubernetes/enhancements/pull/1111"


def _check_approval(new: ReadOnlyTree, old: ReadOnlyTree | None = None) -> Iterable[FieldError]:
    """Check the approval. An update may keep a problem of the old definition."""
    if not is_protected(get_struct(new, "spec").get("group", "")):
        return ()
    annotation = meta.annotations(new).get(APPROVAL, "")
    problem = approval_problem(annotation)
    if not problem or (
        old is not None and problem == approval_problem(meta.annotations(old).get(APPROVAL, ""))
    ):
        return ()
    path = ROOT.child("metadata", "annotations").key(APPROVAL)
    return (errors.invalid(path, annotation, problem) if annotation else errors.required(path, problem),)


def _check_unknown_fields(tree: ReadOnlyTree) -> Iterable[FieldError]:
    if not get_struct(tree, "spec").get("preserveUnknownFields"):
        return ()
    instead = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    path = _SPEC.child("preserveUnknownFields")
    return (errors.invalid(path, value=True, detail=f"cannot set to true, {instead}"),)


_ACCEPTED_NAMES: Final = checks.field("acceptedNames", _NAMES, absent={})


def _check_status(tree: ReadOnlyTree) -> Iterator[FieldError]:
    yield from _ACCEPTED_NAMES(get_struct(tree, "status"), _STATUS)
    yield from _check_stored(tree)


def _create(tree: ReadOnlyTree, language: Language) -> Iterator[FieldError]:
    spec = get_struct(tree, "spec")
    expected_name = f"{get_struct(spec, 'names').get('plural', '')}.{spec.get('group', '')}"

    def check_name(name: str) -> list[str]:
        problems = names.check_dns1123_subdomain(name)
        return problems if name == expected_name else [*problems, 'must be spec.names.plural+"."+spec.group']

    def check_prefix(prefix: str) -> list[str]:
        problems = names.check_dns1123_subdomain(names.mask_trailing_dash(prefix))
        return (
            problems if prefix == expected_name else [*problems, 'must be spec.names.plural+"."+spec.group']
        )

    name_rule = with_any_finalizers(NameRule(check_name, check_prefix))
    yield from objectmeta.check(tree, name_rule, namespaced=False)
    yield from _spec(language)(to_internal(spec), _SPEC)
    yield from _check_status(tree)
    yield from _check_approval(tree)
    yield from _check_unknown_fields(tree)


_ALWAYS_FIXED: Final = (("spec", "group"), ("spec", "names", "plural"))
_FIXED_ONCE_ESTABLISHED: Final = (("spec", "scope"), ("spec", "names", "kind"))


def _any_accepted(old: ReadOnlyTree) -> bool:
    versions: Any = get_struct(old, "spec", "conversion", "webhook").get("conversionReviewVersions")
    return bool(versions) and not accepts(versions)


def _update(new: ReadOnlyTree, old: ReadOnlyTree, language: Language) -> Iterator[FieldError]:
    yield from objectmeta.check_update(new, old)
    established = conditions.is_true(old, "Established")
    any_authorities = not established or bool(authorities_problem(old))
    check_spec = _spec(language, any_accepted=_any_accepted(old), any_authorities=any_authorities)
    yield from check_spec(to_internal(get_struct(new, "spec")), _SPEC)
    for path in (*(_FIXED_ONCE_ESTABLISHED if established else ()), *_ALWAYS_FIXED):
        yield from immutable_fields(*path)(new, old)
    yield from _check_status(new)
    yield from _check_approval(new, old)
    if not get_struct(old, "spec").get("preserveUnknownFields"):
        yield from _check_unknown_fields(new)


def _update_status(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    yield from objectmeta.check_update(new, old)
    yield from _ACCEPTED_NAMES(get_struct(new, "status"), _STATUS)


def validation(language: Language = FULL_LANGUAGE) -> Validation:
    """Return the validation of definitions, with the rules of a CEL version."""
    return Validation(
        metadata_first=False,
        create=partial(_create, language=language),
        update=partial(_update, language=language),
        subresources={"status": _update_status},
        declared=None,
    )
