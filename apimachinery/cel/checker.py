"""The type checker, which reports errors with cel-go's messages."""

from collections.abc import Callable
from collections.abc import Mapping as ReadOnly
from typing import Any, Protocol

from . import inference, messages, types
from .ast import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    CreateStruct,
    Expr,
    Ident,
    Literal,
    Select,
    Unspecified,
)
from .declarations import Functions, Overload
from .source import Issue
from .types import Type

_MANY_ISSUES = 10_000
_NO_ISSUES: list[Issue] = []


class StructTypes(Protocol):
    """The fields of structs, by the names of the structs."""

    def fields(self, name: str, /) -> ReadOnly[str, Type] | None:
        """Return None for a struct that does not exist."""


class Checker:
    """A checker of one expression; it sets the types and overloads of its nodes."""

    def __init__(self, variables: ReadOnly[str, Type], functions: Functions, structs: StructTypes) -> None:
        self.scopes: list[ReadOnly[str, Type]] = [variables]
        self.functions = functions
        self.structs = structs
        self.issues: list[Issue] = []
        self.mapping = inference.Mapping()
        self.type_variable_count = 0
        self.checked_nodes: dict[int, tuple[Expr, list[Issue]]] = {}
        """Each node with its errors, by identity: a macro may use a node several times, and each use counts its errors."""

    def check(self, node: Expr) -> None:
        entry = self.checked_nodes.get(id(node))
        if entry is not None:
            if len(self.issues) < _MANY_ISSUES:
                self.issues += entry[1]
            return
        issue_count = len(self.issues)
        _CHECKS[type(node)](self, node)
        self.checked_nodes[id(node)] = (
            node,
            self.issues[issue_count:] if len(self.issues) > issue_count else _NO_ISSUES,
        )

    def finish(self) -> None:
        """Replace the type parameters in the types of all nodes by their substitutions."""
        for node, _ in self.checked_nodes.values():
            node.type = inference.substitute(self.mapping, node.type, free_to_dyn=True)

    def report(self, offset: int, message: str) -> None:
        self.issues.append(Issue(offset, message))

    def report_undeclared(self, node: Expr, name: str) -> None:
        self.report(node.offset, f"undeclared reference to '{name}' (in container '')")
        node.type = types.ERROR

    def lookup(self, name: str) -> Type | None:
        if name.startswith("."):
            name, scopes = name[1:], self.scopes[:1]
        else:
            scopes = self.scopes
        for scope in reversed(scopes):
            if name in scope:
                return scope[name]
        struct = self.structs.fields(name)
        return types.type_of(types.struct(name)) if struct is not None else None

    def new_type_variable(self) -> Type:
        self.type_variable_count += 1
        return types.type_parameter(f"_var{self.type_variable_count - 1}")

    def is_assignable(self, left: list[Type], right: list[Type]) -> bool:
        return inference.assign(self.mapping, left, right)

    def literal(self, node: Literal) -> None:
        """Do nothing: the parser has set the type."""

    def check_unspecified(self, node: Unspecified) -> None:
        node.type = types.ERROR

    def ident(self, node: Ident) -> None:
        type_ = self.lookup(node.name)
        if type_ is None:
            self.report_undeclared(node, node.name)
            return
        node.name = node.name.removeprefix(".")
        node.type = type_

    def select(self, node: Select) -> None:
        name = qualified_name(node)
        type_ = self.lookup(name) if name else None
        if type_ is not None:
            node.resolved, node.type = name, type_
            return
        result = self.field_type(node, node.operand, node.field, optional=False)
        node.type = types.BOOL if node.test_only else inference.substitute(self.mapping, result)

    def field_type(self, node: Expr, operand: Expr, field: str, *, optional: bool) -> Type:
        self.check(operand)
        operand_type = inference.substitute(self.mapping, operand.type)
        target = types.unwrap_optional(operand_type)
        result = self._selected_type(node, target, field)
        return types.optional_of(result) if optional or operand_type.is_optional else result

    def _selected_type(self, node: Expr, target: Type, field: str) -> Type:
        if target.kind == "map":
            return target.parameters[1]
        if target.kind == "struct":
            return self.struct_field(node.offset, target.name, field)
        if target.kind == "param":
            self.is_assignable([types.DYN], [target])
        elif not target.is_dynamic_or_error:
            self.report(node.offset, f"type '{target}' does not support field selection")
        return types.DYN

    def struct_field(self, offset: int, struct: str, field: str) -> Type:
        fields = messages.fields_of(struct)
        if fields is None:
            fields = self.structs.fields(struct)
        if fields is None:
            self.report(offset, f"unexpected failed resolution of '{struct}'")
            return types.ERROR
        if field not in fields:
            self.report(offset, f"undefined field '{field}'")
            return types.ERROR
        return fields[field]

    def call(self, node: Call) -> None:
        if node.function == "_?._":
            self.optional_select(node)
            return
        for arg in node.args:
            self.check(arg)
        if node.target is None:
            node.function = node.function.removeprefix(".") if node.function[1:] else node.function
            overloads = self.functions.get(node.function)
            if overloads is None:
                self.report_undeclared(node, node.function)
            else:
                self.resolve(node, overloads)
            return
        self.method(node, node.target)

    def method(self, node: Call, target: Expr) -> None:
        prefix = qualified_name(target)
        qualified = f"{prefix}.{node.function}".removeprefix(".") if prefix else ""
        if qualified in self.functions:
            node.function, node.target = qualified, None
            self.resolve(node, self.functions[qualified])
            return
        self.check(target)
        overloads = self.functions.get(node.function)
        if overloads is None:
            self.report_undeclared(node, node.function)
            return
        self.resolve(node, overloads)

    def optional_select(self, node: Call) -> None:
        operand, field = node.args
        assert isinstance(field, Literal)
        result = self.field_type(node, operand, field.value, optional=True)
        node.type = inference.substitute(self.mapping, result)
        node.overloads = ("select_optional_field",)

    def resolve(self, node: Call, overloads: tuple[Overload, ...]) -> None:
        """Set the overloads that match the arguments; if several match, one is chosen at run time."""
        args = [node.target, *node.args] if node.target is not None else node.args
        if node.function in ("_&&_", "_||_"):
            self.logic(node)
            return
        arg_types = [arg.type for arg in args]
        result: Type | None = None
        overload_ids: list[str] = []
        for overload in overloads:
            if overload.member != (node.target is not None) or len(overload.args) != len(arg_types):
                continue
            candidate, candidate_result = self.instantiate(overload)
            if not self.is_assignable(arg_types, candidate):
                continue
            overload_ids.append(overload.id)
            overload_result = inference.substitute(self.mapping, candidate_result)
            if result is None:
                result = overload_result
            elif not result.is_dynamic and overload_result != result:
                result = types.DYN
        if result is None:
            self.no_overload(node, arg_types)
            return
        node.type, node.overloads = result, tuple(overload_ids)

    def no_overload(self, node: Call, arg_types: list[Type]) -> None:
        type_names = [str(inference.substitute(self.mapping, type_, free_to_dyn=True)) for type_ in arg_types]
        target = f"{type_names.pop(0)}." if node.target is not None else ""
        message = (
            f"found no matching overload for '{node.function}' applied to '{target}({', '.join(type_names)})'"
        )
        self.report(node.offset, message)
        node.type = types.ERROR

    def logic(self, node: Call) -> None:
        node.overloads = ("logical_and" if node.function == "_&&_" else "logical_or",)
        node.type = types.BOOL
        for arg in node.args:
            if not self.is_assignable([arg.type], [types.BOOL]):
                self.report(arg.offset, f"expected type 'bool' but found '{arg.type}'")
                node.type = types.ERROR

    def instantiate(self, overload: Overload) -> tuple[list[Type], Type]:
        if not overload.parameters:
            return list(overload.args), overload.result
        fresh = {name: self.new_type_variable() for name in overload.parameters}
        args = [inference.substitute(fresh, arg) for arg in overload.args]
        return args, inference.substitute(fresh, overload.result)

    def join(self, previous: Type | None, current: Type) -> Type:
        """Return the common type of two elements, or dyn; validators report mixed lists later."""
        if previous is None:
            return current
        if self.is_assignable([previous], [current]):
            return inference.most_general(previous, current)
        return types.DYN

    def unwrap_optional(self, node: Expr, *, optional: bool) -> Type:
        """Return the type of an element; that of its value if the element is optional."""
        if optional and not node.type.is_optional and not node.type.is_dynamic:
            self.report(
                node.offset, f"expected type '{types.optional_of(node.type)}' but found '{node.type}'"
            )
        return types.unwrap_optional(node.type) if optional else node.type

    def create_list(self, node: CreateList) -> None:
        joined: Type | None = None
        for i, element in enumerate(node.elements):
            self.check(element)
            joined = self.join(joined, self.unwrap_optional(element, optional=i in node.optional))
        node.type = types.list_of(joined or self.new_type_variable())

    def create_map(self, node: CreateMap) -> None:
        key_type: Type | None = None
        value_type: Type | None = None
        for entry in node.entries:
            self.check(entry.key)
            key_type = self.join(key_type, entry.key.type)
            self.check(entry.value)
            value = self.unwrap_optional(entry.value, optional=entry.optional)
            value_type = self.join(value_type, value)
        node.type = types.map_of(key_type or self.new_type_variable(), value_type or self.new_type_variable())

    def create_struct(self, node: CreateStruct) -> None:
        declared_type = self.lookup(node.name)
        if declared_type is None:
            self.report_undeclared(node, node.name)
            return
        node.name = node.name.removeprefix(".")
        node.type = self._struct_type(node, declared_type)
        name = messages.message_of(node.type) or node.name
        for entry in node.entries:
            self.check(entry.value)
            field = self.struct_field(entry.offset, name, entry.key)
            value = self.unwrap_optional(entry.value, optional=entry.optional)
            if not self.is_assignable([field], [value]):
                self.report(
                    entry.offset,
                    f"expected type of field '{entry.key}' is '{field}' but provided type is '{value}'",
                )

    def _struct_type(self, node: CreateStruct, declared_type: Type) -> Type:
        if declared_type.kind != "type":
            self.report(node.offset, f"'{declared_type.name}' is not a type")
            return types.ERROR
        result = declared_type.parameters[0]
        if result.kind == "struct" or messages.message_of(result) is not None:
            return result
        self.report(node.offset, f"'{result.name}' is not a message type")
        return types.ERROR

    def comprehension(self, node: Comprehension) -> None:
        self.check(node.range)
        self.check(node.init)
        range_type = inference.substitute(self.mapping, node.range.type)
        accumulator = node.init.type
        first, second = self.iteration_types(node, range_type)
        self.scopes.append({node.accumulator: accumulator})
        variables = {node.variable: first}
        if node.variable2:
            variables[node.variable2] = second
        self.scopes.append(variables)
        self.check(node.condition)
        self.assert_type(node.condition, types.BOOL)
        self.check(node.step)
        self.assert_type(node.step, accumulator)
        self.scopes.pop()
        self.check(node.result)
        self.scopes.pop()
        node.type = inference.substitute(self.mapping, node.result.type)

    def iteration_types(self, node: Comprehension, range_type: Type) -> tuple[Type, Type]:
        if range_type.kind == "list":
            element = range_type.parameters[0]
            return (types.INT, element) if node.variable2 else (element, element)
        if range_type.kind == "map":
            return range_type.parameters[0], range_type.parameters[1]
        if range_type.kind in ("dyn", "error", "param"):
            self.is_assignable([types.DYN], [range_type])
            return types.DYN, types.DYN
        message = "cannot be range of a comprehension (must be list, map, or dynamic)"
        self.report(node.range.offset, f"expression of type '{range_type}' {message}")
        return types.ERROR, types.ERROR

    def assert_type(self, node: Expr, expected_type: Type) -> None:
        if not self.is_assignable([expected_type], [node.type]):
            self.report(node.offset, f"expected type '{expected_type}' but found '{node.type}'")


def qualified_name(node: Expr) -> str:
    """Return the qualified name of an identifier with selections; "" for another expression."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test_only:
        prefix = qualified_name(node.operand)
        return f"{prefix}.{node.field}" if prefix else ""
    return ""


_CHECKS: dict[type, Callable[[Checker, Any], None]] = {
    Literal: Checker.literal,
    Unspecified: Checker.check_unspecified,
    Ident: Checker.ident,
    Select: Checker.select,
    Call: Checker.call,
    CreateList: Checker.create_list,
    CreateMap: Checker.create_map,
    CreateStruct: Checker.create_struct,
    Comprehension: Checker.comprehension,
}
