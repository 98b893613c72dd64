"""Write docs/reference/python.md: the Python API, from the signatures and docstrings of the code.

make python-api
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from mockube import launch
from mockube.apimachinery.schema import minors
from mockube.component_base.python_source import parse
from mockube.exploration.plans import PLANS
from mockube.objects.arguments import TIMEOUT

PACKAGE = Path(__file__).parents[1] / "mockube"
PAGE = PACKAGE.parent / "docs/reference/python.md"
FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

OPENING = """# Python API

This page is generated from the code by `make python-api`. [The guide](../guides/testing.md) shows how to use it in tests.

`mockube.Cluster` starts a cluster in your process, the pytest fixture `mockube` returns one, and `mockube.connect` connects to a
cluster that runs already. All three have the methods of [Objects](#objects). Import the names of this page from `mockube`."""
AWAITED = """`async with Cluster()` and `async with connect()` return an `AsyncCluster` or `AsyncConnection`: they have the same methods
as coroutines. `cluster.awaited` is one for a cluster that runs."""
FORKED = """`Cluster.fork` returns it, and `async with cluster.fork()` an `AsyncForkedCluster`. It has the methods of a `Cluster` but `start`;
see [the guide](../guides/fork.md)."""
ALIASES = """In signatures, `Object` is a dict as in JSON; `OneObject` is a dict or a model of a client library; `Manifests` are
objects: a dict, a model, YAML or JSON as a text, a path, or several of these; `Condition` is a str or a function of the object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    title: str
    file: str
    name: str
    """The class or function."""
    lead: str = ""
    """Text before the members."""


SECTIONS = (
    Section(title="`Cluster`", file="cluster.py", name="Cluster", lead=AWAITED),
    Section(
        title="Requests, faults and clients of a `Cluster`", file="embedded/handle.py", name="ClusterHandle"
    ),
    Section(title="More clients of a `Cluster`", file="embedded/handle.py", name="BlockingClients"),
    Section(title="`ForkedCluster`", file="forked_cluster.py", name="ForkedCluster", lead=FORKED),
    Section(title="Objects", file="objects/blocking.py", name="ObjectMethods", lead=ALIASES),
    Section(title="`connect`", file="connection.py", name="connect"),
    Section(title="`Connection`", file="connection.py", name="Connection"),
    Section(title="`explore`", file="exploration/api.py", name="explore"),
    Section(title="`replay_finding`", file="exploration/api.py", name="replay_finding"),
    Section(title="The result of `explore`", file="exploration/api.py", name="ExplorationReport"),
    Section(title="`ExecResult`", file="objects/exec.py", name="ExecResult"),
    Section(title="The result of `port_forward`", file="objects/port_forward.py", name="PortForward"),
    Section(title="The result of `inject`", file="embedded/handle.py", name="Fault"),
    Section(title="An entry of `calls`", file="apiserver/control/recorder.py", name="RecordedCall"),
    Section(title="The criteria of `calls` and `inject`", file="embedded/criteria.py", name="Criteria"),
    Section(title="`WaitFailed`", file="objects/errors.py", name="WaitFailed"),
    Section(title="`KindNotServed`", file="objects/errors.py", name="KindNotServed"),
    Section(title="`NotStarted`", file="embedded/handle.py", name="NotStarted"),
    Section(title="The fixture `mockube`", file="testing.py", name="mockube"),
    Section(title="The fixture `async_mockube`", file="testing.py", name="async_mockube"),
    Section(title="The fixture `mockube_fork`", file="testing.py", name="mockube_fork"),
    Section(title="The fixture `mockube_factory`", file="testing.py", name="mockube_factory"),
)
ERRORS = """## Errors of the API server

Errors that the API server returns are subclasses of `ApiError`: `NotFound`, `AlreadyExists`, `Conflict`, `Invalid`, `Forbidden` and
others. `message` is the server's message, and `code` the HTTP status code. An argument of a wrong type is a `TypeError`, a wrong value
a `ValueError`, and a missing file a `FileNotFoundError`."""
CONSTANTS = {
    "NODES": str(launch.NODES),
    "PLANS": str(PLANS),
    "PACKS": f'"{launch.PACKS}"',
    "TIMEOUT": f"{TIMEOUT:g}",
    "minors.NEWEST": f'"{minors.NEWEST}"',
}
MAX_LINE = 110
HIDDEN = frozenset({"open", "close", "add_notes"})
"""Methods of results that users do not call."""


def page() -> str:
    parts = [part for section in SECTIONS for part in _section(section)]
    return "\n\n".join((OPENING, *parts, ERRORS)) + "\n"


def _section(section: Section) -> Iterator[str]:
    node = _definition(section.file, section.name)
    yield f"## {section.title}"
    if isinstance(node, ast.ClassDef):
        yield from filter(None, (_constructor(node), _docstring(node), section.lead))
        yield from _members(node)
    else:
        if section.file != "testing.py":
            yield _block([_signature(node)])
        yield _docstring(node)


@cache
def _module(file: str) -> ast.Module:
    return parse((PACKAGE / file).read_text())


def _definition(file: str, name: str) -> ast.ClassDef | FunctionNode:
    for node in _module(file).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
    raise LookupError(f"{file} has no {name}")


def _constructor(node: ast.ClassDef) -> str:
    """Return the signature of a class that users create."""
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__" and node.name == "Cluster":
            return _block([_signature(member, node.name)])
    return ""


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Yield the fields as a table, then each method: its overloads, and its docstring."""
    if rows := [*_fields(node)]:
        yield "\n".join(["| field | |", "|---|---|", *rows])
    overloads: list[str] = []
    for member in node.body:
        if not isinstance(member, FunctionNode) or member.name.startswith("_") or _is_hidden(node, member):
            continue
        decorators = {ast.unparse(decorator) for decorator in member.decorator_list}
        if "property" in decorators:
            continue
        if "overload" in decorators:
            overloads.append(_signature(member))
            continue
        yield f"### `{member.name}`"
        yield _block(overloads or [_signature(member)])
        if docstring := _docstring(member):
            yield docstring
        overloads = []


def _is_hidden(node: ast.ClassDef, member: FunctionNode) -> bool:
    return node.name == "PortForward" and member.name in HIDDEN


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """Yield the rows of properties and fields, with their docstrings."""
    for member, following in zip(node.body, [*node.body[1:], None], strict=True):
        match member:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if not name.startswith("_"):
                text = following.value.value if _is_text(following) else ""
                yield _row(name, ast.unparse(annotation), text)
            case ast.FunctionDef(name=name, returns=ast.expr() as annotation) if not name.startswith("_"):
                if "property" in {ast.unparse(decorator) for decorator in member.decorator_list}:
                    yield _row(name, ast.unparse(annotation), _docstring(member))


def _is_text(node: ast.stmt | None) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _row(name: str, annotation: str, text: str) -> str:
    return f"| `{name}: {annotation}` | {' '.join(text.split())} |".replace(" | None`", " \\| None`")


def _signature(node: FunctionNode, name: str = "") -> str:
    returns = f" -> {_source(node.returns)}" if node.returns and not name else ""
    arguments = [*_arguments(node.args)]
    line = f"{name or node.name}({', '.join(arguments)}){returns}"
    if len(line) <= MAX_LINE:
        return line
    return "\n".join(
        [f"{name or node.name}(", *(f"    {argument}," for argument in arguments), f"){returns}"]
    )


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True), 1):
        if argument.arg != "self":
            yield _argument(argument, default)
        if index == len(arguments.posonlyargs) and index > 1:
            yield "/"
    if arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default)
    if arguments.kwarg is not None:
        yield f"**{_argument(arguments.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = f": {_source(argument.annotation)}" if argument.annotation else ""
    return f"{argument.arg}{annotation}" + (f" = {_source(default)}" if default is not None else "")


def _source(node: ast.expr) -> str:
    """Return an annotation or a default as code, with the values of constants."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and "[" in node.value:
        return node.value  # an annotation in quotes
    text = ast.unparse(node).replace("'", '"')
    return CONSTANTS.get(text, text)


def _block(lines: list[str]) -> str:
    return "\n".join(["```text", *lines, "```"])


def _docstring(node: ast.ClassDef | FunctionNode) -> str:
    return ast.get_docstring(node) or ""


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
