"""The values of simulated Python scripts: numbers, texts and containers are Python's own; all other kinds are defined here."""

import ast
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Final, TypeAlias

from mockube.container_runtime.simulated.shell.process import TooLarge, UnknownProgram

from . import limits

_MAX_CLASSES: Final = 1_000

Value: TypeAlias = Any
Code: TypeAlias = Generator[Any, Any, Any]
"""A part of an execution: it yields other parts and nodes with their frames, whose results it receives, and effects."""
BuiltinCall: TypeAlias = Callable[..., Any]
"""Called with the machine, the list of arguments and the keyword arguments; returns a value, or the `Code` that returns it."""


class NotSimulatedInPython(UnknownProgram):
    """A script needs a module or a part of the language that is not simulated."""


class TooLargeInPython(NotSimulatedInPython, TooLarge):
    """The values of a script are larger than what is stored of them."""


class Scope:
    """The variables of a function, a class or a module; those of a module have no parent."""

    __slots__ = ("global_names", "is_class", "local_names", "nonlocal_names", "parent", "variables")

    def __init__(self, variables: dict[str, Value], parent: "Scope | None" = None) -> None:
        self.variables = variables
        self.parent = parent
        self.local_names: frozenset[str] | None = None
        """The names that a function assigns; None for a class or a module."""
        self.global_names: frozenset[str] = frozenset()
        self.nonlocal_names: frozenset[str] = frozenset()
        self.is_class = False


class Frame:
    """The execution of a function, a class body or a module."""

    __slots__ = ("arguments", "file", "function", "module", "name", "node", "scope")

    def __init__(self, name: str, file: "SourceFile", scope: Scope, module: dict[str, Value]) -> None:
        self.name = name
        self.file = file
        self.scope = scope
        self.module = module
        self.node: ast.AST | None = None
        """What is executed at present."""
        self.function: Function | None = None
        self.arguments: list[Value] = []


class SourceFile:
    def __init__(self, name: str, text: str, *, has_lines: bool = True, is_library: bool = False) -> None:
        """`has_lines` is whether tracebacks show the lines; they do not show those of a library at all."""
        self.name = name
        self.is_library = is_library
        self.lines = text.splitlines() if has_lines else []


class PyClass:
    """A class, of a script or for errors."""

    def __init__(
        self, name: str, bases: tuple["PyClass", ...], namespace: dict[str, Value], module: str = ""
    ) -> None:
        self.name = name
        self.bases = bases
        self.namespace = namespace
        self.module = module
        self.order = _resolution_order(self)

    @property
    def full_name(self) -> str:
        return f"{self.module}.{self.name}" if self.module not in ("", "builtins", "__main__") else self.name

    def find(self, name: str, default: Value = None) -> Value:
        for cls in self.order:
            if name in cls.namespace:
                return cls.namespace[name]
        return default


def _resolution_order(cls: PyClass) -> list[PyClass]:
    """Return the class and its bases; a base that several share follows them all."""
    order: list[PyClass] = []
    if sum(len(base.order) for base in cls.bases) > limits.MAX_BASES:
        raise NotSimulatedInPython("a class in Python with so many bases")
    for candidate in [cls, *(other for base in cls.bases for other in base.order)][::-1]:
        if candidate not in order:
            order.insert(0, candidate)
    return order


class Instance:
    def __init__(self, cls: PyClass) -> None:
        self.cls = cls
        self.fields: dict[str, Value] = {}


class ErrorInstance(Instance):
    def __init__(self, cls: PyClass, arguments: tuple[Value, ...] = ()) -> None:
        super().__init__(cls)
        self.fields["args"] = arguments
        self.trace: list[tuple[str, SourceFile, ast.AST | None]] = []
        """The name, the file and the node of each frame, the outermost first."""
        self.cause: ErrorInstance | None = None
        self.context: ErrorInstance | None = None
        self.hides_context = False
        self.syntax_text = ""
        """What is printed for an error in the script's own text."""
        self.visible_names: list[Value] = []
        """The names that there are instead of one that is not defined."""

    @property
    def arguments(self) -> tuple[Value, ...]:
        """`args`, which a script may set to anything."""
        arguments = self.fields.get("args")
        return arguments if isinstance(arguments, tuple) else ()


class Function:
    def __init__(self, node: ast.FunctionDef | ast.Lambda, frame: Frame) -> None:
        self.name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
        self.node = node
        self.frame = frame
        """The frame in which it is defined."""
        self.defaults: list[Value] = []
        self.keyword_defaults: dict[str, Value] = {}
        self.owner: PyClass | None = None
        self.fields: dict[str, Value] = {}
        self.qualified_name = self.name


class Method:
    """A function of an object."""

    def __init__(self, function: Value, receiver: Value) -> None:
        self.function = function
        self.receiver = receiver


class Builtin:
    def __init__(self, name: str, call: BuiltinCall) -> None:
        self.name = name
        self.call = call


class NativeType:
    """A built-in type."""

    def __init__(
        self,
        name: str,
        host: type | tuple[type, ...],
        call: BuiltinCall,
        members: Mapping[str, Value] | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.call = call
        self.members: dict[str, Value] = dict(members or {})


class Wrapper:
    """A property, a class method or a static method in a class."""

    def __init__(self, kind: str, function: Value) -> None:
        self.kind = kind
        self.function = function
        self.setter: Value = None


class Super:
    def __init__(self, cls: PyClass, receiver: Value) -> None:
        self.cls = cls
        self.receiver = receiver


class Module:
    def __init__(self, name: str, members: dict[str, Value]) -> None:
        self.name = name
        self.members = members


class NativeObject:
    """An object of a simulated module; `members` are its attributes."""

    type_name = "object"

    def __init__(self, members: dict[str, Value] | None = None) -> None:
        self.members: dict[str, Value] = {} if members is None else members


class Iterator:
    """An iterator whose steps are parts of the execution; `step` returns `Code` whose result is the next value, or `END`."""

    def __init__(self, type_name: str, step: Callable[[], Code]) -> None:
        self.type_name = type_name
        self.step = step


class GeneratorObject:
    def __init__(self, function_name: str, execution: Code) -> None:
        self.name = function_name
        self.execution = execution
        self.has_started = False
        self.has_ended = False
        self.result: Value = None


class YieldedValue:
    """What a generator of a script yields."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class DefaultDict(dict[Any, Any]):
    factory: Value = None


class Environment(dict[Any, Any]):
    """`os.environ`."""

    def __init__(self, values: Mapping[str, str], ask: Callable[[str], None]) -> None:
        """`ask` is called with the name of a variable that is not set, empty for a list of all."""
        super().__init__(values)
        self._ask = ask

    def __contains__(self, name: object) -> bool:
        is_set = super().__contains__(name)
        if not is_set and isinstance(name, str):
            self._ask(name)
        return is_set

    def get(self, name: Any, default: Any = None) -> Any:
        if not super().__contains__(name):
            self._ask(str(name))
        return super().get(name, default)

    def __iter__(self) -> Any:
        self._ask("")
        return super().__iter__()

    def keys(self) -> Any:
        self._ask("")
        return super().keys()

    def items(self) -> Any:
        self._ask("")
        return super().items()


class BulkText:
    """A long text or list, or other data, that repeats a unit: only its length is stored."""

    def __init__(self, unit: Value, length: int, release: Callable[[], None], *, is_exact: bool) -> None:
        """`is_exact` is whether it consists of the unit; otherwise nobody knows more than its length."""
        self.unit = unit
        self.length = length
        self.is_exact = is_exact
        self.is_random = False
        """Whether nobody can know its contents, as those of random bytes."""
        self._release = release

    def __del__(self) -> None:
        self._release()


class _End:
    pass


END: Final = _End()
"""The result of an iterator that has ended."""

_NAMES: Final[Mapping[type, str]] = {
    type(None): "NoneType",
    Function: "function",
    Method: "method",
    Builtin: "builtin_function_or_method",
    PyClass: "type",
    NativeType: "type",
    Module: "module",
    GeneratorObject: "generator",
    DefaultDict: "defaultdict",
    type(Ellipsis): "ellipsis",
    Super: "super",
}


def type_name(value: Value) -> str:
    if isinstance(value, Instance):
        return value.cls.name
    if isinstance(value, (NativeObject, Iterator)):
        return value.type_name
    if isinstance(value, BulkText):
        return type(value.unit).__name__
    return _NAMES.get(type(value)) or type(value).__name__


_INTERNAL: Final = re.compile(
    r"\b(?:BulkText|Builtin|DefaultDict|Function|GeneratorObject|Instance|Method|Module|NativeObject|NativeType|PyClass|Super)\b"
)
"""Matches the name of a class that stands for one of Python."""


def with_type_names(message: str, values: Iterable[Value]) -> str:
    """Return a message of the interpreter that runs this, with the names that the types of the values have in a script."""
    names = {type(value).__name__: type_name(value) for value in values}
    return _INTERNAL.sub(lambda match: names.get(match[0], "object"), message)


def flatten(classes: Value) -> list[Value]:
    """Return the classes of a tuple, which may have tuples in it."""
    remaining, found = [classes], list[Value]()
    for _ in range(_MAX_CLASSES):
        if not remaining:
            return found
        item = remaining.pop()
        if isinstance(item, tuple) and len(item) <= _MAX_CLASSES:
            remaining += item[::-1]
        else:
            found.append(item)
    raise NotSimulatedInPython("a tuple of so many classes in Python")


def is_subclass(cls: Value, base: Value) -> bool:
    return isinstance(cls, PyClass) and any(other in cls.order for other in flatten(base))
