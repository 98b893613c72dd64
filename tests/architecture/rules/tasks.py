"""Rule: asyncio tasks are started only by supervisors and in a few listed files, so that no error is lost."""

import ast
from collections.abc import Iterator, Mapping

from tests.architecture.source import Finding, Module

FORBIDDEN = frozenset({"create_task", "ensure_future", "run_coroutine_threadsafe"})

ALLOWED: Mapping[str, str] = {
    "component_base/supervision.py": "its callers wait for the tasks that it starts",
    "component_base/task_supervisor.py": "it supervises the tasks of the server",
    "apiserver/customresources/controller.py": "its group raises what a clean-up raises in a supervised task",
    "apiserver/http/server.py": "its group raises what an acceptor raises in a supervised task; a handshake ends its connection",
    "apiserver/http/exchanges.py": "it waits for both directions of a tunnel, which ends with either",
    "apiserver/http/streams.py": "it listens to the client of one watch, and ends that watch however it ends",
    "apiserver/request/watch.py": "the request waits for its task, and ends as it does",
    "apiserver/request/past.py": "the requests for a moment wait for its server, and get the error of making it",
    "etcd/embedded/store.py": "it hands what its tasks raise to `supervise`, a task of the server",
    "etcd/embedded/group_commit.py": "it hands what its task raises to the store, and to whoever waits for a write",
    "etcd/remote/watch.py": "it hands what its tasks raise to the reader of the watch",
    "mockube/history/differences.py": "its group raises what a list raises to the command",
    "mockube/importing/importer.py": "its group raises what a worker raises to the command",
    "mockube/embedded/direct.py": "one task for each request, whose answer or error the caller waits for",
    "mockube/embedded/running_fork.py": "it hands what is raised to the caller of each call",
    "mockube/embedded/determinism.py": "it hands what is raised to the caller of each call, and holds the task that lets time pass",
    "mockube/embedded/background_loop.py": "it hands what is raised to the thread that waits",
    "mockube/objects/watching.py": "the reader of the events waits for the task that reads the next one",
    "mockube/processes/control_plane.py": "an import, whose result the caller waits for",
    "mockube/processes/child_processes.py": "it waits for the tasks itself",
}
"""Which file may start tasks, and why. An entry that is no longer needed is an error, too."""


def check(module: Module, allowed: Mapping[str, str] = ALLOWED) -> Iterator[Finding]:
    if module.path not in allowed:
        yield from starts(module)


def starts(module: Module) -> Iterator[Finding]:
    """Yield the starts of tasks, also under an alias and through any object: a loop, a group, a module."""
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN:
            yield Finding(node.lineno, f"starts a task by {node.attr}: let it be supervised")
        elif isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} & FORBIDDEN:
            yield Finding(node.lineno, "imports what starts a task: let it be supervised")
        elif isinstance(node, ast.Call) and _name(node.func) == "Task":
            yield Finding(node.lineno, "starts a task by its class: let it be supervised")


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
