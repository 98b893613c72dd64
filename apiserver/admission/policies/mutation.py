"""A compiled MutatingAdmissionPolicy, and how its mutations change an object."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from mockube.apimachinery import errors, gotext, meta, status
from mockube.apimachinery.admission_expressions import JSON_PATCHES, OBJECT, BadExpression, OptionalVariables
from mockube.apimachinery.cel.libraries import patches
from mockube.apimachinery.cel.values import CelError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.patch.errors import PatchError, TestFailed
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.patch import json_patch
from mockube.apiserver.patch.apply.atoms import TypedError, atom_of_type, atomic_paths
from mockube.apiserver.patch.apply.merge import merge
from mockube.apiserver.patch.apply.validate import validate
from mockube.apiserver.registry.body import decode_applied, decode_as
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.schema.decode import DecodeError

from .definition import PolicyDefinition
from .evaluation import Evaluation, Expression, OutOfBudget

_APPLY: Final = "ApplyConfiguration"


class MutationFailed(Exception):
    """A mutation cannot be applied to an object."""


class Mutation(NamedTuple):
    is_apply: bool
    """Whether the expression returns an apply configuration rather than a JSON patch."""
    expression: Expression


class MutatingPolicy(PolicyDefinition):
    """A MutatingAdmissionPolicy with its expressions compiled."""

    def __init__(self, tree: ReadOnlyTree) -> None:
        super().__init__(tree)
        self.is_reinvocable = self.spec.get("reinvocationPolicy") == "IfNeeded"
        self.mutations = [self._compile_mutation(mutation) for mutation in self.spec.get("mutations") or ()]

    def _compile_mutation(self, mutation: ReadOnlyTree) -> Mutation:
        optional_variables = OptionalVariables(params=self.optional_variables.params, patches=True)
        if mutation["patchType"] == _APPLY:
            return Mutation(
                is_apply=True,
                expression=self.compile(
                    mutation["applyConfiguration"]["expression"], OBJECT, optional_variables
                ),
            )
        return Mutation(
            is_apply=False,
            expression=self.compile(mutation["jsonPatch"]["expression"], JSON_PATCHES, optional_variables),
        )

    def mutate(
        self, registry: Registry, row: Resource, mutation: Mutation, activation: Mapping[str, Any]
    ) -> Tree:
        """Return the object after a mutation, or raise MutationFailed; ApiError if the result is not an object of the kind."""
        tree: Tree = activation["object"]
        value = self._evaluate(mutation.expression, activation)
        if mutation.is_apply:
            return _apply_configuration(registry, tree, value)
        try:
            operations = [_operation(operation) for operation in value]
            patched = json_patch.apply(tree, operations)
        except TestFailed:
            return tree
        except PatchError as error:
            raise MutationFailed(f"JSON Patch: {error}") from error
        if row.custom and tree["kind"] == row.kind:
            return _check_custom(registry, tree, patched)
        return _decode_patched(registry, tree, patched)

    def _evaluate(self, expression: Expression, activation: Mapping[str, Any]) -> Any:
        if isinstance(expression.compiled, BadExpression):
            raise MutationFailed(str(expression.compiled))
        try:
            (outcome,) = Evaluation(activation, self.variables).all([expression])
        except OutOfBudget as error:
            raise MutationFailed(str(error)) from error
        if outcome.error is not None:
            raise MutationFailed(outcome.error)
        return outcome.value


def _apply_configuration(registry: Registry, tree: Tree, value: patches.ObjectValue) -> Tree:
    """Merge an apply configuration into the object as server-side apply does, without managedFields."""
    _check_names(value)
    api_version, kind = tree["apiVersion"], tree["kind"]
    applied = _json(value) | {"apiVersion": api_version, "kind": kind}
    atom = atom_of_type(registry.scheme.schemas.kind(api_version, kind))
    problem = "error applying patch: failed to convert patch object to typed object"
    try:
        validate(atom, applied)
        if atomics := [*atomic_paths(atom, applied)]:
            paths = ", ".join(atomics)
            raise MutationFailed(
                "error applying patch: invalid ApplyConfiguration: "
                f"may not mutate atomic arrays, maps or structs: {paths}"
            )
        problem = "error applying patch: failed to convert original object to typed object"
        validate(atom, tree, duplicates=True)
        problem = "error applying patch: failed to merge patch"
        merged = merge(atom, tree, applied)
    except TypedError as error:
        raise MutationFailed(f"{problem}: {error}") from error
    try:
        decoded = decode_applied(registry, merged, strict=False).tree
    except DecodeError as error:
        raise MutationFailed(str(error)) from error
    return _set_defaults(registry, api_version, kind, decoded)


def _check_custom(registry: Registry, before: Tree, patched: Any) -> Tree:
    """Return a custom object after a JSON patch. It has no struct upstream, so that it may have unknown fields."""
    api_version, kind = before["apiVersion"], before["kind"]
    if not isinstance(patched, dict) or not patched.get("kind"):
        text = gotext.decode_utf8(orjson.dumps(patched, option=orjson.OPT_SORT_KEYS))
        raise status.internal_error(f"Object 'Kind' is missing in '{text}'")
    new_kind, new_version = patched["kind"], patched.get("apiVersion", "")
    if new_version != api_version:
        group, _, version = new_version.rpartition("/")
        problem = f'{group}/{version}, Kind={new_kind} is unstructured and is not suitable for converting to "{api_version}"'
        raise status.internal_error(f"failed to convert object: {problem}")
    if new_kind != kind:
        wrong = errors.invalid(ROOT.child("kind"), new_kind, f"must be {kind}")
        group_kind = GroupKind(api_version.rpartition("/")[0], new_kind)
        raise status.invalid(group_kind, meta.name(before), [wrong])
    return _set_defaults(registry, api_version, kind, patched)


def _decode_patched(registry: Registry, before: Tree, patched: Any) -> Tree:
    """Return the object after a JSON patch; unlike in other patches, an unknown field is an error."""
    api_version, kind = before["apiVersion"], before["kind"]
    if not isinstance(patched, dict):
        raise status.internal_error("the patch leaves no object")
    new_kind, new_version = patched.get("kind", kind), patched.get("apiVersion", api_version)
    if (new_version, new_kind) != (api_version, kind):
        about = f"no kind {gotext.quote(str(new_kind))} is registered for version {gotext.quote(str(new_version))}"
        raise status.internal_error(f'{about} in scheme "pkg/runtime/scheme.go:111"')
    try:
        decoded = decode_as(registry, patched, (api_version, kind), strict=True)
    except DecodeError as error:
        raise status.internal_error(str(error)) from error
    if decoded.strict:
        raise status.internal_error(f"strict decoding error: {', '.join(sorted(decoded.strict))}")
    return _set_defaults(registry, api_version, kind, decoded.tree)


def _set_defaults(registry: Registry, api_version: str, kind: str, decoded: Tree) -> Tree:
    tree: Tree = {"kind": kind, "apiVersion": api_version} | decoded
    registry.scheme.rules.default(api_version, kind, tree)
    return tree


def _operation(value: patches.PatchOperation) -> Tree:
    """Return an operation as JSON."""
    fields = value.fields
    operation: Tree = {"op": fields.get("op", ""), "path": fields.get("path", "")}
    if fields.get("from"):
        operation["from"] = fields["from"]
    if "value" in fields:
        if isinstance(fields["value"], patches.ObjectValue):
            _check_names(fields["value"])
        operation["value"] = _json(fields["value"])
    return operation


def _check_names(value: patches.ObjectValue) -> None:
    if type_name_errors := [*patches.type_name_errors(value, (value.name,))]:
        raise MutationFailed("type mismatch: " + "\n".join(type_name_errors))


def _json(value: Any) -> Any:
    try:
        return patches.to_json_value(value)
    except CelError as error:
        problem = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
        raise MutationFailed(f"{problem}: {error}") from error
