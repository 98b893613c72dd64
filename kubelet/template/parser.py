"""The parser of templates: text with actions in double braces, compiled once and rendered many times.

Pure. It supports `if`, `range`, `with`, `define` and `template`, `break` and `continue`, assignments and values.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from .expression import Environment, Expression, Scope, TemplateError, Tokens, parse_pipeline
from .formatting import go_string

__all__ = ["Template", "TemplateError", "parse"]

Node = Callable[[Scope, list[str]], None]
"""Renders a part of the template and appends the text to the list."""

_OPEN: Final = "{{"
_CLOSE: Final = "}}"


class _Break(Exception):
    """Ends the innermost range."""


class _Continue(Exception):
    """Continues with the next element of the innermost range."""


class Template(Struct, frozen=True):
    nodes: Sequence[Node]

    def render(self, data: Any, environment: Environment) -> str:
        out: list[str] = []
        try:
            _run(self.nodes, Scope(data, environment, {"$": data}), out)
        except RecursionError as error:
            raise TemplateError("the template includes itself without end") from error
        return "".join(out)


def parse(text: str) -> Template:
    """Return the compiled template; raise `TemplateError` if the text is invalid."""
    parser = _Parser(_split_actions(text))
    try:
        nodes, ending = parser.block()
    except RecursionError as error:
        raise TemplateError("the template is nested too deeply") from error
    if ending:
        raise TemplateError(f"unexpected {{{{ {ending.text} }}}}")
    return Template(nodes)


def _split_actions(text: str) -> list[str]:
    """Return text and actions in turn; the first and the last part are text.

    A dash with a space at either end of an action trims the text on that side.
    """
    parts, position, trims_next = list[str](), 0, False
    while (begin := text.find(_OPEN, position)) >= 0 and (end := text.find(_CLOSE, begin + len(_OPEN))) >= 0:
        before, action = text[position:begin], text[begin + len(_OPEN) : end]
        before = before.lstrip() if trims_next else before
        if action.startswith("-") and action[1:2].isspace():
            before, action = before.rstrip(), action[2:]
        trims_next = action.endswith("-") and action[-2:-1].isspace()
        parts += before, (action[:-1] if trims_next else action).strip()
        position = end + len(_CLOSE)
    return [*parts, text[position:].lstrip() if trims_next else text[position:]]


class _Parser(Struct):
    """Compiles the parts of a template: text and actions in turn, starting with text."""

    parts: Sequence[str]
    position: int = 0
    definitions: dict[str, Sequence[Node]] = field(default_factory=dict)
    range_depth: int = 0
    """The number of ranges around the action; `break` and `continue` need one."""

    def block(self) -> tuple[list[Node], Tokens | None]:
        """Return the nodes up to the `else` or `end` that closes the block, and that keyword."""
        nodes: list[Node] = []
        while self.position < len(self.parts):
            part, is_action = self.parts[self.position], self.position % 2 == 1
            self.position += 1
            if not is_action:
                if part:
                    nodes.append(_text(part))
                continue
            if part.startswith("/*"):
                continue
            tokens = Tokens(part)
            if tokens.peek() in (("word", "else"), ("word", "end")):
                return nodes, tokens
            node = self._action(tokens)
            if node is not None:
                nodes.append(node)
        return nodes, None

    def _action(self, tokens: Tokens) -> Node | None:
        blocks = {"if": self._if, "with": self._with, "range": self._range, "template": self._template}
        kind, word = tokens.peek()
        if kind == "word" and word in blocks:
            tokens.take()
            return blocks[word](tokens)
        if kind == "word" and word == "define":
            tokens.take()
            self._define(tokens)
            return None
        if kind == "word" and word in ("break", "continue"):
            tokens.take()
            tokens.finish()
            if not self.range_depth:
                raise TemplateError(f"{{{{ {word} }}}} outside {{{{ range }}}}")
            return _raise_node(_Break if word == "break" else _Continue)
        return _statement(tokens)

    def _if(self, tokens: Tokens) -> Node:
        condition = _parse_binding(tokens)
        body, other = self._bodies()

        def run(scope: Scope, out: list[str]) -> None:
            inner = scope.inner(scope.dot)
            _run(body if condition(inner) else other, inner, out)

        return run

    def _with(self, tokens: Tokens) -> Node:
        value = _parse_binding(tokens)
        body, other = self._bodies()

        def run(scope: Scope, out: list[str]) -> None:
            inner = scope.inner(scope.dot)
            result = value(inner)
            if result:
                _run(body, inner.inner(result), out)
            else:
                _run(other, inner, out)

        return run

    def _range(self, tokens: Tokens) -> Node:
        names = _range_names(tokens)
        value = parse_pipeline(tokens)
        tokens.finish()
        body, other = self._bodies(ranges=1)

        def run(scope: Scope, out: list[str]) -> None:
            items = list(_items(value(scope)))
            if not items:
                _run(other, scope.inner(scope.dot), out)
            _repeat(items, names, body, scope, out)

        return run

    def _bodies(self, *, ranges: int = 0) -> tuple[Sequence[Node], Sequence[Node]]:
        """Return the body of a block and the body after its `else`; `ranges` is 1 for the body of a range."""
        self.range_depth += ranges
        body, ending = self.block()
        self.range_depth -= ranges
        if ending is None:
            raise TemplateError("a block has no {{ end }}")
        if ending.take() == ("word", "end"):
            ending.finish()
            return body, ()
        if not ending.remaining:
            other, last = self.block()
            if last is None or last.take() != ("word", "end"):
                raise TemplateError("an {{ else }} has no {{ end }}")
            return body, other
        else_node = self._action(ending)
        return body, [else_node] if else_node else ()

    def _define(self, tokens: Tokens) -> None:
        name = _name(tokens)
        tokens.finish()
        depth, self.range_depth = self.range_depth, 0
        self.definitions[name], ending = self.block()
        self.range_depth = depth
        if ending is None or ending.take() != ("word", "end"):
            raise TemplateError(f"the definition of {name!r} has no {{{{ end }}}}")

    def _template(self, tokens: Tokens) -> Node:
        name = _name(tokens)
        value: Expression = parse_pipeline(tokens) if tokens.remaining else lambda _: None
        tokens.finish()

        def run(scope: Scope, out: list[str]) -> None:
            if name not in self.definitions:
                raise TemplateError(f"template {name!r} is not defined")
            data = value(scope)
            _run(self.definitions[name], Scope(data, scope.environment, {"$": data}), out)

        return run


# --- actions


def _run(nodes: Iterable[Node], scope: Scope, out: list[str]) -> None:
    for node in nodes:
        node(scope, out)


def _text(text: str) -> Node:
    return lambda _, out: out.append(text)


def _raise_node(exception: type[Exception]) -> Node:
    def run(_: Scope, __: list[str]) -> None:
        raise exception

    return run


def _name(tokens: Tokens) -> str:
    kind, text = tokens.take()
    if kind != "text":
        raise TemplateError(f"unexpected {text!r} in {tokens.text!r}")
    return text[1:-1]


def _statement(tokens: Tokens) -> Node:
    if tokens.peek()[0] == "variable" and tokens.peek(1)[1] in (":=", "="):
        assign = _parse_binding(tokens)
        return lambda scope, _: assign(scope)
    value = _parse_binding(tokens)
    return lambda scope, out: out.append(go_string(value(scope)))


def _parse_binding(tokens: Tokens) -> Expression:
    """Parse a value, which the action may assign to a variable."""
    name = ""
    is_declaration = tokens.peek(1)[1] == ":="
    if tokens.peek()[0] == "variable" and tokens.peek(1)[1] in (":=", "="):
        name = tokens.take()[1]
        tokens.take()
    value = parse_pipeline(tokens)
    tokens.finish()
    if not name:
        return value

    def bind(scope: Scope) -> Any:
        result = value(scope)
        if is_declaration:
            scope.variables[name] = result
        else:
            scope.assign(name, result)
        return result

    return bind


def _range_names(tokens: Tokens) -> tuple[str, ...]:
    """Parse the names of a range's variables: index and element, or the element alone."""
    if tokens.peek()[0] != "variable" or tokens.peek(1)[1] not in (":=", ","):
        return ()
    names = [tokens.take()[1]]
    if tokens.skip(","):
        names.append(tokens.take()[1])
    if not tokens.skip(":="):
        raise TemplateError(f"{tokens.text.strip()!r}: := is missing")
    return tuple(names)


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return sorted(value.items())
    if isinstance(value, list | tuple):
        return enumerate(value)
    if value is None:
        return ()
    raise TemplateError(f"cannot range over {go_string(value)}")


def _repeat(
    items: Sequence[tuple[Any, Any]],
    names: tuple[str, ...],
    body: Sequence[Node],
    scope: Scope,
    out: list[str],
) -> None:
    for key, item in items:
        inner = scope.inner(item)
        # A single name is that of the element; of two names, the first is that of the index.
        inner.variables.update(zip(names, (key, item) if len(names) == 2 else (item,), strict=False))
        try:
            _run(body, inner, out)
        except _Continue:
            continue
        except _Break:
            break
