"""Type inference: assignability of types and substitutions of type parameters, as in the checker of cel-go."""

from collections.abc import Mapping as ReadOnly

from . import types
from .types import Type


class Mapping(dict[str, Type]):
    """The substitutions of type parameters, by name. Changes can be undone back to a mark."""

    __slots__ = ("_changes",)

    def __init__(self) -> None:
        super().__init__()
        self._changes: list[tuple[str, Type | None]] = []

    def set(self, name: str, type_: Type) -> None:
        self._changes.append((name, self.get(name)))
        self[name] = type_

    def mark(self) -> int:
        return len(self._changes)

    def undo(self, mark: int) -> None:
        while len(self._changes) > mark:
            name, before = self._changes.pop()
            if before is None:
                del self[name]
            else:
                self[name] = before


_NULLABLE_KINDS = frozenset(("opaque", "struct", "any", "duration", "timestamp"))
_SCALAR_KINDS = frozenset(
    ("bool", "bytes", "double", "int", "string", "uint", "any", "duration", "timestamp", "struct")
)


def assign(mapping: Mapping, left: list[Type], right: list[Type]) -> bool:
    """Return whether the types are pairwise assignable; if they are, add the necessary substitutions to the mapping."""
    if left == right and not any(map(_has_parameters, left)):
        return True
    mark = mapping.mark()
    if _all_assignable(mapping, left, right):
        return True
    mapping.undo(mark)
    return False


def _has_parameters(type_: Type) -> bool:
    return type_.kind == "param" or any(map(_has_parameters, type_.parameters))


def _all_assignable(
    mapping: Mapping, left: list[Type] | tuple[Type, ...], right: list[Type] | tuple[Type, ...]
) -> bool:
    return len(left) == len(right) and all(
        _assignable(mapping, a, b) for a, b in zip(left, right, strict=True)
    )


def _assignable(mapping: Mapping, left: Type, right: Type) -> bool:
    if right.kind == "param":
        valid, substituted = _substitutes(mapping, left, right)
        if valid or substituted:
            return valid
    if left.kind == "param":
        return _substitutes(mapping, right, left)[0]
    if left.is_dynamic_or_error or right.is_dynamic_or_error:
        return True
    if left.kind == "null":
        return right.kind in _NULLABLE_KINDS or right.is_assignable_from(types.NULL)
    if right.kind == "null":
        return left.kind in _NULLABLE_KINDS or left.is_assignable_from(types.NULL)
    if left.kind in _SCALAR_KINDS:
        return right.is_assignable_from(left)
    if left.kind == "type":
        return right.kind == "type"
    return (
        left.kind == right.kind
        and left.name == right.name
        and _all_assignable(mapping, left.parameters, right.parameters)
    )


def _substitutes(mapping: Mapping, type_: Type, parameter: Type) -> tuple[bool, bool]:
    """Return whether a type can be substituted for a parameter, and whether the parameter already had a substitution."""
    if type_ == parameter:
        return True, True
    substitute_ = mapping.get(str(parameter))
    if substitute_ is None:
        if not _refers_to(mapping, parameter, type_):
            mapping.set(str(parameter), type_)
            return True, False
        return False, False
    if type_ == substitute_:
        return True, True
    if not _assignable(mapping, type_, substitute_):
        return False, True
    general = most_general(type_, substitute_)
    if not _refers_to(mapping, parameter, general):
        mapping.set(str(parameter), general)
    return True, True


def _refers_to(mapping: Mapping, parameter: Type, within: Type) -> bool:
    if parameter == within:
        return True
    if within.kind == "param":
        substitute_ = mapping.get(str(within))
        return substitute_ is not None and _refers_to(mapping, parameter, substitute_)
    return any(_refers_to(mapping, parameter, part) for part in within.parameters)


def most_general(left: Type, right: Type) -> Type:
    return left if _equal_or_less_specific(left, right) else right


def _equal_or_less_specific(left: Type, right: Type) -> bool:
    if left.is_dynamic or left.kind == "param":
        return True
    if right.is_dynamic or right.kind == "param" or left.kind != right.kind:
        return False
    if left.kind == "type":
        return True
    if left.kind not in ("opaque", "list", "map"):
        return left == right
    return (
        left.name == right.name
        and len(left.parameters) == len(right.parameters)
        and all(map(_equal_or_less_specific, left.parameters, right.parameters))
    )


def substitute(mapping: ReadOnly[str, Type], type_: Type, *, free_to_dyn: bool = False) -> Type:
    """Return the type with its parameters replaced by their substitutions."""
    if type_.kind == "param":
        mapped_type = mapping.get(type_.name)
        if mapped_type is not None:
            return substitute(mapping, mapped_type, free_to_dyn=free_to_dyn)
        return types.DYN if free_to_dyn else type_
    if not type_.parameters:
        return type_
    parameters = tuple(substitute(mapping, part, free_to_dyn=free_to_dyn) for part in type_.parameters)
    return type_ if parameters == type_.parameters else Type(type_.kind, type_.name, parameters)
