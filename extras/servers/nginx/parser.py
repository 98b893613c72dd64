"""The syntax of nginx' configuration: directives with their arguments, blocks and lines, and the errors of `nginx -t`. Pure."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.yaml_decode import load

_DATA: Final = Path(__file__).with_name("directives.yaml")
MAX_DIRECTIVES: Final = 20_000
_MAX_DEPTH: Final = 30
_ESCAPES: Final = {'"': '"', "'": "'", "\\": "\\", "t": "\t", "r": "\r", "n": "\n"}
_FREE_CONTEXTS: Final = frozenset({"map", "geo", "types", "split_clients", "charset_map"})
"""The blocks whose entries are no directives."""
_DYNAMIC_MODULES: Final = "load_module"
_SINGLE: Final = frozenset(
    {"root", "alias", "pid", "user", "worker_processes", "default_type", "proxy_pass", "client_max_body_size", "worker_connections"}
)  # fmt: skip
"""The directives besides those with `on` or `off` that a block has once."""


class ConfigurationError(Exception):
    """The configuration is invalid; the message is that of nginx, with the file and the line."""


class Directive(Struct, frozen=True, kw_only=True):
    name: str
    arguments: tuple[str, ...] = ()
    file: str
    line: int
    block: "tuple[Directive, ...] | None" = None
    """The directives in the block that follows; None without one."""

    def error(self, message: str) -> ConfigurationError:
        return ConfigurationError(f"{message} in {self.file}:{self.line}")


class _Token(Struct, frozen=True):
    text: str
    line: int
    is_mark: bool = False
    """Whether it is one of `;`, `{` and `}`, and not a word."""


ReadFiles = Callable[[str], Sequence[tuple[str, str]]]
"""Returns the files of a path, which may be a pattern, each with its text; raises `OSError` for a missing one without a pattern."""


def parse(path: str, read_files: ReadFiles) -> tuple[Directive, ...]:
    """Return the directives of a file and of those that it includes; raise `ConfigurationError` if one is invalid."""
    try:
        ((name, text),) = read_files(path)
    except OSError as error:
        raise ConfigurationError(f'open() "{path}" failed ({error.errno}: {error.strerror})') from error
    parser = _Parser(read_files)
    return parser.parse_file(name, text, ("main",), 0)


class _Parser:
    def __init__(self, read_files: ReadFiles) -> None:
        self._read_files = read_files
        self._count = 0
        self._has_modules = False
        """Whether a module is loaded, whose directives nobody knows."""

    def parse_file(self, name: str, text: str, contexts: Sequence[str], depth: int) -> tuple[Directive, ...]:
        tokens = _Tokens(name, text)
        directives = self._parse_block(tokens, contexts, depth, is_file=True)
        return tuple(directives)

    def _parse_block(
        self, tokens: "_Tokens", contexts: Sequence[str], depth: int, *, is_file: bool = False
    ) -> list[Directive]:
        if depth > _MAX_DEPTH:
            raise tokens.error("too many nested blocks or includes")
        directives: list[Directive] = []
        words: list[_Token] = []
        for token in tokens:
            if not token.is_mark:
                words.append(token)
                continue
            if token.text == "}":
                if words or is_file:
                    raise tokens.error('unexpected "}"')
                return directives
            if not words:
                raise tokens.error(f'unexpected "{token.text}"')
            directives += self._finish(words, token.text == "{", tokens, contexts, depth, directives)
            words = []
        if words:
            raise tokens.error('unexpected end of file, expecting ";" or "}"')
        if not is_file:
            raise tokens.error('unexpected end of file, expecting "}"')
        return directives

    def _finish(
        self,
        words: Sequence[_Token],
        has_block: bool,  # noqa: FBT001 - as the others
        tokens: "_Tokens",
        contexts: Sequence[str],
        depth: int,
        earlier: Sequence[Directive],
    ) -> Sequence[Directive]:
        """Return a directive, or those of the files that it includes."""
        name, arguments = words[0].text, tuple(word.text for word in words[1:])
        directive = Directive(name=name, arguments=arguments, file=tokens.name, line=tokens.line)
        self._count += 1
        if self._count > MAX_DIRECTIVES:
            raise directive.error("too many directives")
        is_entry = contexts[-1] in _FREE_CONTEXTS
        if name == "include":
            if has_block or len(arguments) != 1:
                raise directive.error('invalid number of arguments in "include" directive')
            return self._include(directive, contexts, depth)
        if is_entry:
            if has_block:
                raise directive.error('unexpected "{"')
            return [directive]
        self._has_modules |= name == _DYNAMIC_MODULES
        is_known = self._check(directive, has_block, contexts, earlier)
        if not has_block:
            return [directive]
        inner = _context_in(name, contexts) if is_known else "map"
        block = self._parse_block(tokens, (*contexts, inner), depth + 1)
        return [replace(directive, block=tuple(block))]

    def _include(self, directive: Directive, contexts: Sequence[str], depth: int) -> list[Directive]:
        path = directive.arguments[0]
        try:
            files = self._read_files(path)
        except OSError as error:
            raise directive.error(f'open() "{path}" failed ({error.errno}: {error.strerror})') from error
        included: list[Directive] = []
        for name, text in files:
            if depth >= _MAX_DEPTH:
                raise directive.error("too many nested blocks or includes")
            included += self.parse_file(name, text, contexts, depth + 1)
        return included

    def _check(
        self,
        directive: Directive,
        has_block: bool,  # noqa: FBT001 - as in _finish
        contexts: Sequence[str],
        earlier: Sequence[Directive],
    ) -> bool:
        """Raise an error for a directive that nginx does not accept here; return whether it is known."""
        name, count = directive.name, len(directive.arguments)
        known = forms_of_directives().get(name)
        if known is None:
            if self._has_modules:
                return False
            raise directive.error(f'unknown directive "{name}"')
        forms = [form for form in known if contexts[-1] in form.contexts]
        if not forms:
            raise directive.error(f'"{name}" directive is not allowed here')
        if has_block and not any(form.has_block for form in forms):
            raise directive.error(f'directive "{name}" is not terminated by ";"')
        if not has_block and all(form.has_block for form in forms):
            raise directive.error(f'directive "{name}" has no opening "{{"')
        if not any(form.accepts(count) for form in forms if form.has_block is has_block):
            raise directive.error(f'invalid number of arguments in "{name}" directive')
        is_flag = all(form.counts == "f" for form in forms)
        if is_flag and directive.arguments[0].lower() not in ("on", "off"):
            value = directive.arguments[0]
            raise directive.error(f'invalid value "{value}" in "{name}" directive, it must be "on" or "off"')
        if (is_flag or name in _SINGLE) and any(other.name == name for other in earlier):
            raise directive.error(f'"{name}" directive is duplicate')
        return True


class _Tokens:
    """The tokens of a file, with the line that was read last."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.line = 1
        self._text = text
        self._tokens = self._read()

    def error(self, message: str) -> ConfigurationError:
        return ConfigurationError(f"{message} in {self.name}:{self.line}")

    def __iter__(self) -> Iterator[_Token]:
        """Return the tokens that were not read yet: blocks are read where they begin."""
        return self._tokens

    def _read(self) -> Iterator[_Token]:
        text, at, end = self._text, 0, len(self._text)
        while at < end:
            char = text[at]
            if char in " \t\r\n":
                self.line += char == "\n"
                at += 1
            elif char == "#":
                newline = text.find("\n", at)
                at = end if newline < 0 else newline
            elif char in ";{}":
                yield _Token(char, self.line, is_mark=True)
                at += 1
            elif char in "\"'":
                word, at = self._quoted(at)
                yield _Token(word, self.line)
            else:
                word, at = self._word(at)
                yield _Token(word, self.line)

    def _quoted(self, at: int) -> tuple[str, int]:
        text, quote, word = self._text, self._text[at], list[str]()
        at += 1
        while at < len(text) and text[at] != quote:
            piece, at = self._character(at)
            word.append(piece)
        if at >= len(text):
            raise self.error('unexpected end of file, expecting ";" or "}"')
        after = text[at + 1 : at + 2]
        if after and after not in " \t\r\n;{)":
            raise self.error(f'unexpected "{after}"')
        return "".join(word), at + 1 + (after == ")")

    def _word(self, at: int) -> tuple[str, int]:
        text, word = self._text, list[str]()
        while at < len(text) and text[at] not in " \t\r\n;{":
            if text.startswith("${", at):
                closing = text.find("}", at)
                if closing > 0 and "\n" not in text[at:closing]:
                    word.append(text[at : closing + 1])
                    at = closing + 1
                    continue
            piece, at = self._character(at)
            word.append(piece)
        return "".join(word), at

    def _character(self, at: int) -> tuple[str, int]:
        """Return a character of a word, or what an escape stands for, and the place after it."""
        text = self._text
        if text[at] == "\\" and at + 1 < len(text):
            escaped = text[at + 1]
            self.line += escaped == "\n"
            return _ESCAPES.get(escaped, f"\\{escaped}"), at + 2
        self.line += text[at] == "\n"
        return text[at], at + 1


# --- the known directives


class Form(Struct, frozen=True):
    """A way in which a directive is used."""

    contexts: frozenset[str]
    counts: str
    """The numbers of arguments, such as 1,2 or 1+; f for `on` or `off`."""
    has_block: bool

    def accepts(self, count: int) -> bool:
        if self.counts.endswith("+"):
            return count >= int(self.counts[:-1])
        return count == 1 if self.counts == "f" else str(count) in self.counts.split(",")


@cache
def forms_of_directives() -> dict[str, tuple[Form, ...]]:
    """Return the directives of nginx, each with the ways to use it."""
    table: dict[str, tuple[Form, ...]] = {}
    for key, names in load(_DATA.read_bytes()).tree.items():
        forms = []
        for each in key.split("; "):
            contexts, _, counts = each.partition(": ")
            *others, last = [count for count in counts.rstrip("{").split(",") if count]
            open_count = next((count for count in (*others, last) if count.endswith("+")), "")
            form = open_count or ",".join((*others, last))
            forms.append(Form(frozenset(contexts.split()), form, counts.endswith("{")))
        table |= dict.fromkeys(names.split(), tuple(forms))
    return table


def _context_in(name: str, contexts: Sequence[str]) -> str:
    """Return the context of a block."""
    outer = contexts[-1]
    if name == "if":
        return "if-in-server" if outer == "server" else "if"
    if outer in ("mail", "stream"):
        return f"{outer}-{name}" if name in ("server", "upstream") else name
    return name
