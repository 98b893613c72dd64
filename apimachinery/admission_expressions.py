"""CEL expressions of admission policies and webhooks: their variables, their compilation and their evaluation."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from msgspec import Struct

from . import errors
from .cel import types
from .cel.attributes import LazyMap
from .cel.environment import CompiledExpression, Environment, Library, ResultTypeError
from .cel.language import FULL_LANGUAGE, Language
from .cel.libraries import patches
from .cel.program import ProgramError
from .cel.schema_types import DeclaredStructs
from .cel.source import Issues
from .cel.types import Type
from .cel.values import CelError
from .errors import FieldError
from .paths import Path

BOOL, TEXT, ANY = (types.BOOL,), (types.STRING,), (types.ANY,)
TEXT_OR_NULL: Final = (types.STRING, types.NULL)
OBJECT: Final = (types.struct(patches.OBJECT),)
JSON_PATCHES: Final = (types.list_of(types.struct(patches.JSON_PATCH)),)
_VARIABLES: Final = "kubernetes.variables"
_TEXTS: Final = types.list_of(types.STRING)
_TEXT_MAP: Final = types.map_of(types.STRING, types.STRING)


def _texts(*names: str) -> dict[str, Type]:
    return dict.fromkeys(names, types.STRING)


def _k8s(name: str) -> Type:
    return types.struct(f"kubernetes.{name}")


STRUCTS: Final[Mapping[str, Mapping[str, Type]]] = {
    "kubernetes.GroupVersionKind": _texts("group", "version", "kind"),
    "kubernetes.GroupVersionResource": _texts("group", "version", "resource"),
    "kubernetes.UserInfo": {
        **_texts("username", "uid"),
        "groups": _TEXTS,
        "extra": types.map_of(types.STRING, _TEXTS),
    },
    "kubernetes.AdmissionRequest": {
        **_texts("subResource", "requestSubResource", "name", "namespace", "operation"),
        **{name: _k8s("GroupVersionKind") for name in ("kind", "requestKind")},
        **{name: _k8s("GroupVersionResource") for name in ("resource", "requestResource")},
        "userInfo": _k8s("UserInfo"),
        "dryRun": types.BOOL,
        "options": types.DYN,
    },
    "kubernetes.NamespaceSpec": {"finalizers": _TEXTS},
    "kubernetes.NamespaceCondition": {
        **_texts("status", "type", "message", "reason"),
        "lastTransitionTime": types.TIMESTAMP,
    },
    "kubernetes.NamespaceStatus": {
        "conditions": types.list_of(_k8s("NamespaceCondition")),
        "phase": types.STRING,
    },
    "kubernetes.NamespaceMetadata": {
        **_texts("name", "generateName", "namespace", "UID", "resourceVersion"),
        **dict.fromkeys(("labels", "annotations"), _TEXT_MAP),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), types.INT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), types.TIMESTAMP),
        "finalizers": _TEXTS,
    },
    "kubernetes.Namespace": {
        "metadata": _k8s("NamespaceMetadata"),
        "spec": _k8s("NamespaceSpec"),
        "status": _k8s("NamespaceStatus"),
    },
}
"""The types of `request` and `namespaceObject` in expressions."""


class BadExpression(Exception):
    """An expression is invalid; the message is upstream's."""

    def __init__(self, detail: str, *, internal: bool = False) -> None:
        super().__init__(detail)
        self._internal = internal

    def field_error(self, path: Path, text: str) -> FieldError:
        """Return the error of a field that contains this expression."""
        return errors.internal(path, str(self)) if self._internal else errors.invalid(path, text, str(self))


def compile_expression(environment: Environment, text: str, returns: Sequence[Type]) -> CompiledExpression:
    """Compile an expression; raise BadExpression, or ResultTypeError if it has none of the types."""
    try:
        return environment.compile(text, None if types.ANY in returns else returns.__contains__)
    except Issues as issues:
        raise BadExpression(f"compilation failed: {issues}") from issues
    except ProgramError as error:
        raise BadExpression(f"program instantiation failed: {error}", internal=True) from error


class OptionalVariables(Struct, frozen=True):
    """The variables that exist besides `object`, `oldObject`, `request` and `namespaceObject`."""

    params: bool = False
    authorizer: bool = True
    patches: bool = False


class _Structs:
    def __init__(self, variables: Mapping[str, Type] | None, *, has_patches: bool) -> None:
        self._variables = variables
        self._has_patches = has_patches

    def fields(self, name: str, /) -> Mapping[str, Type] | None:
        if name == _VARIABLES and self._variables is not None:
            return self._variables
        return STRUCTS.get(name) or (patches.struct_fields(name) if self._has_patches else None)


def _environment(
    optional_variables: OptionalVariables, variables: Mapping[str, Type] | None, language: Language
) -> Environment:
    declarations: dict[str, Type] = {
        "object": types.DYN,
        "oldObject": types.DYN,
        "namespaceObject": _k8s("Namespace"),
        "request": _k8s("AdmissionRequest"),
    }
    if optional_variables.params:
        declarations["params"] = types.DYN
    if optional_variables.authorizer:
        declarations["authorizer"] = _k8s("authorization.Authorizer")
        declarations["authorizer.requestResource"] = _k8s("authorization.ResourceCheck")
    if variables is not None:
        declarations["variables"] = types.struct(_VARIABLES)
    libraries = (Library(patches.DECLARED, patches.FUNCTIONS),) if optional_variables.patches else ()
    return Environment(
        declarations,
        _Structs(variables, has_patches=optional_variables.patches),
        libraries,
        language=language,
    )


@cache
def _plain_environment(optional_variables: OptionalVariables, language: Language) -> Environment:
    return _environment(optional_variables, None, language)


_EXPOSED_KINDS: Final = frozenset(
    ("any", "bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "uint")
)


def _variable_type(type_: Type) -> Type:
    """Return the type that a variable has in other expressions: a struct, such as an authorizer, becomes dynamic."""
    if type_.kind in _EXPOSED_KINDS:
        return type_
    if type_.kind == "list":
        return types.list_of(_variable_type(type_.parameters[0]))
    if type_.kind == "map":
        return types.map_of(*map(_variable_type, type_.parameters))
    return types.DYN


class Compiler:
    """A compiler for the expressions of one policy. An expression may use the variables that were added before it."""

    def __init__(self, *, has_variables: bool = False, language: Language = FULL_LANGUAGE) -> None:
        self.language = language
        self.types: dict[str, Type] | None = {} if has_variables else None
        self.variables: dict[str, CompiledExpression | BadExpression] = {}
        self._environments: dict[OptionalVariables, Environment] = {}

    def compile(
        self, text: str, returns: Sequence[Type], optional_variables: OptionalVariables
    ) -> CompiledExpression:
        """Compile an expression, or raise BadExpression."""
        try:
            return compile_expression(self._environment(optional_variables), text, returns)
        except ResultTypeError as error:
            names = [type_.declared_name() for type_ in returns]
            return_types = names[0] if len(names) == 1 else f"one of [{' '.join(names)}]"
            detail = f"must evaluate to {return_types} but got {error.type.declared_name()}"
            raise BadExpression(detail) from error

    def add_variable(self, name: str, text: str, optional_variables: OptionalVariables) -> None:
        """Compile a variable. If it is invalid, the error is raised here and again for each expression that uses it."""
        assert self.types is not None
        try:
            compiled = self.compile(text, ANY, optional_variables)
        except BadExpression as error:
            self.variables[name] = error
            self.types[name] = types.DYN
            raise
        self.variables[name] = compiled
        self.types[name] = _variable_type(compiled.type)

    def _environment(self, optional_variables: OptionalVariables) -> Environment:
        if self.types is None:
            return _plain_environment(optional_variables, self.language)
        if optional_variables not in self._environments:
            self._environments[optional_variables] = _environment(
                optional_variables, self.types, self.language
            )
        return self._environments[optional_variables]


class TypeChecker:
    """A type checker for the expressions of one policy. A type of None, for the object or the parameters, is unknown."""

    def __init__(
        self,
        object_type: Type | None,
        params_type: Type | None,
        structs: Mapping[str, Mapping[str, Type]],
        *,
        has_params: bool,
    ) -> None:
        self._variables: dict[str, Type] = {}
        declarations: dict[str, Type] = {
            **dict.fromkeys(("object", "oldObject"), object_type or types.DYN),
            "namespaceObject": _k8s("Namespace"),
            "request": _k8s("AdmissionRequest"),
            "authorizer": _k8s("authorization.Authorizer"),
            "variables": types.struct(_VARIABLES),
            **({"params": params_type or types.DYN} if has_params else {}),
        }
        all_structs = {**STRUCTS, **structs, _VARIABLES: self._variables}
        self._environment = Environment(declarations, DeclaredStructs(all_structs))

    def add_variable(self, name: str, text: str) -> None:
        """Declare a variable for later expressions; if its own expression is invalid, its type is dynamic."""
        try:
            self._variables[name] = _variable_type(self._environment.check(text).type)
        except Issues:
            self._variables[name] = types.DYN

    def check(self, text: str) -> None:
        """Raise Issues if the expression does not conform to the types."""
        self._environment.check(text)


class Variables(LazyMap):
    """The variables of a policy for one object; each is evaluated on first use and then cached."""

    type_name = _VARIABLES

    def __init__(
        self, compiled: Mapping[str, CompiledExpression | BadExpression], activation: Mapping[str, Any]
    ) -> None:
        self._compiled = compiled
        self._activation = activation
        self._results: dict[str, Any] = {}
        self.cost = 0
        """The cost of the evaluations since `take_cost` was last called."""

    def find(self, key: Any, /) -> tuple[bool, Any]:
        if key not in self._compiled:
            return False, None
        if key not in self._results:
            self._results[key] = self._evaluate(key)
        value = self._results[key]
        if isinstance(value, CelError):
            raise value
        return True, value

    def _evaluate(self, name: str) -> Any:
        compiled = self._compiled[name]
        if isinstance(compiled, BadExpression):
            return CelError(f'composited variable "{name}" fails to compile: {compiled}')
        try:
            value, cost = compiled.program.evaluate(self._activation)
        except CelError as error:
            self.cost += error.cost
            return CelError(f'composited variable "{name}" fails to evaluate: {error}')
        self.cost += cost
        return value

    def take_cost(self) -> int:
        """Return the cost of the evaluations since the last call, and reset it."""
        cost, self.cost = self.cost, 0
        return cost
