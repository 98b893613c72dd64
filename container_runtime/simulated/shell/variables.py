"""The variables of a shell, with attributes, arrays, and scopes of functions."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from . import limits
from .messages import WordedError
from .syntax import ShellSyntaxError

_DEFAULT_IFS: Final = " \t\n"

Elements = Mapping[int | str, str]


class ValueTooLong(ShellSyntaxError):
    """A value has more than the interpreter keeps of it."""


class ReadOnlyVariable(WordedError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: is read only", f"{name}: readonly variable")
        self.name = name


class ShellVariable(Struct, frozen=True, kw_only=True):
    text: str | None = None
    """None if it has no value."""
    elements: Elements | None = None
    """The elements of an array, in order."""
    is_map: bool = False
    """Whether it is an associative array."""
    is_exported: bool = False
    is_read_only: bool = False
    is_integer: bool = False
    case: str = ""
    """`l` or `u` for a variable that converts its values to lower or upper case."""

    @property
    def value(self) -> str | None:
        if self.elements is None:
            return self.text
        return self.elements.get("0" if self.is_map else 0)

    @property
    def size(self) -> int:
        return len(self.text or "") + sum(map(len, (self.elements or {}).values()))


_NONE: Final = ShellVariable()


class VariableTable:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._variables = {
            name: ShellVariable(text=text, is_exported=True) for name, text in environment.items()
        }
        self._variables["IFS"] = ShellVariable(text=_DEFAULT_IFS)
        self._variables.setdefault("OPTIND", ShellVariable(text="1"))
        self._scopes: list[dict[str, ShellVariable | None]] = []
        self._size = sum(variable.size for variable in self._variables.values())
        self.keep: Callable[[int], None] = lambda _: None
        """Called with the characters by which the variables grow, or shrink."""
        self.changes = 0

    def _grow(self, size: int) -> None:
        self._size += size
        self.keep(size)

    def copy(self) -> "VariableTable":
        """Return the variables of a subshell."""
        copied = VariableTable({})
        copied._variables = dict(self._variables)
        copied._scopes = [dict(scope) for scope in self._scopes]
        copied._size = self._size
        return copied

    def variable(self, name: str) -> ShellVariable | None:
        return self._variables.get(name)

    def names(self) -> list[str]:
        return sorted(self._variables)

    def get(self, name: str) -> str | None:
        variable = self._variables.get(name)
        return None if variable is None else variable.value

    def put(self, name: str, variable: ShellVariable) -> None:
        """Set a variable with its attributes."""
        old = self._variables.get(name)
        if old == variable:
            return
        if old is not None and old.is_read_only:
            raise ReadOnlyVariable(name)
        growth = variable.size - (old.size if old else 0)
        if self._size + growth > limits.MAX_VARIABLES:
            raise ValueTooLong("the variables are too long")
        self._grow(growth)
        self._variables[name] = variable
        self.changes += 1

    def check_writable(self, name: str) -> None:
        variable = self._variables.get(name)
        if variable is not None and variable.is_read_only:
            raise ReadOnlyVariable(name)

    def set(self, name: str, text: str) -> None:
        variable = self._variables.get(name, _NONE)
        if variable.is_read_only:
            raise ReadOnlyVariable(name)
        text = {"l": str.lower, "u": str.upper}.get(variable.case, str)(text)
        if variable.elements is None:
            self.put(name, replace(variable, text=text))
        else:
            self.put(
                name,
                replace(variable, elements={**variable.elements, ("0" if variable.is_map else 0): text}),
            )

    def set_element(self, name: str, index: int | str, text: str) -> None:
        variable = self._variables.get(name, _NONE)
        if variable.is_read_only:
            raise ReadOnlyVariable(name)
        elements = dict(variable.elements or {})
        if variable.elements is None and variable.text is not None and not variable.is_map:
            elements = {0: variable.text}
        is_ordered = variable.is_map or index in elements or int(index) > int(next(reversed(elements), -1))
        elements[index] = text
        if not is_ordered:
            elements = dict(sorted(elements.items()))
        self.put(name, replace(variable, text=None, elements=elements))

    def remove(self, name: str) -> None:
        variable = self._variables.get(name)
        if variable is None:
            return
        if variable.is_read_only:
            raise ReadOnlyVariable(name)
        self._grow(-variable.size)
        del self._variables[name]
        self.changes += 1

    def remove_element(self, name: str, index: int | str) -> None:
        variable = self._variables.get(name)
        if variable is not None and variable.elements is not None and index in variable.elements:
            elements = {key: text for key, text in variable.elements.items() if key != index}
            self.put(name, replace(variable, elements=elements))

    def change(self, name: str, **attributes: bool | str) -> None:
        """Change attributes of a variable, which is created without a value if it does not exist."""
        variable = self._variables.get(name, _NONE)
        changed = replace(variable, **attributes)
        if changed != variable or name not in self._variables:
            self._variables[name] = changed
            self.changes += 1

    def environment(self) -> dict[str, str]:
        """Return the exported variables."""
        return {
            name: variable.value
            for name, variable in self._variables.items()
            if variable.is_exported and variable.value is not None
        }

    # --- scopes

    @property
    def is_in_function(self) -> bool:
        return bool(self._scopes)

    def enter_scope(self) -> None:
        self._scopes.append({})

    def leave_scope(self) -> None:
        for name, variable in self._scopes.pop().items():
            self._restore(name, variable)

    def local_names(self) -> list[str]:
        """Return the names of the variables that are local to the function."""
        return sorted(self._scopes[-1])

    def make_local(self, name: str, *, inherits: bool) -> None:
        """Make a variable local to the function; without `inherits`, it has no value at first."""
        scope = self._scopes[-1]
        if name in scope:
            return
        variable = self._variables.get(name)
        if variable is not None and variable.is_read_only:
            raise ReadOnlyVariable(name)
        scope[name] = variable
        if variable is not None and not inherits:
            self._variables[name] = ShellVariable(is_exported=variable.is_exported)
            self._grow(-variable.size)

    def _restore(self, name: str, variable: ShellVariable | None) -> None:
        current = self._variables.pop(name, None)
        self._grow(-current.size if current else 0)
        if variable is not None:
            self._variables[name] = variable
            self._grow(variable.size)
        self.changes += variable != current
