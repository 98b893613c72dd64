"""The errors of simulated Python scripts: their classes, what the interpreter raises itself, and tracebacks as Python prints them."""

import ast
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from mockube.container_runtime.simulated.shell.memory import OutOfMemory
from mockube.container_runtime.simulated.shell.outside import OutsideAnswer
from mockube.container_runtime.simulated.shell.process import BrokenPipe, UnknownProgram
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .values import ErrorInstance, Frame, PyClass, SourceFile, Value, with_type_names

_MAX_TRACE: Final = 2_000
"""The frames of a traceback, which grows each time its error is raised."""
_MAX_SHOWN: Final = 3
"""The times that Python shows one line of a recursion."""

_HIERARCHY: Final = """
BaseException:Exception SystemExit KeyboardInterrupt GeneratorExit
Exception:ArithmeticError AssertionError AttributeError BufferError EOFError ImportError LookupError MemoryError NameError OSError
Exception:ReferenceError RuntimeError StopIteration StopAsyncIteration SyntaxError SystemError TypeError ValueError Warning
ArithmeticError:FloatingPointError OverflowError ZeroDivisionError
LookupError:IndexError KeyError
NameError:UnboundLocalError
ImportError:ModuleNotFoundError
OSError:BlockingIOError ChildProcessError ConnectionError FileExistsError FileNotFoundError InterruptedError IsADirectoryError
OSError:NotADirectoryError PermissionError ProcessLookupError TimeoutError
ConnectionError:BrokenPipeError ConnectionAbortedError ConnectionRefusedError ConnectionResetError
RuntimeError:NotImplementedError RecursionError
SyntaxError:IndentationError
ValueError:UnicodeError
UnicodeError:UnicodeDecodeError UnicodeEncodeError
Warning:DeprecationWarning FutureWarning RuntimeWarning SyntaxWarning UserWarning
"""


def _error_classes() -> dict[str, PyClass]:
    classes = {"BaseException": PyClass("BaseException", (), {}, "builtins")}
    for line in _HIERARCHY.split("\n"):
        base, _, names = line.partition(":")
        for name in names.split():
            classes[name] = PyClass(name, (classes[base],), {}, "builtins")
    classes["IOError"] = classes["EnvironmentError"] = classes["OSError"]
    classes["JSONDecodeError"] = PyClass("JSONDecodeError", (classes["ValueError"],), {}, "json.decoder")
    classes["StatisticsError"] = PyClass("StatisticsError", (classes["ValueError"],), {}, "statistics")
    classes["queue.Empty"] = PyClass("Empty", (classes["Exception"],), {}, "_queue")
    classes["gaierror"] = PyClass("gaierror", (classes["OSError"],), {}, "socket")
    return classes


ERRORS: Final = _error_classes()
ERRNO: Final[Mapping[str, tuple[int, str]]] = {
    "Connection refused": (111, "ConnectionRefusedError"),
    "Connection timed out": (110, "TimeoutError"),
    "Connection reset by peer": (104, "ConnectionResetError"),
    "Broken pipe": (32, "BrokenPipeError"),
    "No such file or directory": (2, "FileNotFoundError"),
    "Permission denied": (13, "PermissionError"),
    "File exists": (17, "FileExistsError"),
    "Not a directory": (20, "NotADirectoryError"),
    "Is a directory": (21, "IsADirectoryError"),
    "No space left on device": (28, "OSError"),
    "Read-only file system": (30, "OSError"),
    "Directory not empty": (39, "OSError"),
}


class Stop(Exception):
    """`os._exit`, or the end of a thread's process."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class PythonError(Exception):
    """An error of a script, on its way to what handles it."""

    def __init__(self, value: ErrorInstance) -> None:
        super().__init__()
        self.value = value
        self.frame: Frame | None = None
        """The frame that was added to the traceback last."""

    def pass_frame(self, frame: Frame) -> None:
        """Add a frame, through which the error passes, to the traceback."""
        if self.frame is not frame and not frame.file.is_library and len(self.value.trace) < _MAX_TRACE:
            self.value.trace.insert(0, (frame.name, frame.file, frame.node))
            self.frame = frame


def error(name: str, *arguments: Value) -> PythonError:
    return PythonError(ErrorInstance(ERRORS[name], arguments))


def system_error(message: str, path: str) -> PythonError:
    """Return the error of a system call by its message."""
    number, name = ERRNO.get(message, (5, "OSError"))
    problem = error(name, number, message)
    problem.value.fields |= {"errno": number, "strerror": message, "filename": path}
    return problem


def missing_variable(name: Value, version: tuple[int, ...]) -> PythonError:
    """Return the error of `os.environ[name]`, whose traceback has a line of the library."""
    problem = error("KeyError", name)
    lines = {8: 675, 9: 679, 10: 680, 11: 679, 12: 685, 13: 716}
    line = lines.get(version[1], 716)
    path = "<frozen os>" if version >= (3, 11) else f"/usr/local/lib/python{version[0]}.{version[1]}/os.py"
    file = SourceFile(path, "\n" * (line - 1) + "raise KeyError(key) from None", has_lines=version < (3, 11))
    problem.value.trace.append(("__getitem__", file, ast.Pass(lineno=line, col_offset=0)))
    problem.value.hides_context = True
    return problem


def is_host_error(problem: BaseException) -> bool:
    """Return whether an error is that of an operation, and not one of the script or of the container."""
    return not isinstance(
        problem, (PythonError, UnknownProgram, OutsideAnswer, OutOfMemory, BrokenPipe, Stop)
    )


def converted(problem: BaseException) -> PythonError:
    """Return the script's error for one that an operation on numbers, texts or containers raises."""
    if isinstance(problem, FileError):
        return system_error(str(problem), "")
    names = [cls.__name__ for cls in type(problem).__mro__]
    name = next((name for name in names if name in ERRORS), "RuntimeError")
    arguments = problem.args
    if isinstance(problem, RecursionError):
        arguments = ("maximum recursion depth exceeded",)
    elif name == "TypeError":
        arguments = (with_type_names(str(problem), ()),)
    elif name in ("JSONDecodeError", "UnicodeDecodeError", "UnicodeEncodeError"):
        arguments = (str(problem),)
    return error(name, *arguments)


# --- tracebacks


def error_line(value: ErrorInstance, text: str) -> str:
    """Return the last line of a traceback; `text` is what `str` returns for the error."""
    return f"{value.cls.full_name}: {text}\n" if text else f"{value.cls.full_name}\n"


def trace_lines(value: ErrorInstance, *, marks: bool) -> Iterator[str]:
    """Yield the lines of the frames; `marks` is whether the expressions are underlined, as Python does since 3.11."""
    for (name, file, line), frames in groupby(
        value.trace, lambda entry: (entry[0], entry[1], getattr(entry[2], "lineno", 1))
    ):
        nodes = [node for _, _, node in frames]
        for node in nodes[:_MAX_SHOWN]:
            yield f'  File "{file.name}", line {line}, in {name}\n'
            yield from _source_lines(file, node, line, marks=marks)
        if (hidden := len(nodes) - _MAX_SHOWN) > 0:
            yield f"  [Previous line repeated {hidden} more time{'s' if hidden > 1 else ''}]\n"


def _source_lines(file: SourceFile, node: Any, line: int, *, marks: bool) -> Iterator[str]:
    if not 0 < line <= len(file.lines):
        return
    text = file.lines[line - 1]
    stripped = text.strip()
    yield f"    {stripped}\n"
    if not marks or node is None or not hasattr(node, "end_col_offset"):
        return
    start = len(text.encode()[: node.col_offset].decode("utf-8", "replace"))
    end = len(text.rstrip())
    if node.end_lineno == node.lineno:
        end = len(text.encode()[: node.end_col_offset].decode("utf-8", "replace"))
    indent = len(text) - len(text.lstrip())
    underline = _underline(node, text, start, end)
    if (start - indent, end - indent) == (0, len(stripped)) and "~" not in underline:
        return
    yield f"    {' ' * (start - indent)}{underline}\n"


def _underline(node: Any, text: str, start: int, end: int) -> str:
    """Return the marks below an expression: `^`, or `~` beside an operator or an index."""
    if getattr(node, "end_lineno", 0) == getattr(node, "lineno", 0):
        if isinstance(node, ast.BinOp):
            left = node.left.end_col_offset or 0
            operator = left + len(text[left:]) - len(text[left:].lstrip(" )"))
            width = 2 if text[operator : operator + 2] in ("**", "//", "<<", ">>") else 1
            return "~" * (operator - start) + "^" * width + "~" * (end - operator - width)
        if isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Constant):
            left = node.value.end_col_offset or 0
            return "~" * (left - start) + "^" * (end - left)
    return "^" * (end - start)
