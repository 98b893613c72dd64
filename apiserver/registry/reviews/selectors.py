"""The selectors of an access review: their errors, and their text as far as it can be parsed."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from mockube.apimachinery import errors, labels
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.names import check_label_value
from mockube.apimachinery.paths import ROOT, Path
from mockube.apiserver import fields
from mockube.apiserver.fields import FieldSelectorError, Term
from mockube.apiserver.kinds.common.checks import Check, each_item, report
from mockube.apiserver.kinds.common.objectmeta import check_label_name
from mockube.apiserver.kinds.common.selectors import check_operator

_ATTRIBUTES: Final = ROOT.child("spec", "resourceAttributes")
_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_check_values: Final = each_item(report(check_label_value))


def check(attributes: Mapping[str, Any]) -> Iterable[FieldError]:
    """Return the errors of the selectors of resource attributes. Operators of newer clients are allowed."""
    for name, check_key in (("fieldSelector", _check_field), ("labelSelector", _check_label)):
        if (selector := attributes.get(name)) is not None:
            yield from _check(selector, check_key, _ATTRIBUTES.child(name))


def _check(selector: Mapping[str, Any], check_requirement: Check, path: Path) -> Iterable[FieldError]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        detail = "may not specified at the same time as requirements"
        yield errors.invalid(path.child("rawSelector"), raw, detail)
    if not raw and not requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        yield errors.required(path.child("requirements"), detail)
    yield from each_item(check_requirement)(requirements, path.child("requirements"))


def _check_known_operator(requirement: Mapping[str, Any], path: Path) -> Iterable[FieldError]:
    return check_operator(requirement, path) if requirement.get("operator") in _OPERATORS else ()


def _check_field(requirement: Mapping[str, Any], path: Path) -> Iterable[FieldError]:
    if not requirement.get("key"):
        yield errors.required(path.child("key"), "must be specified")
    yield from _check_known_operator(requirement, path)


def _check_label(requirement: Mapping[str, Any], path: Path) -> Iterable[FieldError]:
    yield from _check_known_operator(requirement, path)
    yield from check_label_name(requirement.get("key", ""), path.child("key"))
    yield from _check_values(requirement.get("values"), path.child("values"))


def ignored_selectors(attributes: Mapping[str, Any]) -> str:
    """Return the errors of selectors that cannot be parsed in whole or in part, for the review's status."""
    selectors = (
        ("fieldSelector", _is_supported_requirement, fields.parse),
        ("labelSelector", lambda requirement: requirement.get("operator") in _OPERATORS, labels.parse),
    )
    problems = (
        _ignored_requirements(attributes.get(name) or {}, name, is_read, parse)
        for name, is_read, parse in selectors
    )
    return "; ".join(filter(None, problems))


def _ignored_requirements(
    selector: Mapping[str, Any],
    name: str,
    is_read: Callable[[Mapping[str, Any]], bool],
    parse: Callable[[str], object],
) -> str:
    requirements = selector.get("requirements") or ()
    read = [is_read(requirement) for requirement in requirements]
    if all(read) and (requirements or _is_text(selector.get("rawSelector", ""), parse)):
        return ""
    return f"spec.resourceAttributes.{name} {'partially ' if any(read) else ''}ignored due to parse error"


def _is_text(text: str, parse: Callable[[str], object]) -> bool:
    try:
        parse(text)
    except (FieldSelectorError, SelectorError):
        return False
    return True


def _is_supported_requirement(requirement: Mapping[str, Any]) -> bool:
    """Return whether a requirement is supported: fields are compared with a single value only."""
    return requirement.get("operator") in ("In", "NotIn") and len(requirement.get("values") or ()) == 1


def field_selector(attributes: Mapping[str, Any]) -> str:
    """Return the text of the requirements of a field selector that are supported."""
    selector = attributes.get("fieldSelector") or {}
    requirements = selector.get("requirements")
    if not requirements:
        return str(selector.get("rawSelector", ""))
    terms = (
        Term(requirement.get("key", ""), requirement["values"][0], equal=requirement["operator"] == "In")
        for requirement in requirements
        if _is_supported_requirement(requirement)
    )
    return ",".join(map(str, terms))


def label_selector(attributes: Mapping[str, Any]) -> str:
    """Return the text of the requirements of a label selector whose operators are known."""
    selector = attributes.get("labelSelector") or {}
    requirements = selector.get("requirements")
    if not requirements:
        return str(selector.get("rawSelector", ""))
    return ",".join(
        _label_term(requirement) for requirement in requirements if requirement.get("operator") in _OPERATORS
    )


def _label_term(requirement: Mapping[str, Any]) -> str:
    key, operator = requirement.get("key", ""), requirement["operator"]
    values = ",".join(sorted(requirement.get("values") or ()))
    terms = {
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
        "Exists": key,
        "DoesNotExist": f"!{key}",
    }
    return str(terms[operator])
