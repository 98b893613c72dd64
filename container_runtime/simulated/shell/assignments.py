"""Assignments to variables and to elements of arrays."""

from collections.abc import Generator, Sequence
from itertools import zip_longest
from typing import Final

from . import limits
from .arithmetic import evaluate
from .parameters import ExpressionVariables, element, element_key, evaluate_index
from .process import Effect, Steps, count_work
from .state import ExpansionTooLong, Shell
from .syntax import Assignment, indexed_word
from .variables import ShellVariable
from .words import expand_text, expand_words

_ELEMENTS_PER_COMMAND: Final = 1000


def expand_assignment(shell: Shell, assignment: Assignment) -> Generator[Effect, bytes | None, str]:
    return (yield from expand_text(shell, assignment.value))


def assign(shell: Shell, assignment: Assignment) -> Steps:
    """Assign a value, the value of an element, or all elements of an array."""
    name = assignment.name
    if assignment.elements is not None:
        yield from _assign_array(shell, assignment)
        return
    value = yield from expand_assignment(shell, assignment)
    if assignment.index is not None:
        index = yield from expand_text(shell, assignment.index)
        if assignment.appends:
            value = (element(shell, name, index) or "") + value
        old = shell.variables.variable(name)
        yield from count_work(len(old.elements or ()) if old is not None else 0, _ELEMENTS_PER_COMMAND)
        shell.variables.set_element(name, element_key(shell, name, index), value)
        return
    assign_text(shell, name, value, appends=assignment.appends)


def assign_text(shell: Shell, name: str, value: str, *, appends: bool = False) -> None:
    variable = shell.variables.variable(name)
    if variable is not None and variable.is_integer:
        number = evaluate(value, ExpressionVariables(shell))
        if appends:
            number += evaluate(variable.value or "0", ExpressionVariables(shell))
        value = str(number)
    elif appends:
        value = (shell.parameter(name) or "") + value
        if len(value) > limits.MAX_VALUE:
            raise ExpansionTooLong("the value is too long")
    shell.assign(name, value)


def _assign_array(shell: Shell, assignment: Assignment) -> Steps:
    name = assignment.name
    old = shell.variables.variable(name) or ShellVariable()
    items: dict[int | str, str] = {}
    if assignment.appends:
        items = dict(old.elements or ({} if old.text is None else {0: old.text}))
    following = max((int(key) for key in items), default=-1) + 1 if not old.is_map else 0
    elements = assignment.elements or ()
    if old.is_map and elements and elements[0][0] is None:  # keys and values in turn
        words = [word if index is None else indexed_word(index, word) for index, word in elements]
        elements = [*zip_longest(words[::2], words[1::2], fillvalue=())]
    for index_word, word in elements:
        if index_word is None and old.is_map:
            value = yield from expand_text(shell, word)
            yield from shell.report(f"{name}: {value}: must use subscript when assigning associative array")
            continue
        if index_word is None:
            for value in (yield from expand_words(shell, [word])):
                items[following] = value
                following += 1
            continue
        index = yield from expand_text(shell, index_word)
        value = yield from expand_text(shell, word)
        if old.is_map:
            items[index] = value
        else:
            key = evaluate_index(shell, index)
            items[key], following = value, key + 1
    if not old.is_map and any(index is not None for index, _ in assignment.elements or ()):
        items = dict(sorted(items.items()))
    shell.variables.put(
        name,
        ShellVariable(
            elements=items,
            is_map=old.is_map,
            is_exported=old.is_exported,
            is_read_only=old.is_read_only,
        ),
    )


def declare_word(
    shell: Shell, assignment: Assignment, argv: Sequence[str]
) -> Generator[Effect, bytes | None, str]:
    """Expand an assignment among the arguments of `declare` and the like; an array is assigned at once, and its name is the argument."""
    if assignment.elements is None:
        value = yield from expand_assignment(shell, assignment)
        index = ""
        if assignment.index is not None:
            index = f"[{(yield from expand_text(shell, assignment.index))}]"
        return f"{assignment.name}{index}{'+' if assignment.appends else ''}={value}"
    options = "".join(argument[1:] for argument in argv if argument.startswith("-"))
    name = assignment.name
    if shell.variables.is_in_function and argv[0] in ("local", "declare", "typeset") and "g" not in options:
        shell.variables.make_local(name, inherits=False)
        shell.variables.remove(name)
    if "A" in options:
        shell.variables.put(name, ShellVariable(elements={}, is_map=True))
    yield from _assign_array(shell, assignment)
    return name


def assign_word(shell: Shell, text: str) -> str:
    """Execute `NAME=VALUE`, `NAME+=VALUE` or `NAME[INDEX]=VALUE` of a builtin; return the name."""
    target, _, value = text.partition("=")
    appends = target.endswith("+")
    name, bracket, index = target.removesuffix("+").partition("[")
    if bracket:
        key_text = index.removesuffix("]")
        shell.variables.set_element(name, element_key(shell, name, key_text), value)
    else:
        assign_text(shell, name, value, appends=appends)
    return name
