"""Type checking of a policy's expressions against the kinds that the policy matches."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from mockube.apimachinery.admission_expressions import TypeChecker
from mockube.apimachinery.cel.schema_types import declare_root
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.cel.types import Type
from mockube.apimachinery.tree import ReadOnlyTree

from .schemas import GroupVersionKind, KindsByName

MAX_KINDS: Final = 10
"""maxTypesToCheck of apiserver/pkg/admission/plugin/policy/validating/typechecking.go."""


def kinds_to_check(policy: ReadOnlyTree, kinds: KindsByName) -> list[GroupVersionKind]:
    """Return the sorted kinds that the rules of a policy name without wildcards, up to the tenth kind of a rule."""
    checked_kinds: set[GroupVersionKind] = set()
    for rule in policy["spec"]["matchConstraints"]["resourceRules"]:
        for count, kind in enumerate(_kinds_of_rule(rule, kinds), 1):
            checked_kinds.add(kind)
            if count == MAX_KINDS:
                return sorted(checked_kinds)
    return sorted(checked_kinds)


def _kinds_of_rule(rule: ReadOnlyTree, kinds: KindsByName) -> Iterator[GroupVersionKind]:
    groups, versions = sorted(rule.get("apiGroups") or ()), sorted(rule.get("apiVersions") or ())
    if any("*" in name for name in (*groups, *versions)):
        return
    names = sorted(name for name in rule.get("resources") or () if "*" not in name and "/" not in name)
    for group in groups:
        for version in versions:
            for name in names:
                # The empty group means any group, as in a RESTMapper.
                candidates = kinds.get((version, name.lower()), ())
                yield from dict.fromkeys(kind for kind in candidates if group in ("", kind.group))


def param_kind(policy: ReadOnlyTree) -> GroupVersionKind | None:
    kind = policy["spec"].get("paramKind")
    if kind is None:
        return None
    group, _, version = (kind.get("apiVersion") or "").rpartition("/")
    return GroupVersionKind(group, version, kind.get("kind") or "")


class TypeChecks:
    """The type checks of one policy's expressions, for one kind after another."""

    def __init__(self, policy: ReadOnlyTree, now: datetime) -> None:
        spec = policy["spec"]
        self._expressions = list(_expressions(spec.get("validations") or ()))
        self._variables: Sequence[ReadOnlyTree] = spec.get("variables") or ()
        self._suffix = now.microsecond * 1000
        """A suffix that makes the names of types unique."""
        self._has_params = False
        self._params: Type | None = None
        self._structs: dict[str, Mapping[str, Type]] = {}
        self._issues: defaultdict[str, list[str]] = defaultdict(list)

    def add_params(self, kind: GroupVersionKind, schema: ReadOnlyTree | None) -> None:
        self._has_params = True
        if schema is not None:
            self._params = self._declare(kind, schema, self._structs)

    def check(self, kind: GroupVersionKind, schema: ReadOnlyTree) -> None:
        structs = dict(self._structs)
        declared = self._declare(kind, schema, structs)
        checker = TypeChecker(declared, self._params, structs, has_params=self._has_params)
        for variable in self._variables:
            checker.add_variable(variable["name"], variable["expression"])
        for field, text in self._expressions:
            try:
                checker.check(text)
            except Issues as issues:
                self._issues[field].append(f"{kind}: {issues}\n")

    def _declare(
        self, kind: GroupVersionKind, schema: ReadOnlyTree, structs: dict[str, Mapping[str, Type]]
    ) -> Type | None:
        return declare_root(schema, f"{kind.kind}{self._suffix}", structs)

    def warnings(self) -> list[dict[str, str]]:
        """Return the warnings, in the order of the expressions."""
        return [
            {"fieldRef": field, "warning": "\n".join(self._issues[field])}
            for field, _ in self._expressions
            if field in self._issues
        ]


def _expressions(validations: Sequence[ReadOnlyTree]) -> Iterator[tuple[str, str]]:
    for index, validation in enumerate(validations):
        for name in ("expression", "messageExpression"):
            if name == "expression" or validation.get(name):
                yield f"spec.validations[{index}].{name}", validation.get(name) or ""
