"""Find what starts a task, a group of tasks or a thread in the product, and the functions that the event loop calls.

Work that its caller awaits at once, such as by `asyncio.gather` and `asyncio.to_thread`, raises its error there like any
other call, so it is not a start.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator

from tests.architecture.source import Module, module

CALLS = frozenset(
    {
        *("create_task", "ensure_future", "run_coroutine_threadsafe", "TaskGroup"),
        *("Thread", "ThreadPoolExecutor", "ProcessPoolExecutor", "run_in_executor", "DiskThread"),
        *("start_in", "run_all"),
    }
)
"""Functions and classes whose call is a start, under any object."""
METHODS = frozenset({"_spawn"})
"""Of a store."""
CALLBACKS = frozenset(
    {
        *("call_later", "call_soon", "call_soon_threadsafe", "call_at", "add_done_callback"),
        *("add_reader", "add_writer", "add_signal_handler"),
    }
)
"""Functions that let the event loop call a function, whose error it would only log."""
CANNOT_FAIL = frozenset({"set", "discard", "cancel"})
"""Methods of events, sets, tasks and timers."""
SUPERVISED = frozenset({"start", "start_in", "run_all", "supervisor.start"})
"""Calls that say who supervises the task: the supervision of the manager or of the server."""


def starts(of: Module) -> Iterator[tuple[int, str]]:
    """Yield line and site of each start of a task, a group or a thread.

    A site is the file, the function, the call and the name of the task, as in `a.py::run create_task 'work'`. If a function
    has several of them, a number follows from the second one on.
    """
    return _sites(of, _is_start)


def callbacks(of: Module) -> Iterator[tuple[int, str]]:
    """Yield line and site of each function that the event loop calls, unless it is one that cannot fail."""
    return _sites(of, _is_callback)


def is_supervised(site: str) -> bool:
    """Return whether the call itself says who supervises the task."""
    return site.partition(" ")[2].partition(" ")[0] in SUPERVISED


def has_test(name: str) -> bool:
    """Return whether a test of this name exists: `tests/FILE.py::test_function`."""
    path, _, function = name.partition("::")
    try:
        tree = module(path).tree
    except FileNotFoundError:
        return False
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
        for node in ast.walk(tree)
    )


def _sites(of: Module, is_wanted: Callable[[ast.Call], bool]) -> Iterator[tuple[int, str]]:
    counts = Counter[str]()
    for function, call in _calls(of.tree, ""):
        if is_wanted(call):
            site = f"{of.path}::{function} {_callee(call.func)}{_task_name(call)}"
            counts[site] += 1
            yield call.lineno, site if counts[site] == 1 else f"{site} {counts[site]}"


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield function, child
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _calls(child, child.name if is_function else function)


def _callee(function: ast.expr) -> str:
    """Return the last name of the function, after `supervisor` if that is its owner."""
    if not isinstance(function, ast.Attribute):
        return getattr(function, "id", "")
    owner = function.value
    owner_name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return f"{'supervisor.' if owner_name == 'supervisor' else ''}{function.attr}"


def _task_name(call: ast.Call) -> str:
    """Return the name that the call gives to the task, quoted, after a space; an f-string's fields are left out."""
    for value in (*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "name")):
        parts = value.values if isinstance(value, ast.JoinedStr) else [value]
        texts = [part.value if isinstance(part, ast.Constant) else "*" for part in parts]
        if all(isinstance(text, str) for text in texts) and texts != ["*"]:
            return f" {''.join(texts)!r}"
    return ""


def _is_start(call: ast.Call) -> bool:
    """`start` is also a method of matches and threads: only as a function, or of a supervisor, does it start a task."""
    callee = _callee(call.func)
    name = callee.removeprefix("supervisor.")
    is_method = isinstance(call.func, ast.Attribute)
    return (
        name in CALLS
        or callee == "supervisor.start"
        or (callee in METHODS if is_method else callee == "start")
    )


def _is_callback(call: ast.Call) -> bool:
    arguments = [argument for argument in call.args if isinstance(argument, ast.Attribute)]
    return _callee(call.func) in CALLBACKS and not any(argument.attr in CANNOT_FAIL for argument in arguments)
