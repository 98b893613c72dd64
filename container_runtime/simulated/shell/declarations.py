"""Builtins that declare variables: export, readonly, local, declare, unset."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from .assignments import assign_word
from .builtin_errors import BuiltinError, invalid_name, invalid_option
from .parameters import element_key
from .process import CommandStart, Run, Steps
from .quoting import double_quote, quote
from .state import ExpansionError, Shell
from .variables import ReadOnlyVariable, ShellVariable

_NAMES_PER_COMMAND: Final = 20
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TARGET: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[.*\])?\+?", re.DOTALL)

_PLAIN: Final = re.compile(r"""(?![#~])[^\s'"\\|&;()<>!{}*\[\]?^$`]*""")
"""Matches a value that bash prints without quotes."""


def _options(argv: Sequence[str], letters: str) -> tuple[str, list[str]]:
    """Return the letters of the options, those behind a plus as capitals with `+` before them, and the other arguments."""
    options, arguments = "", list(argv[1:])
    while arguments and len(arguments[0]) > 1 and arguments[0][0] in "-+":
        argument = arguments.pop(0)
        if argument == "--":
            break
        for letter in argument[1:]:
            if letter not in letters:
                raise invalid_option(argv[0], letter)
            options += letter if argument[0] == "-" else f"+{letter}"
    return options, arguments


def _check_name(text: str) -> str:
    target = text.partition("=")[0]
    if not (_TARGET if "=" in text else _NAME).fullmatch(target):
        raise invalid_name(target, text)
    return target


def _export(shell: Shell, argv: Sequence[str]) -> Run:
    attribute = "is_exported" if argv[0] == "export" else "is_read_only"
    options, arguments = _options(argv, "pnfaA")
    if not arguments and shell.is_bash:
        return (yield from _list_variables(shell, argv[0], options + ("x" if argv[0] == "export" else "r")))
    if not arguments:
        for name in shell.variable_names():
            variable = shell.variables.variable(name)
            if variable is not None and getattr(variable, attribute):
                value = "" if variable.value is None else f"={quote(variable.value)}"
                yield from shell.write(1, f"{argv[0]} {name}{value}\n")
        return 0
    for index, argument in enumerate(arguments):
        if index % _NAMES_PER_COMMAND == _NAMES_PER_COMMAND - 1:
            yield CommandStart()
        _check_name(argument)
        name = assign_word(shell, argument) if "=" in argument else argument
        if "f" not in options:
            shell.variables.change(name, **{attribute: "n" not in options})
    return 0


def _letters(variable: ShellVariable) -> str:
    return "".join(
        letter
        for letter, is_set in (
            ("a", variable.elements is not None and not variable.is_map),
            ("A", variable.is_map),
            ("i", variable.is_integer),
            ("l", variable.case == "l"),
            ("r", variable.is_read_only),
            ("u", variable.case == "u"),
            ("x", variable.is_exported),
        )
        if is_set
    )


def _local(shell: Shell, argv: Sequence[str]) -> Run:
    if not shell.calls:
        if not shell.is_bash:
            raise ExpansionError("local: not in a function")
        raise BuiltinError("can only be used in a function", 1)
    return (yield from _declare(shell, argv))


def _declare(shell: Shell, argv: Sequence[str]) -> Run:
    options, arguments = _options(argv, "aAgilnprtuxfF")
    if "f" in options or "F" in options:
        return _declare_functions(shell, options, arguments)
    if "n" in options.replace("+n", ""):
        raise BuiltinError("-n is not simulated")
    if not arguments:
        return (yield from _list_variables(shell, argv[0], options))
    if "p" in options:
        return (yield from _print_variables(shell, arguments))
    is_local = shell.variables.is_in_function and bool(shell.calls) and "g" not in options
    for argument in arguments:
        target = _check_name(argument)
        name = target.removesuffix("+").partition("[")[0]
        if is_local:
            shell.variables.make_local(name, inherits=not shell.is_bash)
        _set_attributes(shell, name, options)
        if "=" in argument:
            assign_word(shell, argument)
        if "r" in options:
            shell.variables.change(name, is_read_only=True)
    return 0


def _set_attributes(shell: Shell, name: str, options: str) -> None:
    variable = shell.variables.variable(name)
    elements = None if variable is None else variable.elements
    if "A" in options and elements is None:
        shell.variables.put(name, ShellVariable(elements={}, is_map=True))
    elif "a" in options and elements is None:
        text = None if variable is None else variable.text
        shell.variables.put(name, ShellVariable(elements={} if text is None else {0: text}))
    attributes: dict[str, bool | str] = {}
    for letter, attribute in (("x", "is_exported"), ("i", "is_integer")):
        if letter in options:
            attributes[attribute] = f"+{letter}" not in options
    for letter in "lu":
        if letter in options:
            attributes["case"] = "" if f"+{letter}" in options else letter
    shell.variables.change(name, **attributes)


def _declare_functions(shell: Shell, options: str, names: Sequence[str]) -> int:
    if not names or "F" not in options:
        raise BuiltinError("functions cannot be printed: not simulated", 1)
    return int(any(name not in shell.functions for name in names))


def _print_variables(shell: Shell, names: Sequence[str]) -> Run:
    code = 0
    for name in names:
        if shell.variables.variable(name) is None:
            yield from shell.report(f"declare: {name}: not found")
            code = 1
        else:
            yield from _print_variable(shell, name)
    return code


def _print_variable(shell: Shell, name: str) -> Steps:
    variable = shell.variables.variable(name)
    if variable is None:
        return
    if variable.elements is not None:
        value = f"={_elements_text(variable)}"
    else:
        value = "" if variable.text is None else f"={double_quote(variable.text)}"
    yield from shell.write(1, f"declare -{_letters(variable) or '-'} {name}{value}\n")


def _elements_text(variable: ShellVariable) -> str:
    items = " ".join(f"[{key}]={double_quote(text)}" for key, text in (variable.elements or {}).items())
    return f"({items}{' ' if variable.is_map and items else ''})"


def _list_variables(shell: Shell, builtin: str, options: str) -> Run:
    """Print the arrays of the kind that the options name, or all variables, that have one of the attributes that they name.

    `local` prints all variables of the function.
    """
    if builtin == "local":
        for name in shell.variables.local_names() if shell.is_bash else ():
            yield from _print_variable(shell, name)
        return 0
    letters = {letter for before, letter in pairwise(f" {options}") if "+" not in (before, letter)}
    if not letters - {"g"}:
        return (yield from print_values(shell))
    kinds, attributes = letters & set("aA"), letters & set("ilrux")
    for name in shell.variable_names():
        variable = shell.variables.variable(name)
        of_variable = set() if variable is None else set(_letters(variable))
        if kinds <= of_variable and (not attributes or attributes & of_variable):
            yield from _print_variable(shell, name)
    return 0


def print_values(shell: Shell) -> Run:
    """Print all variables with their values."""
    for name in shell.variable_names():
        variable = shell.variables.variable(name)
        if variable is not None and variable.elements is not None:
            yield from shell.write(1, f"{name}={_elements_text(variable)}\n")
        elif variable is not None and variable.text is not None:
            is_plain = shell.is_bash and _PLAIN.fullmatch(variable.text)
            yield from shell.write(1, f"{name}={variable.text if is_plain else quote(variable.text)}\n")
    return 0


def _unset_variables(shell: Shell, argv: Sequence[str]) -> Run:
    options, arguments = _options(argv, "vfn")
    for name in arguments:
        if "f" in options:
            shell.functions.pop(name, None)
            continue
        base, bracket, index = name.partition("[")
        if bracket:
            shell.variables.remove_element(base, element_key(shell, base, index.removesuffix("]")))
            continue
        if not _NAME.fullmatch(name):
            if shell.is_bash:
                continue
            raise BuiltinError(f"{name}: bad variable name")
        if shell.variables.variable(name) is None and "v" not in options and shell.is_bash:
            shell.functions.pop(name, None)
        try:
            shell.variables.remove(name)
        except ReadOnlyVariable as error:
            words = f"{name}: cannot unset: readonly variable"
            raise BuiltinError(str(error), bash=words, bash_code=1) from None
    return 0
    yield


BUILTINS: Final[Mapping[str, Callable[[Shell, Sequence[str]], Run]]] = {
    "export": _export,
    "readonly": _export,
    "local": _local,
    "declare": _declare,
    "typeset": _declare,
    "unset": _unset_variables,
}
