"""Label selectors and node selectors."""

from collections.abc import Iterable
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree

from . import checks
from .checks import Check
from .objectmeta import check_label_name, check_label_value, check_labels

NO_OPERATOR: Final = "not a valid selector operator"

_WITH_VALUES: Final = frozenset({"In", "NotIn"})
_WITHOUT_VALUES: Final = frozenset({"Exists", "DoesNotExist"})


def check_operator(requirement: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Refuse an unknown operator, and one that does not fit the values."""
    operator, values = requirement.get("operator", ""), requirement.get("values")
    if operator in _WITH_VALUES:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        return () if values else (errors.required(path.child("values"), detail),)
    if operator in _WITHOUT_VALUES:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return (errors.forbidden(path.child("values"), detail),) if values else ()
    return (errors.invalid(path.child("operator"), operator, NO_OPERATOR),)


def _selector(*of_values: Check) -> Check:
    requirement = checks.all_of(check_operator, checks.field("key", check_label_name, absent=""), *of_values)
    return checks.all_of(
        checks.field("matchLabels", check_labels),
        checks.field("matchExpressions", checks.each_item(requirement)),
    )


check_selector: Final = _selector(checks.field("values", checks.each_item(check_label_value)))
"""Check a `LabelSelector` that is present."""

check_selector_leniently: Final = _selector()
"""Check a `LabelSelector`, but not its label values, which old objects may have invalid."""


def has_wrong_values(selector: ReadOnlyTree) -> bool:
    """Return whether a selector's expressions have invalid label values."""
    values = (
        value for expression in selector.get("matchExpressions", ()) for value in expression.get("values", ())
    )
    return any(names.check_label_value(value) for value in values)


def has_wrong_node_values(selector: ReadOnlyTree) -> bool:
    """Return whether a node selector's expressions have invalid label values."""
    return any(has_wrong_values(term) for term in selector.get("nodeSelectorTerms") or ())


def _check_operator(requirement: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if requirement.get("operator") not in ("Gt", "Lt"):
        return check_operator(requirement, path)
    if len(requirement.get("values", ())) == 1:
        return ()
    detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
    return (errors.required(path.child("values"), detail),)


def _check_field_operator(requirement: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    operator = requirement.get("operator", "")
    if operator not in ("In", "NotIn"):
        return (errors.invalid(path.child("operator"), operator, NO_OPERATOR),)
    if len(requirement.get("values", ())) == 1:
        return ()
    detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
    return (errors.required(path.child("values"), detail),)


_NODE_FIELDS: Final = {"metadata.name": checks.each_item(checks.report(names.check_dns1123_subdomain))}


def _check_field_key(requirement: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    key = requirement.get("key", "")
    if key not in _NODE_FIELDS:
        return (errors.invalid(path.child("key"), key, "not a valid field selector key"),)
    return _NODE_FIELDS[key](requirement.get("values"), path.child("values"))


def _term(*of_values: Check) -> Check:
    requirement = checks.all_of(_check_operator, checks.field("key", check_label_name, absent=""), *of_values)
    return checks.all_of(
        checks.field("matchExpressions", checks.each_item(requirement)),
        checks.field("matchFields", checks.each_item(_check_field_operator, _check_field_key)),
    )


check_term: Final = _term(checks.field("values", checks.each_item(check_label_value)))
check_term_leniently: Final = _term()
"""Check a term, but not its label values."""


def _node_selector(term: Check) -> Check:
    return checks.require(
        "nodeSelectorTerms", checks.each_item(term), detail="must have at least one node selector term"
    )


check_node_selector: Final = _node_selector(check_term)
check_node_selector_leniently: Final = _node_selector(check_term_leniently)
