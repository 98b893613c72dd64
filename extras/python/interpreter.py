"""The interpreter of simulated Python scripts: modules, classes, tracebacks, and the run of a script to its end."""

import ast
import difflib
import sys
import traceback
import warnings
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from typing import ClassVar, Final, NoReturn

from mockube.component_base.python_source import parse
from mockube.container_runtime.simulated.shell.process import Run, WaitUntil

from . import costs, source, syntax
from .builtins import FUNCTIONS, HIDDEN_TYPES, types
from .errors import ERRORS, PythonError, Stop, error, error_line, trace_lines
from .expressions import EXPRESSIONS
from .machine import Evaluator
from .source import SourceTooLong
from .statements import STATEMENTS, Statements
from .values import (
    Builtin,
    Code,
    DefaultDict,
    ErrorInstance,
    Frame,
    Instance,
    Module,
    NativeType,
    NotSimulatedInPython,
    PyClass,
    Scope,
    SourceFile,
    Value,
    type_name,
)

_CAUSE: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"
_MAX_CHAIN: Final = 20
_TOKEN: Final = 3_000
"""The nanoseconds in which a token is parsed."""
_SCANNED: Final = 500_000
"""The nanoseconds between two steps of the division of a script."""
_MAX_SUGGESTED: Final = 40
_MAX_COMPARED_NAMES: Final = 300
_MARKS_SINCE: Final = (3, 11)
ModuleMaker = Callable[["PythonInterpreter"], dict[str, Value]]


class PythonInterpreter(Statements):
    evaluators: ClassVar[Mapping[type, Evaluator]] = EXPRESSIONS | STATEMENTS

    makers: ClassVar[dict[str, "ModuleMaker | str"]] = {}
    """The simulated modules: what makes their members, or their source."""
    is_plain_image = False
    """Whether the image is Python's own, in which nobody has installed packages."""

    def start(self) -> None:
        self.plain_class = PyClass("object", (), {}, "builtins")
        own_types = types()
        self._classes = {
            cls.host: cls for cls in own_types.values() if isinstance(cls.host, type) and cls.name != "object"
        }
        self.type_class = own_types["type"]
        self.builtins |= {name: Builtin(name, function) for name, function in FUNCTIONS.items()}
        self.builtins |= {name: cls for name, cls in own_types.items() if name not in HIDDEN_TYPES}
        self.builtins |= {name: cls for name, cls in ERRORS.items() if cls.module == "builtins"}
        self.builtins |= {"NotImplemented": NotImplemented, "Ellipsis": Ellipsis, "__debug__": True}
        for name, host in (("Counter", Counter), ("OrderedDict", OrderedDict), ("deque", deque)):
            self._classes[host] = NativeType(f"collections.{name}", host, FUNCTIONS["eval"])
        for moment_type in (datetime, date, time, timedelta, timezone):
            self._classes.setdefault(
                moment_type, NativeType(f"datetime.{moment_type.__name__}", moment_type, FUNCTIONS["eval"])
            )
        self._classes[DefaultDict] = NativeType("collections.defaultdict", DefaultDict, FUNCTIONS["eval"])

    def host_iterables(self) -> tuple[type, ...]:
        return (deque, type({}.keys()), type({}.values()), type({}.items()))

    def register_type(self, cls: NativeType) -> NativeType:
        if isinstance(cls.host, type):
            self._classes[cls.host] = cls
        return cls

    def class_of(self, value: Value) -> Value:
        if isinstance(value, Instance):
            return value.cls
        if isinstance(value, (PyClass, NativeType)):
            return self.type_class
        return self._classes.get(type(value)) or NativeType(type_name(value), type(value), FUNCTIONS["eval"])

    def base_class(self, base: Value) -> PyClass:
        if not isinstance(base, PyClass):
            if isinstance(base, NativeType):
                self.refuse_feature(f"a subclass of Python's {base.name}")
            raise error("TypeError", f"'{type_name(base)}' object cannot be a base class")
        return base

    def finish_class(self, cls: PyClass) -> Code:
        hook = next(
            (base.namespace["__finish__"] for base in cls.order[1:] if "__finish__" in base.namespace), None
        )
        if hook is not None:
            yield self.call(hook, [cls])
        return None

    # --- what is not simulated

    def refuse_feature(self, name: str) -> NoReturn:
        raise NotSimulatedInPython(name)

    def refuse(self, node: ast.AST) -> None:
        names = {"AsyncFunctionDef": "asynchronous functions", "Match": "match", "TryStar": "except*"}
        kind = type(node).__name__
        self.refuse_feature(f"Python's {names.get(kind, kind)}")

    def refuse_member(self, module: Module, name: str) -> None:
        if module.name in self.makers:
            self.refuse_feature(f"Python's {module.name}.{name}")
        raise error("AttributeError", f"module '{module.name}' has no attribute '{name}'")

    # --- modules

    def import_module(self, name: str) -> Code:
        module: Module | None = None
        full_name = ""
        for part in name.split("."):
            full_name = f"{full_name}.{part}" if full_name else part
            outer, module = module, self.modules.get(full_name)
            if module is None:
                module = yield self._load_module(full_name)
            if outer is not None:
                outer.members[part] = module
        return module

    def _load_module(self, name: str) -> Code:
        file = f"{self.folder.rstrip('/')}/{name.replace('.', '/')}.py"
        files = self.process.host.files
        maker = self.makers.get(name)
        if maker is None and files.exists(file):
            text = files.read(file).decode("utf-8", "replace")
            module = self.modules[name] = Module(name, {"__name__": name, "__file__": file})
            try:
                yield self.run_module(name, SourceFile(file, text), text, module.members)
            except Exception:
                self.modules.pop(name, None)
                raise
            return module
        if maker is None:
            self._refuse_module(name)
        module = self.modules[name] = Module(name, {"__name__": name})
        if isinstance(maker, str):
            yield self.run_module(
                name, SourceFile(f"{name}.py", "", has_lines=False, is_library=True), maker, module.members
            )
        elif maker is not None:
            module.members.update(maker(self))
        return module

    def _refuse_module(self, name: str) -> NoReturn:
        """Raise what an import of a module that is not simulated ends with: the error of Python, if its image has no such module."""
        outer = name.partition(".")[0]
        is_known = outer in sys.stdlib_module_names
        if not is_known and self.is_plain_image and "PYTHONPATH" not in self.process.environment:
            problem = error("ModuleNotFoundError", f"No module named '{name}'")
            problem.value.fields["name"] = name
            raise problem
        raise NotSimulatedInPython(f"the Python module {outer if not is_known else name}")

    def member(self, module: Module, name: str) -> Code:
        if name in module.members:
            return module.members[name]
        if f"{module.name}.{name}" in self.makers:
            return (yield self.import_module(f"{module.name}.{name}"))
        if module.name in self.makers:
            self.refuse_feature(f"Python's {module.name}.{name}")
        place = module.members.get("__file__", "unknown location")
        raise error("ImportError", f"cannot import name '{name}' from '{module.name}' ({place})")

    def run_module(self, name: str, file: SourceFile, text: str, variables: dict[str, Value]) -> Code:
        tree = yield self._parse(text, file)
        variables.setdefault("__name__", name)
        variables.setdefault("__doc__", ast.get_docstring(tree))
        frame = Frame("<module>", file, Scope(variables), variables)
        try:
            yield self.block(tree.body, frame)
        except PythonError as problem:
            problem.pass_frame(frame)
            raise
        return None

    # --- tracebacks

    def traceback(self, value: ErrorInstance) -> Code:
        parts = []
        current: ErrorInstance | None = value
        for _ in range(_MAX_CHAIN):
            if current is None:
                break
            text = yield self._traceback_of(current)
            inner = current.cause or (None if current.hides_context else current.context)
            link = _CAUSE if current.cause else _CONTEXT
            parts.append((link if inner is not None else "") + text)
            current = inner
        return "".join(reversed(parts))

    def _traceback_of(self, value: ErrorInstance) -> Code:
        if value.syntax_text:
            return value.syntax_text
        text = yield self.text(value)
        lines = ["Traceback (most recent call last):\n"] if value.trace else []
        length = len(text)
        for line in trace_lines(value, marks=self.version >= _MARKS_SINCE):
            lines.append(line)
            length += len(line)
            self.check_length(length)
            self.charge(costs.CONVERTED * len(line))
            yield self.pause()
        hint = self._suggestion(value) if self.version >= (3, 10) else ""
        return f"{''.join(lines)}{error_line(value, text + hint)}"

    def _parse(self, text: str, file: SourceFile) -> Code:
        """Parse a script part by part; raise the error of Python for one that is invalid."""
        tree = ast.Module(body=[], type_ignores=[])
        try:
            for part in source.parts(text):
                if part is None:
                    self.charge(_SCANNED)
                else:
                    self.charge(_TOKEN * part.tokens)
                    statements = _parsed(part.text, file.name)
                    outside = syntax.misplaced(statements)
                    if outside is not None:
                        raise _invalid(outside[0], outside[1], text, file.name)
                    tree.body += statements
                yield self.pause()
        except SourceTooLong:
            self.refuse_feature(f"Python's {file.name}, which is too long,")
        return tree

    @staticmethod
    def _suggestion(value: ErrorInstance) -> str:
        name = value.fields.get("name")
        if value.cls is not ERRORS["NameError"] or not isinstance(name, str) or len(name) > _MAX_SUGGESTED:
            return ""
        names = [
            other
            for other in value.visible_names[:_MAX_COMPARED_NAMES]
            if isinstance(other, str) and other != name and abs(len(other) - len(name)) <= len(name) // 2 + 1
        ]
        matches = difflib.get_close_matches(name, names, 1, 0.7)
        if matches:
            return f". Did you mean: '{matches[0]}'?"
        return f". Did you forget to import '{name}'?" if name in sys.stdlib_module_names else ""

    # --- the run of a script

    def run_script(self, file: SourceFile, text: str, variables: dict[str, Value]) -> Run:
        """Run a script to its end; return the exit code."""
        self.modules["__main__"] = Module("__main__", variables)
        try:
            execution: Run = self.drive(self._main(file, text, variables))
            code = yield from execution
        except Stop as stop:
            code = stop.code
        except PythonError:  # of what runs at the end
            code = 1
        finally:
            self.close()
        return code

    def _main(self, file: SourceFile, text: str, variables: dict[str, Value]) -> Code:
        code = 0
        try:
            yield self.run_module("__main__", file, text, variables)
        except PythonError as problem:
            code = yield self._report_safely(problem.value)
        except NotSimulatedInPython:
            yield self.flush()
            raise
        for thread in self.threads:
            if not thread.is_daemon:
                yield WaitUntil(thread.has_ended)
        yield self.flush()
        return code

    def _report_safely(self, value: ErrorInstance) -> Code:
        """Print an error; its text may be that of a method that fails itself."""
        try:
            return (yield self.report(value))
        except PythonError:
            yield self.write(2, f"{value.cls.full_name}: <exception str() failed>\n")
            return 1

    def report(self, value: ErrorInstance) -> Code:
        """Print an error that nothing handles, as Python does at its end; return the exit code."""
        if ERRORS["SystemExit"] in value.cls.order:
            code = value.fields.get("code")
            if code is None or isinstance(code, int):
                return int(code or 0) % 256
            text = yield self.text(code)
            yield self.write(2, f"{text}\n")
            return 1
        yield self.flush()
        text = yield self.traceback(value)
        yield self.write(2, text)
        return 130 if ERRORS["KeyboardInterrupt"] in value.cls.order else 1


def _parsed(text: str, name: str) -> list[ast.stmt]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse(text, name).body
    except SyntaxError as problem:
        raise _syntax_error(problem) from None
    except (ValueError, RecursionError, MemoryError) as problem:
        raise error("SyntaxError", str(problem) or "too many nested parentheses") from None


def _invalid(message: str, node: ast.stmt | ast.expr, text: str, name: str) -> PythonError:
    line, end = text.splitlines()[node.lineno - 1], (node.end_col_offset or 0) + 1
    return _syntax_error(
        SyntaxError(message, (name, node.lineno, node.col_offset + 1, line, node.end_lineno, end))
    )


def _syntax_error(problem: SyntaxError) -> PythonError:
    if isinstance(problem, IndentationError) and problem.msg.startswith("expected an indented block"):
        problem.end_offset = problem.offset
    result = error("SyntaxError", problem.msg)
    result.value.syntax_text = "".join(traceback.format_exception_only(problem))
    result.value.trace.clear()
    return result
