"""The execution of the statements and expressions of awk."""

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import ClassVar, Final

from mockube.apimachinery.regexp.matcher import check, contains_match
from mockube.container_runtime.simulated.shell import limits

from . import awk_values
from .awk_functions import call_function
from .awk_lexer import AwkError, AwkNode
from .awk_state import AwkState, Local
from .awk_values import AwkValue, InputText

_Pauses = Generator[None, None, None]
"""It pauses after so much work that others have to run."""
_KEY_COST: Final = 20
_FORMAT_COST: Final = 15_000
_COMPARISONS: Final[Mapping[str, Callable[[int], bool]]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


class AwkExit(Exception):
    def __init__(self, code: int, *, has_code: bool, skips_end: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.has_code = has_code
        self.skips_end = skips_end


class NextRecord(Exception):
    """`next` ends the rules of a record."""


class NextFile(Exception):
    """`nextfile` ends a file."""


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: AwkValue) -> None:
        super().__init__()
        self.value = value


class AwkMachine(AwkState):
    """It executes statements and expressions."""

    # --- statements

    def execute_action(self, node: AwkNode) -> _Pauses:
        with suppress(_Break, _Continue):
            yield from self._execute(node)

    def _execute(self, node: AwkNode) -> _Pauses:
        """Execute a statement, with pauses before it takes too long."""
        self.count_step()
        if self.needs_pause():
            yield
        compound = self._compound_statements.get(node.kind)
        if compound is not None:
            yield from compound(self, node)
        else:
            self._statements[node.kind](self, node)

    def _block(self, node: AwkNode) -> _Pauses:
        for statement in node.nodes:
            yield from self._execute(statement)

    def _if(self, node: AwkNode) -> _Pauses:
        if awk_values.is_true(self.evaluate(node.nodes[0])):
            yield from self._execute(node.nodes[1])
        elif len(node.nodes) > 2:
            yield from self._execute(node.nodes[2])

    def _iterate(self, body: AwkNode) -> Generator[None, None, bool]:
        """Execute the body of a loop; return whether the loop continues."""
        try:
            yield from self._execute(body)
        except _Break:
            return False
        except _Continue:
            pass
        return True

    def _while(self, node: AwkNode) -> _Pauses:
        while awk_values.is_true(self.evaluate(node.nodes[0])):
            if not (yield from self._iterate(node.nodes[1])):
                break

    def _do(self, node: AwkNode) -> _Pauses:
        while (yield from self._iterate(node.nodes[0])) and awk_values.is_true(self.evaluate(node.nodes[1])):
            self.count_step()

    def _for(self, node: AwkNode) -> _Pauses:
        start, condition, step, body = node.nodes
        yield from self._execute(start)
        while awk_values.is_true(self.evaluate(condition)):
            if not (yield from self._iterate(body)):
                break
            yield from self._execute(step)

    def _each(self, node: AwkNode) -> _Pauses:
        name, _, array = node.text.partition(" ")
        keys = list(self.array(array))
        self.count_copy(_KEY_COST * len(keys))
        for key in keys:
            self.put(name, InputText(key))
            if not (yield from self._iterate(node.nodes[0])):
                break

    def _print(self, node: AwkNode) -> None:
        target, *arguments = node.nodes
        conversion = awk_values.to_text(self.get("OFMT"))
        texts = [awk_values.to_text(self.evaluate(argument), conversion) for argument in arguments] or [
            self.field(0)
        ]
        self.write(
            target, awk_values.to_text(self.get("OFS")).join(texts) + awk_values.to_text(self.get("ORS"))
        )

    def _printf(self, node: AwkNode) -> None:
        target, *arguments = node.nodes
        if not arguments:
            raise AwkError("printf without a format")
        values = [self.evaluate(argument) for argument in arguments]
        self.count_copy(_FORMAT_COST * len(values))
        self.write(target, awk_values.format_values(awk_values.to_text(values[0]), values[1:]))

    def _delete(self, node: AwkNode) -> None:
        array = self.array(node.text)
        if node.nodes:
            array.pop(self.key(node.nodes), None)
        else:
            array.clear()

    def _leave(self, node: AwkNode) -> None:
        match node.kind:
            case "next":
                raise NextRecord
            case "nextfile":
                raise NextFile
            case "break":
                raise _Break
            case "continue":
                raise _Continue
            case "return":
                raise _Return(self.evaluate(node.nodes[0]) if node.nodes else None)
            case _:
                code = int(self.number(node.nodes[0])) % 256 if node.nodes else 0
                raise AwkExit(code, has_code=bool(node.nodes))

    def _expression(self, node: AwkNode) -> None:
        self.evaluate(node.nodes[0])

    # --- expressions

    def evaluate(self, node: AwkNode) -> AwkValue:
        self.count_step()
        return self._expressions_by_kind[node.kind](self, node)

    def _element(self, node: AwkNode) -> AwkValue:
        return self.array(node.text).setdefault(self.key(node.nodes), None)

    def _assign(self, node: AwkNode) -> AwkValue:
        target, source = node.nodes
        value = self.evaluate(source)
        if node.text:
            value = self.calculate(node.text, self.number(target), awk_values.to_number(value))
        self.assign(target, value)
        return value

    def _increment(self, node: AwkNode) -> AwkValue:
        before = self.number(node.nodes[0])
        after = before + (1 if node.text == "++" else -1)
        self.assign(node.nodes[0], after)
        return after if node.kind == "before" else before

    @staticmethod
    def calculate(operator: str, left: float, right: float) -> float:
        if operator in "/%" and right == 0:
            raise AwkError("division by zero")
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left / right
            case "%":
                return left - right * int(left / right)
            case _:
                try:
                    return float(left**right)
                except (OverflowError, ZeroDivisionError, TypeError, ValueError):
                    return float("inf")

    def _arithmetic(self, node: AwkNode) -> AwkValue:
        return self.calculate(node.text, self.number(node.nodes[0]), self.number(node.nodes[1]))

    def _unary(self, node: AwkNode) -> AwkValue:
        value = self.evaluate(node.nodes[0])
        if node.text == "!":
            return float(not awk_values.is_true(value))
        return -awk_values.to_number(value) if node.text == "-" else awk_values.to_number(value)

    def _compare(self, node: AwkNode) -> AwkValue:
        order = awk_values.compare(self.evaluate(node.nodes[0]), self.evaluate(node.nodes[1]))
        return float(_COMPARISONS[node.text](order))

    def _match(self, node: AwkNode) -> AwkValue:
        text = self.text_of(node.nodes[0])
        return float(self.contains(self.expression_of(node.nodes[1]), text) is (node.text == "~"))

    def contains(self, expression: str, text: str) -> bool:
        self.count_search(len(text) * check(expression))
        return contains_match(expression, text)

    def _concatenate(self, node: AwkNode) -> AwkValue:
        text = self.text_of(node.nodes[0]) + self.text_of(node.nodes[1])
        if len(text) > limits.MAX_AWK_VALUE:
            raise AwkError("the value is too long")
        self.count_copy(len(text))
        return text

    def _conditional(self, node: AwkNode) -> AwkValue:
        return self.evaluate(node.nodes[1 if awk_values.is_true(self.evaluate(node.nodes[0])) else 2])

    def _call(self, node: AwkNode) -> AwkValue:
        function = self.program.functions.get(node.text)
        if function is None:
            raise AwkError(f"function {node.text} is not defined")
        if len(self.frames) >= limits.MAX_AWK_CALLS:
            raise AwkError("functions are nested too deeply")
        frame: dict[str, Local] = dict.fromkeys(function.parameters)
        arrays: list[tuple[str, str]] = []
        for name, argument in zip(function.parameters, node.nodes, strict=False):
            if argument.kind == "name" and self.is_array(argument.text):
                frame[name] = self.array(argument.text)
            else:
                frame[name] = self.evaluate(argument)
                if argument.kind == "name" and frame[name] is None:
                    arrays.append((name, argument.text))
        self.frames.append(frame)
        try:
            for _ in self._execute(function.body):
                pass  # An expression has no pauses; its steps are limited.
        except _Return as end:
            return end.value
        finally:
            self.frames.pop()
            for name, outer in arrays:
                value = frame[name]
                if isinstance(value, dict):
                    self.array(outer).update(value)
        return None

    def _builtin(self, node: AwkNode) -> AwkValue:
        return call_function(self, node)

    def _getline(self, node: AwkNode) -> AwkValue:
        target, *source = node.nodes
        line = self.next_line_of(self.text_of(source[0])) if source else self.next_line()
        if isinstance(line, int):
            return float(line)
        if target.kind == "none":
            self.set_record(line)
        else:
            self.assign(target, InputText(line))
        return 1.0

    _compound_statements: ClassVar[Mapping[str, Callable[["AwkMachine", AwkNode], _Pauses]]] = {
        "block": _block,
        "if": _if,
        "while": _while,
        "do": _do,
        "for": _for,
        "each": _each,
    }
    _statements: ClassVar[Mapping[str, Callable[["AwkMachine", AwkNode], None]]] = {
        "print": _print,
        "printf": _printf,
        "delete": _delete,
        "expression": _expression,
        **dict.fromkeys(("next", "nextfile", "break", "continue", "return", "exit"), _leave),
    }
    _expressions_by_kind: ClassVar[Mapping[str, Callable[["AwkMachine", AwkNode], AwkValue]]] = {
        "number": lambda _, node: (
            float(int(node.text, 16)) if node.text[:2] in ("0x", "0X") else float(node.text)
        ),
        "string": lambda _, node: node.text,
        "regex": lambda machine, node: float(machine.contains(machine.convert(node.text), machine.field(0))),
        "name": lambda machine, node: machine.get(node.text),
        "field": lambda machine, node: machine.field_value(int(machine.number(node.nodes[0]))),
        "element": _element,
        "assign": _assign,
        "before": _increment,
        "after": _increment,
        "arithmetic": _arithmetic,
        "unary": _unary,
        "compare": _compare,
        "match": _match,
        "concatenate": _concatenate,
        "conditional": _conditional,
        "and": lambda machine, node: float(
            all(awk_values.is_true(machine.evaluate(part)) for part in node.nodes)
        ),
        "or": lambda machine, node: float(
            any(awk_values.is_true(machine.evaluate(part)) for part in node.nodes)
        ),
        "in": lambda machine, node: float(machine.key(node.nodes) in machine.array(node.text)),
        "parenthesis": lambda machine, node: machine.evaluate(node.nodes[0]),
        "group": lambda machine, node: machine.key(node.nodes),
        "call": _call,
        "builtin": _builtin,
        "getline": _getline,
    }
