"""The conditions and accepted names in the status of a definition, by upstream's rules."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from mockube.apimachinery import conditions, errors, gotext, meta
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.apiextensions import validation
from mockube.apiserver.kinds.jsonschema.structural import check_structural

Names: TypeAlias = Mapping[str, Any]
Condition: TypeAlias = Mapping[str, Any]

_OF_RESOURCES: Final = ("plural", "singular", "shortNames")
_OF_KINDS: Final = ("kind", "listKind")
_FAMILIES: Final = (_OF_RESOURCES, _OF_KINDS)
_REASONS: Final = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


class NamesDecision(NamedTuple):
    accepted: dict[str, Any]
    """The names accepted from now on: a name that another definition uses keeps its old value."""
    reason: str = ""
    problem: str = ""
    """The reason for which not all names are accepted."""


class UsedNames:
    """The accepted names of all definitions, by group."""

    def __init__(self) -> None:
        self._uses: Counter[tuple[str, Sequence[str], str]] = Counter()
        self._keys_by_owner: dict[str, Sequence[tuple[str, Sequence[str], str]]] = {}

    def put(self, owner: str, group: str, names: Names) -> bool:
        """Replace the names of a definition; return whether they changed."""
        keys = [
            (group, fields, name)
            for fields in _FAMILIES
            for field in fields
            for name in _texts(names.get(field))
            if isinstance(name, str)  # stored objects are not validated
        ]
        before = self._keys_by_owner.get(owner, ())
        if before == keys:
            return False
        self._uses.subtract(before)
        self._uses.update(keys)
        self._keys_by_owner[owner] = keys
        for key in before:
            if not self._uses[key]:
                del self._uses[key]
        return True

    def remove(self, owner: str) -> bool:
        changed = self.put(owner, "", {})
        self._keys_by_owner.pop(owner, None)
        return changed

    def __contains__(self, key: tuple[str, Sequence[str], str]) -> bool:
        return key in self._uses


def decide_names(
    group: str, requested_names: Names, current_names: Names, used_names: UsedNames
) -> NamesDecision:
    """Return the names to accept. `used_names` are those of all definitions, including this one.

    If names of several fields are in use by others, those of the last field are reported.
    """
    accepted, reason, problem = dict(current_names), "", ""
    for fields in _FAMILIES:
        for field in fields:
            requested_value, current_value = requested_names.get(field), current_names.get(field)
            own = {*_texts(current_value)}
            in_use = [n for n in _texts(requested_value) if n not in own and (group, fields, n) in used_names]
            if in_use:
                reason = _REASONS[field]
                problem = errors.join_messages(f"{gotext.quote(name)} is already in use" for name in in_use)
            elif requested_value:
                accepted[field] = requested_value
            else:
                accepted.pop(field, None)
    accepted.pop("categories", None)
    if requested_names.get("categories"):
        accepted["categories"] = requested_names["categories"]
    accepted |= {field: "" for field in ("plural", "kind") if field not in accepted}
    return NamesDecision(accepted, reason, problem)


def _texts(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return [value] if value else []
    return value if isinstance(value, list) else ()


def accepted_names(tree: ReadOnlyTree) -> Names:
    names = (tree.get("status") or {}).get("acceptedNames") or {}
    if not isinstance(names, dict):
        raise TypeError("its names are not an object")
    return names


def has_its_names(tree: ReadOnlyTree) -> bool:
    """Return whether all requested names are accepted; upstream then does not decide them again."""
    status_names, spec_names = accepted_names(tree), tree["spec"]["names"]
    return all(
        (status_names.get(field) or None) == (spec_names.get(field) or None)
        for field in {*status_names, *spec_names}
    )


# --- conditions


def _condition(type_: str, status: str, reason: str, message: str) -> Condition:
    return {"type": type_, "status": status, "reason": reason, "message": message}


_INSTALLING: Final = _condition("Established", "False", "Installing", "the initial names have been accepted")
_NOT_ACCEPTED: Final = _condition("Established", "False", "NotAccepted", "not all names are accepted")
_ESTABLISHED: Final = _condition(
    "Established", "True", "InitialNamesAccepted", "the initial names have been accepted"
)
_INVALID_AUTHORITIES: Final = _condition(
    "Established", "False", "InvalidCABundle", "The conversion webhook CABundle is invalid"
)


def with_names(old: ReadOnlyTree, used_names: UsedNames, now: datetime) -> Tree | None:
    """Return a definition with its accepted names, or None if nothing changes."""
    if has_its_names(old):
        return None
    current_names = accepted_names(old)
    decision = decide_names(old["spec"]["group"], old["spec"]["names"], current_names, used_names)
    if decision.problem:
        accepted = _condition("NamesAccepted", "False", decision.reason, decision.problem)
    else:
        accepted = _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
    if decision.accepted == current_names and conditions.has_condition(old, accepted):
        return None
    new = conditions.with_condition(old, accepted, now)
    new["status"] = new["status"] | {"acceptedNames": decision.accepted}
    if conditions.is_true(old, "Established"):
        return new
    if not decision.problem:
        return conditions.with_condition(new, _INSTALLING, now)
    if conditions.get(old, "Established") is None:
        return conditions.with_condition(new, _NOT_ACCEPTED, now)
    return new


def is_established(tree: ReadOnlyTree) -> bool:
    return conditions.is_true(tree, "Established")


def may_be_served(tree: ReadOnlyTree) -> bool:
    if is_established(tree):
        return True
    return conditions.is_true(tree, "NamesAccepted") and not validation.authorities_problem(tree)


def is_unstructured(tree: ReadOnlyTree) -> bool:
    return conditions.get(tree, "NonStructuralSchema") is not None


def with_established(old: ReadOnlyTree, now: datetime) -> Tree | None:
    """Return a definition with the condition Established, or None if nothing changes. An established one stays so."""
    if conditions.is_true(old, "Established") or not conditions.is_true(old, "NamesAccepted"):
        return None
    return with_condition(
        old, _INVALID_AUTHORITIES if validation.authorities_problem(old) else _ESTABLISHED, now
    )


def with_condition(old: ReadOnlyTree, condition: Condition, now: datetime) -> Tree | None:
    return (
        None if conditions.has_condition(old, condition) else conditions.with_condition(old, condition, now)
    )


def approval(tree: ReadOnlyTree) -> Condition | None:
    """Return the approval condition of a definition in a protected group of Kubernetes; None in other groups."""
    if not validation.is_protected(tree["spec"]["group"]):
        return None
    annotation = meta.annotations(tree).get(validation.APPROVAL, "")
    problem = validation.approval_problem(annotation)
    if problem:
        status, reason = "False", "InvalidAnnotation" if annotation else "MissingAnnotation"
    elif annotation.startswith("unapproved"):
        status, reason, problem = "False", "UnapprovedAnnotation", f"not approved: {gotext.quote(annotation)}"
    else:
        status, reason, problem = "True", "ApprovedAnnotation", f"approved in {annotation}"
    return _condition("KubernetesAPIApprovalPolicyConformant", status, reason, problem)


def structure_problem(tree: ReadOnlyTree) -> str:
    """Return why the schemas of a definition that an old server accepted are not structural; "" if they are."""
    field_errors, spec = [], tree["spec"]
    if spec.get("preserveUnknownFields"):
        field_path = ROOT.child("spec", "preserveUnknownFields")
        field_errors.append(errors.invalid(field_path, value=True, detail="must be false"))
    for index, version in enumerate(spec["versions"]):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            field_path = ROOT.child("spec", "versions").index(index).child("schema", "openAPIV3Schema")
            field_errors += check_structural(schema, field_path)
    return errors.aggregate(field_errors)


def with_structure(old: ReadOnlyTree, problem: str, now: datetime) -> Tree | None:
    if problem:
        return with_condition(old, _condition("NonStructuralSchema", "True", "Violations", problem), now)
    if conditions.get(old, "NonStructuralSchema") is None:
        return None
    remaining = [
        condition for condition in conditions.of(old) if condition.get("type") != "NonStructuralSchema"
    ]
    return {**old, "status": {**old["status"], "conditions": remaining}}


# --- deletion

_OVERLAPPING: Final[Collection[str]] = (
    "apiservices.apiregistration.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
)
"""Definitions of built-in resources, whose objects stay when the definition is deleted."""


terminating: Final = partial(_condition, "Terminating")
IN_PROGRESS: Final = terminating(
    "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"
)
COMPLETED: Final = terminating("False", "InstanceDeletionCompleted", "removed all instances")
NOT_EMPTY: Final = terminating(
    "True",
    "InstanceDeletionCheck",
    "could not confirm zero CustomResources remaining: context deadline exceeded",
)


def not_deleted(problem: str) -> Condition:
    return terminating("True", "InstanceDeletionFailed", f"could not issue all deletes: {problem}")


def nothing_to_delete(tree: ReadOnlyTree) -> Condition | None:
    """Return why the deletion of a definition deletes no objects; None if it deletes them."""
    if tree["metadata"]["name"] in _OVERLAPPING:
        message = "instances overlap with built-in resources in storage"
        return terminating("False", "OverlappingBuiltInResource", message)
    if not conditions.is_true(tree, "Established"):
        return terminating("False", "NeverEstablished", "resource was never established")
    return None
