"""The functions of awk."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.posix_matches import find_matches

from .awk_lexer import AwkError, AwkNode
from .awk_state import AwkState
from .awk_values import AwkValue, InputText, format_values, to_number, to_text
from .dates import format_time

_SPLIT_COST: Final = 100
_REPLACE_COST: Final = 20
_PLAIN: Final = re.compile(r"[A-Za-z0-9 _/:=,@%~#!\"'<>;`-]+")
"""Matches an expression that matches itself alone."""
_MASK: Final = (1 << 53) - 1


def call_function(machine: AwkState, node: AwkNode) -> AwkValue:
    special = _SPECIAL.get(node.text)
    if special is not None:
        return special(machine, node.nodes)
    values = [machine.evaluate(argument) for argument in node.nodes]
    function = _FUNCTIONS.get(node.text)
    if function is None:
        raise AwkError(f"{node.text}() is not simulated")
    if len(values) < _MINIMUM.get(node.text, 0):
        raise AwkError(f"{node.text}: too few arguments")
    machine.count_copy(sum(len(value) for value in values if isinstance(value, str)))
    return function(values)


def _length(machine: AwkState, nodes: Sequence[AwkNode]) -> AwkValue:
    if not nodes:
        return float(len(machine.field(0)))
    if nodes[0].kind == "name" and machine.is_array(nodes[0].text):
        return float(len(machine.array(nodes[0].text)))
    return float(len(to_text(machine.evaluate(nodes[0]))))


def _split(machine: AwkState, nodes: Sequence[AwkNode]) -> AwkValue:
    if len(nodes) < 2 or nodes[1].kind != "name":
        raise AwkError("split: an array is expected")
    text = to_text(machine.evaluate(nodes[0]))
    separator = to_text(machine.get("FS"))
    if len(nodes) > 2:
        separator = nodes[2].text if nodes[2].kind == "regex" else to_text(machine.evaluate(nodes[2]))
    parts = machine.split(text, separator)
    machine.count_copy(_SPLIT_COST * len(text))
    array = machine.array(nodes[1].text)
    array.clear()
    array.update({str(index): InputText(part) for index, part in enumerate(parts, start=1)})
    return float(len(parts))


def _substitute(machine: AwkState, nodes: Sequence[AwkNode], *, is_global: bool) -> AwkValue:
    if len(nodes) < 2:
        raise AwkError("sub: too few arguments")
    expression = machine.expression_of(nodes[0])
    replacement = to_text(machine.evaluate(nodes[1]))
    target = nodes[2] if len(nodes) > 2 else AwkNode("field", "", (AwkNode("number", "0"),))
    text = to_text(machine.evaluate(target))
    machine.count_copy(len(text))
    if is_global and _PLAIN.fullmatch(expression) and not {"&", "\\"} & set(replacement):
        number = text.count(expression)
        if len(text) + number * len(replacement) > limits.MAX_AWK_REPLACED:
            raise AwkError("the value is too long")
        machine.count_copy(_REPLACE_COST * number)
        if number:
            machine.assign(target, text.replace(expression, replacement))
        return float(number)
    parts: list[str] = []
    position = count = size = 0
    for spans in find_matches(expression, text, -1 if is_global else 1, count_steps=machine.count_search):
        machine.count_step()
        start, end = spans[0]
        replaced = _replacement(replacement, text[start:end])
        parts += [text[position:start], replaced]
        size += len(replaced)
        if size > limits.MAX_AWK_REPLACED:
            raise AwkError("the value is too long")
        position = end
        count += 1
    if count:
        machine.assign(target, "".join(parts) + text[position:])
    return float(count)


def _replacement(text: str, match: str) -> str:
    if "&" not in text and "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\" and text[position + 1 : position + 2] in ("&", "\\") and position + 1 < len(text):
            position += 1
            parts.append(text[position])
        else:
            parts.append(match if char == "&" else char)
        position += 1
    return "".join(parts)


def _match(machine: AwkState, nodes: Sequence[AwkNode]) -> AwkValue:
    if len(nodes) != 2:
        raise AwkError("match: two arguments are expected")
    text = to_text(machine.evaluate(nodes[0]))
    spans = next(
        find_matches(machine.expression_of(nodes[1]), text, 1, count_steps=machine.count_search), None
    )
    start, end = spans[0] if spans else (-1, -2)
    machine.put("RSTART", float(start + 1))
    machine.put("RLENGTH", float(end - start))
    return float(start + 1)


def _time(machine: AwkState, _: Sequence[AwkNode]) -> AwkValue:
    return float(int(machine.process.host.now_running().timestamp()))


def _format_time(machine: AwkState, nodes: Sequence[AwkNode]) -> AwkValue:
    values = [machine.evaluate(node) for node in nodes]
    when = machine.process.host.now_running()
    if len(values) > 1:
        when = datetime.fromtimestamp(max(min(to_number(values[1]), 2**35), -(2**35)), UTC)
    return format_time(when, to_text(values[0]) if values else "%a %b %e %H:%M:%S %Z %Y")


def _close(machine: AwkState, nodes: Sequence[AwkNode]) -> AwkValue:
    return machine.close(to_text(machine.evaluate(nodes[0]))) if nodes else 0.0


def _random(machine: AwkState, _: Sequence[AwkNode]) -> AwkValue:
    state = int(to_number(machine.variable("\0random")))
    state = (state * 1103515245 + 12345) % (1 << 31)
    machine.set_variable("\0random", float(state))
    return state / (1 << 31)


def _seed(machine: AwkState, nodes: Sequence[AwkNode]) -> AwkValue:
    before = machine.variable("\0random")
    machine.set_variable("\0random", to_number(machine.evaluate(nodes[0])) if nodes else 0.0)
    return to_number(before)


_SPECIAL: Final[Mapping[str, Callable[[AwkState, Sequence[AwkNode]], AwkValue]]] = {
    "length": _length,
    "split": _split,
    "sub": lambda machine, nodes: _substitute(machine, nodes, is_global=False),
    "gsub": lambda machine, nodes: _substitute(machine, nodes, is_global=True),
    "match": _match,
    "systime": _time,
    "strftime": _format_time,
    "close": _close,
    "fflush": lambda _machine, _nodes: 0.0,
    "rand": _random,
    "srand": _seed,
}


def _substring(values: Sequence[AwkValue]) -> AwkValue:
    text, start = to_text(values[0]), _round(to_number(values[1]))
    end = len(text) + 1 if len(values) < 3 else start + _round(to_number(values[2]))
    return text[max(start, 1) - 1 : max(end, 1) - 1] if end > start else ""


def _round(number: float) -> int:
    return math.floor(number + 0.5) if math.isfinite(number) else (1 << 31 if number > 0 else -(1 << 31))


def _calculate(function: Callable[[float], float]) -> Callable[[Sequence[AwkValue]], AwkValue]:
    def calculate(values: Sequence[AwkValue]) -> AwkValue:
        try:
            return float(function(to_number(values[0])))
        except (ValueError, OverflowError):
            return math.nan

    return calculate


def _integers(values: Sequence[AwkValue]) -> tuple[int, int]:
    first, second = (int(to_number(value)) & _MASK for value in values[:2])
    return first, second


def _bits(function: Callable[[int, int], int]) -> Callable[[Sequence[AwkValue]], AwkValue]:
    return lambda values: float(function(*_integers(values)) & _MASK)


_FUNCTIONS: Final[Mapping[str, Callable[[Sequence[AwkValue]], AwkValue]]] = {
    "substr": _substring,
    "index": lambda values: float(to_text(values[0]).find(to_text(values[1])) + 1),
    "sprintf": lambda values: format_values(to_text(values[0]), list(values[1:])),
    "tolower": lambda values: to_text(values[0]).lower(),
    "toupper": lambda values: to_text(values[0]).upper(),
    "sin": _calculate(math.sin),
    "cos": _calculate(math.cos),
    "exp": _calculate(math.exp),
    "log": _calculate(
        lambda number: math.log(number) if number > 0 else -math.inf if number == 0 else math.nan
    ),
    "sqrt": _calculate(math.sqrt),
    "int": _calculate(math.trunc),
    "atan2": lambda values: math.atan2(to_number(values[0]), to_number(values[1])),
    "and": _bits(lambda left, right: left & right),
    "or": _bits(lambda left, right: left | right),
    "xor": _bits(lambda left, right: left ^ right),
    "lshift": _bits(lambda left, right: left << min(right, 64)),
    "rshift": _bits(lambda left, right: left >> min(right, 64)),
    "compl": lambda values: float(~int(to_number(values[0])) & _MASK),
}
_MINIMUM: Final[Mapping[str, int]] = {
    **dict.fromkeys(_FUNCTIONS, 1),
    **dict.fromkeys(("substr", "index", "atan2", "and", "or", "xor", "lshift", "rshift"), 2),
}
