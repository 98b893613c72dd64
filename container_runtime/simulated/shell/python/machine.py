"""The state of a running Python script, and the execution of its parts: calls do not nest on the stack of this process."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from inspect import isgenerator
from math import inf
from typing import Any, ClassVar, Final, NoReturn

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Effect,
    Output,
    Process,
    Sleep,
    WaitUntil,
    fill_memory,
)

from .errors import PythonError, converted, error, is_host_error
from .values import (
    END,
    BulkText,
    Code,
    DefaultDict,
    Environment,
    ErrorInstance,
    Frame,
    GeneratorObject,
    Instance,
    Iterator,
    Method,
    Module,
    NativeObject,
    SourceFile,
    Value,
    YieldedValue,
    type_name,
)

_STEPS_PER_COMMAND: Final = 30
_COMMANDS_PER_PAUSE: Final = 300
_PAUSE: Final = 0.001
"""The time that so many commands take."""
_BUFFER: Final = 8192
"""The bytes of output that Python collects if no terminal reads them."""
Evaluator = Callable[[Any, Any, Frame], Value]
_NATIVE_ITERABLES: Final = (list, tuple, str, bytes, bytearray, dict, set, frozenset, range)


class Stop(Exception):
    """`os._exit`, or the end of a thread's process."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Machine(ABC):
    """It is implemented by `PythonInterpreter`."""

    evaluators: ClassVar[Mapping[type, Evaluator]] = {}
    """The methods that evaluate expressions and execute statements, by the types of nodes."""

    def __init__(
        self, process: Process, version: tuple[int, ...], random: Any, *, is_unbuffered: bool
    ) -> None:
        self.process = process
        self.version = version
        self.arguments: list[str] = []
        self.modules: dict[str, Module] = {}
        self.builtins: dict[str, Value] = {}
        self.random = random
        self.depth = 0
        self.handled: ErrorInstance | None = None
        """The error that an `except` handles at present."""
        self.resumed = 0
        """The number of generators that are executed within each other."""
        self.own_changes = 0
        self.handlers: dict[int, Value] = {}
        """The handlers of signals."""
        self.threads: list[Any] = []
        self.environment: dict[str, Value] = Environment(process.environment)
        self.folder = process.directory
        """The folder of the script, from which it imports."""
        self._is_unbuffered = is_unbuffered
        self._output: list[str] = []
        self._output_size = 0
        self._steps = 0
        self._commands = 0
        self._is_closed = False

    # --- execution

    def drive(self, execution: Code) -> Generator[Any, Any, Any]:  # noqa: C901, PLR0912, PLR0915 - the inner loop, fast in one function
        """Execute code and what it yields; yield effects."""
        stack = [execution]
        evaluators = self.evaluators
        value: Any = None
        problem: BaseException | None = None
        while True:
            try:
                if problem is None:
                    item = stack[-1].send(value)
                else:
                    raised, problem = problem, None
                    item = stack[-1].throw(raised)
            except StopIteration as stop:
                stack.pop()
                value = stop.value
                if not stack:
                    return value
                continue
            except Exception as failure:  # noqa: BLE001 - it passes to the part that has yielded this one
                stack.pop()
                problem = converted(failure) if is_host_error(failure) else failure
                if not stack:
                    raise problem from None
                continue
            value = None
            if type(item) is tuple:
                node, frame = item
                if type(node) is ast.Constant:
                    value = node.value
                    continue
                evaluator = evaluators.get(type(node))
                if evaluator is None:
                    self.refuse(node)
                try:
                    item = evaluator(self, node, frame)  # type: ignore[misc]
                except Exception as failure:  # noqa: BLE001 - as above
                    frame.node = node
                    problem = converted(failure) if is_host_error(failure) else failure
                    continue
                if not isgenerator(item):
                    value = item
                    continue
            if isgenerator(item):
                stack.append(item)
                self._steps += 1
                if not self._steps % _STEPS_PER_COMMAND:
                    yield from self._pass_time()
            else:
                value = yield item

    @abstractmethod
    def refuse_feature(self, name: str) -> NoReturn:
        """End the script, as it needs what is not simulated."""

    @abstractmethod
    def refuse(self, node: ast.AST) -> None: ...

    def _pass_time(self) -> Generator[Effect, Any, None]:
        self._commands += 1
        yield CommandStart()
        if not self._commands % _COMMANDS_PER_PAUSE:
            yield Sleep(_PAUSE, cores=1.0)

    def sleep(self, seconds: float) -> Code:
        """Let time pass; the handlers of signals run."""
        if not self.handlers:
            yield Sleep(seconds)
            return None
        processes = self.process.processes
        end = processes.time + seconds
        while processes.time < end:
            yield WaitUntil(lambda: False, end - processes.time)
            if not processes.has_signals():
                break
            yield self.handle_signals()
        return None

    def handle_signals(self) -> Code:
        for number in self.process.processes.take_signals() if self.handlers else ():
            handler = self.handlers.get(number)
            if handler is not None:
                yield self.call(handler, [number, None])
        return None

    @property
    def changes(self) -> int:
        """The number of changes of what later statements can observe."""
        return self.own_changes + self.process.host.changes

    # --- memory

    def fill(self, size: float) -> Code:
        yield from fill_memory(self.process, size)

    def bulk(self, unit: Value, length: int) -> Code:
        """Return a long text of which only a part is stored; the container's memory holds all of it."""
        if length > limits.MAX_PYTHON_MEMORY:
            raise error("MemoryError")
        yield self.fill(length)
        return BulkText(unit, length, self._release)

    def _release(self, size: int) -> None:
        if not self._is_closed:
            host = self.process.host
            host.memory.change(-size, self.process.processes.current_pid(), host.elapsed)

    def check_size(self, container: Value) -> Code:
        """End the container if a list or the like has grown beyond all bounds."""
        if len(container) > limits.MAX_PYTHON_ELEMENTS:
            yield self.fill(inf)
        return None

    def close(self) -> None:
        self._is_closed = True

    # --- output

    def write(self, descriptor: int, text: str, *, flushes: bool = False) -> Code:
        if descriptor != 1:
            yield Output(descriptor, text.encode("utf-8", "backslashreplace"))
            return None
        if text:
            self._output.append(text)
            self._output_size += len(text)
        is_terminal = self.process.host.has_terminal and "\n" in text
        if flushes or self._is_unbuffered or is_terminal or self._output_size >= _BUFFER:
            yield self.flush()
        return None

    def unbuffer(self) -> None:
        self._is_unbuffered = True

    def flush(self) -> Code:
        if self._output:
            data = "".join(self._output).encode("utf-8", "surrogateescape")
            self._output, self._output_size = [], 0
            yield Output(1, data)
        return None

    # --- iteration

    def iterate(self, value: Value) -> Code:
        """Return an iterator; raise the script's `TypeError` for what cannot be iterated over."""
        if isinstance(value, (Iterator, GeneratorObject)):
            return value
        if isinstance(value, BulkText):
            characters: Any = self.text_of_bulk(value)
            return iter(characters)
        if isinstance(value, Instance):
            method = self.find_method(value, "__iter__")
            if method is not None:
                result = yield self.call(method, [])
                return result
        elif isinstance(value, NativeObject) and "__iter__" in value.members:
            return (yield self.call(value.members["__iter__"], []))
        elif isinstance(value, (*_NATIVE_ITERABLES, *self.host_iterables())):
            iterable: Any = value
            return iter(iterable)
        elif hasattr(type(value), "__next__") and not isgenerator(value):
            return value
        raise error("TypeError", f"'{type_name(value)}' object is not iterable")

    @abstractmethod
    def host_iterables(self) -> tuple[type, ...]: ...

    @abstractmethod
    def find_method(self, value: Value, name: str) -> Method | None:
        """Return a method of an instance; None without one."""

    def advance(self, iterator: Value) -> Code:
        """Return the next value of an iterator, or `END`."""
        if isinstance(iterator, Iterator):
            result = yield iterator.step()
            return result
        if isinstance(iterator, GeneratorObject):
            result = yield self.resume(iterator, None)
            return result
        if isinstance(iterator, Instance):
            return (yield self._advance_instance(iterator))
        return next(iterator, END)

    def _advance_instance(self, iterator: Instance) -> Code:
        method = self.find_method(iterator, "__next__")
        if method is None:
            raise error("TypeError", f"iter() returned non-iterator of type '{type_name(iterator)}'")
        try:
            result = yield self.call(method, [])
        except PythonError as problem:
            if problem.value.cls.name == "StopIteration":
                return END
            raise
        return result

    def resume(self, generator: GeneratorObject, sent: Value, thrown: PythonError | None = None) -> Code:
        """Execute a generator up to its next value, which is returned, or `END`."""
        if generator.has_ended:
            if thrown is not None:
                raise thrown
            return END
        if self.resumed > limits.MAX_PYTHON_GENERATORS:
            raise error("RecursionError", "maximum recursion depth exceeded")
        reply: Any = sent if generator.has_started else None
        generator.has_started = True
        self.own_changes += 1
        self.resumed += 1
        try:
            while True:
                if thrown is not None:
                    failure, thrown = thrown, None
                    item = generator.execution.throw(failure)
                else:
                    item = generator.execution.send(reply)
                if isinstance(item, YieldedValue):
                    return item.value
                reply = yield item
        except StopIteration as stop:
            generator.has_ended = True
            generator.result = stop.value
            return END
        except Exception:
            generator.has_ended = True
            raise
        finally:
            self.resumed -= 1

    def collect(self, value: Value, limit: int = limits.MAX_PYTHON_ELEMENTS) -> Code:
        """Return a list of what an iterable yields."""
        if isinstance(value, _NATIVE_ITERABLES) and not isinstance(value, DefaultDict):
            if len(value) > limit:
                yield self.fill(inf)
            return list(value)
        iterator = yield self.iterate(value)
        values: list[Value] = []
        while (item := (yield self.advance(iterator))) is not END:
            values.append(item)
            if len(values) > limit:
                yield self.fill(inf)
        return values

    # --- what the parts of the interpreter provide to each other

    @abstractmethod
    def call(
        self, function: Value, arguments: list[Value], keywords: dict[str, Value] | None = None
    ) -> Code: ...

    @abstractmethod
    def attribute(self, value: Value, name: str) -> Code: ...

    @abstractmethod
    def text(self, value: Value) -> Code:
        """Return what `str` returns."""

    @abstractmethod
    def representation(self, value: Value) -> Code:
        """Return what `repr` returns."""

    @abstractmethod
    def formatted(self, value: Value, specification: str) -> Code:
        """Return what `format` returns."""

    @abstractmethod
    def truth(self, value: Value) -> Code: ...

    @abstractmethod
    def operate(self, operator: str, left: Value, right: Value) -> Code: ...

    @abstractmethod
    def compare(self, operator: str, left: Value, right: Value) -> Code: ...

    @abstractmethod
    def traceback(self, value: ErrorInstance) -> Code:
        """Return the text of a traceback with its error."""

    @abstractmethod
    def import_module(self, name: str) -> Code: ...

    @abstractmethod
    def run_module(self, name: str, file: SourceFile, text: str, variables: dict[str, Value]) -> Code: ...

    def text_of_bulk(self, value: BulkText) -> Value:
        """Return a long text itself; raise `MemoryError` if it is too long."""
        if value.length > limits.MAX_VALUE * 16:
            raise error("MemoryError")
        unit = value.unit
        return (unit * (value.length // max(len(unit), 1) + 1))[: value.length]
