"""The state of a running Python script, and the execution of its parts: calls do not nest on the stack of this process."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from collections.abc import Iterator as AnyIterator
from contextlib import AbstractContextManager, contextmanager
from inspect import isgenerator
from itertools import cycle, islice
from math import inf
from typing import Any, ClassVar, Final, NoReturn

from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Effect,
    Output,
    Process,
    Sleep,
    WaitUntil,
    fill_memory,
)

from . import costs, heap, limits
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
    TooLargeInPython,
    Value,
    YieldedValue,
    type_name,
)

_STEP: Final = 2_000
"""The nanoseconds that a part of the execution takes."""
_COMMAND: Final = 60_000
"""The nanoseconds that a command of a shell takes."""
_ALLOCATED_PER_COMMAND: Final = 9_000
"""The bytes of the values that so many parts make."""
_COMMANDS_PER_PAUSE: Final = 300
_PAUSE: Final = 0.001
"""The time that so many commands take."""
_COUNTED_EVERY: Final = 16 << 20
"""The bytes that are allocated before the memory of all values is counted."""
_COUNTED_AT_ONCE: Final = 32
_REPORTED_FROM: Final = 8 << 20
"""The bytes from which on the values of a script count as memory of its container."""
_NEVER_STORED: Final = 1_000_000_000
"""The length of a text, or the bytes of a number, that Python itself has no memory for."""
_CHUNK: Final = 10_000
_BUFFER: Final = 8192
"""The bytes of output that Python collects if no terminal reads them."""
Evaluator = Callable[[Any, Any, Frame], Value]
_NATIVE_ITERABLES: Final = (list, tuple, str, bytes, bytearray, dict, set, frozenset, range)


_POINTER: Final = 8
"""The bytes of an element of a list."""
_NODE_MEMORY: Final = 8_000_000_000
"""The memory that no container has for one list."""
_MAX_KEY_DEPTH: Final = 100
_MAX_KEY_NODES: Final = 10_000


@contextmanager
def _nested(machine: "Machine") -> AnyIterator[None]:
    if machine.nested >= limits.MAX_NESTED:
        raise error("RecursionError", "maximum recursion depth exceeded")
    machine.nested += 1
    try:
        yield
    finally:
        machine.nested -= 1


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
        self.environment: dict[str, Value] = Environment(process.environment, process.host.ask_variable)
        self.folder = process.directory
        """The folder of the script, from which it imports."""
        self._is_unbuffered = is_unbuffered
        self._output: list[bytes] = []
        self._output_size = 0
        self._work = 0.0
        """The nanoseconds of work for which no time has passed yet."""
        self._commands = 0
        self._allocated = 0.0
        self._counted_at = float(_COUNTED_EVERY)
        self._reported = 0
        self._stacks: dict[int, list[Code]] = {}
        """The parts of each thread and generator that are executed."""
        self._hashes: dict[int, Value] = {}
        self._collisions = 0
        self._facts: dict[tuple[Callable[[Any], Any], ast.AST], Any] = {}
        self.nested = 0
        """The containers within each other that are printed or compared at present."""
        self._is_closed = False

    # --- execution

    def drive(self, execution: Code) -> Generator[Any, Any, Any]:
        """Execute code and what it yields; yield effects."""
        stack = [execution]
        self._stacks[id(stack)] = stack
        try:
            return (yield from self._drive(stack))
        finally:
            del self._stacks[id(stack)]

    def _drive(self, stack: list[Code]) -> Generator[Any, Any, Any]:  # noqa: C901, PLR0912, PLR0915 - the inner loop, fast in one function
        evaluators = self.evaluators
        value: Any = None
        problem: BaseException | None = None
        while True:
            if self._work >= _COMMAND:
                yield from self._pass_time()
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
                self._work += _STEP
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
                self._work += _STEP
                if len(stack) > limits.MAX_PARTS:
                    problem = error("RecursionError", "maximum recursion depth exceeded")
            else:
                value = yield item

    @abstractmethod
    def refuse_feature(self, name: str) -> NoReturn:
        """End the script, as it needs what is not simulated."""

    @abstractmethod
    def refuse(self, node: ast.AST) -> None: ...

    def _pass_time(self) -> Generator[Effect, Any, None]:
        while self._work >= _COMMAND:
            self._work -= _COMMAND
            self._allocated += _ALLOCATED_PER_COMMAND
            self._commands += 1
            yield CommandStart()
            if not self._commands % _COMMANDS_PER_PAUSE:
                yield Sleep(_PAUSE, cores=1.0)
        if self._allocated >= self._counted_at:
            yield from self._count_memory()

    def charge(self, nanoseconds: float) -> None:
        """Count the work of an operation before it is done: the next part of the execution waits for it; refuse what takes too long."""
        if nanoseconds > limits.MAX_WORK:
            raise TooLargeInPython("an operation on values of this size in Python")
        self._work += nanoseconds
        self._allocated += nanoseconds  # at most a byte each

    def pause(self) -> Code:
        """Let the time pass that the charged work takes."""
        return None
        yield

    def fact(self, compute: Callable[[Any], Any], node: ast.AST) -> Any:
        """Return what a function computes of a part of the script, which never changes."""
        key = (compute, node)
        if key not in self._facts:
            self._facts[key] = compute(node)
        return self._facts[key]

    def check_length(self, length: int) -> None:
        """Refuse a text, or a number of so many bytes, that is too long to be stored."""
        if length >= _NEVER_STORED:
            raise error("MemoryError")
        if length > limits.MAX_STORED:
            raise TooLargeInPython(f"a value of {length} bytes in Python")

    def nest(self) -> AbstractContextManager[None]:
        """Go one level deeper into a value; raise the script's `RecursionError` where Python does."""
        return _nested(self)

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

    def _count_memory(self) -> Generator[Effect, Any, None]:
        """Count the memory of all values, as the memory of the container; refuse a script whose values take more than this process may have."""
        self._allocated = total = 0
        roots = [*self._stacks.values(), self.modules, self.handlers, self._hashes, self.environment]
        for index, size in enumerate(heap.sizes(roots)):
            total += size
            if total > limits.MAX_HEAP:
                break
            if not index % _COUNTED_AT_ONCE:
                yield CommandStart()
        self._counted_at = float(max(_COUNTED_EVERY, total))
        if total > _REPORTED_FROM or self._reported:
            host = self.process.host
            change, self._reported = total - self._reported, total
            self.process.processes.keep(change)
            host.memory.change(change, self.process.processes.current_pid(), host.elapsed)
        if total > limits.MAX_HEAP:
            raise TooLargeInPython(
                f"a script in Python whose values take more than {limits.MAX_HEAP >> 20} MiB"
            )

    def bulk(self, unit: Value, length: int, *, is_exact: bool = True) -> Code:
        """Return a long text or list of which only a part is stored; the container's memory holds all of it."""
        if length > limits.MAX_MEMORY:
            raise error("MemoryError")
        size = length * _POINTER if isinstance(unit, list) else length
        yield self.fill(size)
        return BulkText(unit, length, lambda: self._release(size), is_exact=is_exact)

    def _release(self, size: int) -> None:
        if not self._is_closed:
            host = self.process.host
            host.memory.change(-size, self.process.processes.current_pid(), host.elapsed)

    def check_size(self, count: int) -> Code:
        """End the container if a list or the like would have more elements than a node has memory for; refuse what is too large to be stored."""
        if count > limits.MAX_ELEMENTS:
            yield self.fill(inf if count * _POINTER >= _NODE_MEMORY else count * _POINTER)
            raise TooLargeInPython(f"a container of {count} elements in Python")
        return None

    def grow_on(self, factor: float) -> Code:
        """Let what a loop has filled, and too large to be stored, grow by a factor: it ends the container that has less memory."""
        if factor == inf:
            yield self.fill(inf)
        elif factor > 1.0:
            size = max(self._reported, limits.MAX_ELEMENTS * _POINTER)
            yield self.fill(size * (factor - 1.0))
        return None

    # --- keys of dictionaries and sets

    def key(self, value: Value) -> Value:
        """Return a key of a dictionary or a set; refuse one whose hash does not take bounded time, or is not what this process has for it."""
        if not costs.has_distinct_hash(value):
            self._check_key(value)
            code = hash(value)
            known = self._hashes.get(code, END)
            if known is END:
                if len(self._hashes) >= _CHUNK:
                    self._hashes.clear()
                self._hashes[code] = value
            elif known is not value and known != value:
                self._collisions += 1
                if self._collisions > limits.MAX_COLLISIONS:
                    self.refuse_feature("a dictionary or a set in Python whose keys have the same hash")
        return value

    def _check_key(self, value: Value) -> None:
        """Charge what the hash of a key costs: it is that of all values in it, each time, and nests on the stack."""
        level, count = [value], 0
        for _ in range(_MAX_KEY_DEPTH):
            following: list[Value] = []
            for item in level:
                if isinstance(item, (tuple, frozenset)):
                    count += len(item) + 1
                    self.charge(costs.NODE * len(item))
                    following += item
                elif isinstance(item, Instance):
                    if item.cls.find("__eq__") is not None or item.cls.find("__hash__") is not None:
                        self.refuse_feature("a key in Python with a method __eq__ or __hash__")
                else:
                    self.charge(costs.size(item) / 8)
            if not following:
                return
            if count > _MAX_KEY_NODES:
                break
            level = following
        self.refuse_feature("a key of this size in Python")

    def close(self) -> None:
        self._is_closed = True

    # --- output

    def write(self, descriptor: int, text: str, *, flushes: bool = False) -> Code:
        if descriptor != 1:
            yield Output(descriptor, text.encode("utf-8", "backslashreplace"))
            return None
        if text:
            self._output.append(text.encode("utf-8", "surrogateescape"))
            self._output_size += len(text)
        is_terminal = self.process.host.has_terminal and "\n" in text
        if flushes or self._is_unbuffered or is_terminal or self._output_size >= _BUFFER:
            yield self.flush()
        return None

    def unbuffer(self) -> None:
        self._is_unbuffered = True

    def flush(self) -> Code:
        if self._output:
            data = b"".join(self._output)
            self._output, self._output_size = [], 0
            yield Output(1, data)
        return None

    # --- iteration

    def iterate(self, value: Value) -> Code:
        """Return an iterator; raise the script's `TypeError` for what cannot be iterated over."""
        if isinstance(value, (Iterator, GeneratorObject)):
            return value
        if isinstance(value, BulkText):
            if isinstance(value.unit, list):
                return islice(cycle(value.unit), value.length)
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
        if self.resumed > limits.MAX_GENERATORS:
            self.refuse_feature(
                f"Python with more than {limits.MAX_GENERATORS} generators that read from each other"
            )
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

    def collect(self, value: Value) -> Code:
        """Return a list of what an iterable yields."""
        values: list[Value] = []
        if isinstance(value, _NATIVE_ITERABLES) and not isinstance(value, DefaultDict):
            yield self.check_size(len(value))
            if isinstance(value, (list, tuple)):
                self.charge(costs.ELEMENT * len(value))
                return list(value)
            iterator = iter(value)
            while chunk := list(islice(iterator, _CHUNK)):
                self.charge(costs.NODE * len(chunk))
                values += chunk
                yield self.pause()
            return values
        iterator = yield self.iterate(value)
        while (item := (yield self.advance(iterator))) is not END:
            values.append(item)
            if len(values) > limits.MAX_ELEMENTS:
                yield self.check_size(len(values))
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
        """Return a long text, or a list, itself; refuse one that is too long, or of which only the length is known."""
        unit = value.unit
        if not value.is_exact:
            self.refuse_feature(f"the contents of a value of {value.length} bytes in Python")
        if isinstance(unit, list):
            if value.length > limits.MAX_ELEMENTS:
                raise TooLargeInPython(f"this operation on a list of {value.length} elements in Python")
        else:
            self.check_length(value.length)
        self.charge(costs.CHARACTER * value.length)
        return (unit * (value.length // max(len(unit), 1) + 1))[: value.length]
