"""Selectors of nodes: by their labels, and by the one field that there is of them."""

from collections.abc import Iterable
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.labels import NO_OPERATOR, check_label_name, check_operator
from apiserver.validation.rules import Check, Tree, each, every, field, required, valid


def _check_operator(requirement: Tree, path: Path) -> Iterable[FieldError]:
    if requirement.get("operator") not in ("Gt", "Lt"):
        return check_operator(requirement, path)
    if len(requirement.get("values", ())) == 1:
        return ()
    detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
    return (errors.required(path.child("values"), detail),)


def _check_field_operator(requirement: Tree, path: Path) -> Iterable[FieldError]:
    operator = requirement.get("operator", "")
    if operator not in ("In", "NotIn"):
        return (errors.invalid(path.child("operator"), operator, NO_OPERATOR),)
    if len(requirement.get("values", ())) == 1:
        return ()
    detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
    return (errors.required(path.child("values"), detail),)


_NODE_FIELDS: Final = {"metadata.name": each(valid(names.check_dns1123_subdomain))}


def _check_field_key(requirement: Tree, path: Path) -> Iterable[FieldError]:
    key = requirement.get("key", "")
    if key not in _NODE_FIELDS:
        return (errors.invalid(path.child("key"), key, "not a valid field selector key"),)
    return _NODE_FIELDS[key](requirement.get("values"), path.child("values"))


def _term(*of_values: Check) -> Check:
    requirement = every(_check_operator, field("key", check_label_name, absent=""), *of_values)
    return every(
        field("matchExpressions", each(requirement)),
        field("matchFields", each(_check_field_operator, _check_field_key)),
    )


check_term: Final = _term(field("values", each(valid(names.check_label_value))))
check_term_leniently: Final = _term()
"""A term that may ask for values that no label can have."""


def _selector(term: Check) -> Check:
    return required("nodeSelectorTerms", each(term), detail="must have at least one node selector term")


check_node_selector: Final = _selector(check_term)
check_node_selector_leniently: Final = _selector(check_term_leniently)
