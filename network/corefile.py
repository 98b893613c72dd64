"""Reads a Corefile, with the errors with which CoreDNS ends. Pure.

What a server block says is kept as directives in their order; `coredns` answers by them. The syntax is that of a Caddyfile.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.regexp.captures import CapturingPattern, capturing_pattern
from mockube.apimachinery.regexp.errors import RegexpError

from .view import parse_address

PORT: Final = 53
MAX_BYTES: Final = 256 << 10
"""The size of a Corefile that is read at once; a ConfigMap may have four times as much."""
_PLUGINS: Final = frozenset(
    """acl any auto autopath azure bind bufsize cache cancel chaos clouddns debug dns64 dnssec dnstap erratic errors etcd file forward
    geoip grpc grpc_server header health hosts https https3 import k8s_external kubernetes local log loop loadbalance metadata minimal
    multisocket nomad nsid pprof prometheus quic ready reload rewrite root route53 secondary sign template timeouts tls trace transfer
    tsig view whoami""".split()  # noqa: SIM905 - a list of words
)
_WITHOUT_ARGUMENTS: Final = frozenset({"debug", "errors", "loop", "metadata", "minimal", "ready", "whoami"})
_BLOCKS: Final = {
    "kubernetes": frozenset(
        [
            "apiserver_burst",
            "apiserver_max_inflight",
            "apiserver_qps",
            "endpoint",
            "endpoint_pod_names",
            "fallthrough",
            "ignore",
            "ignore_empty_service",
            "kubeconfig",
            "labels",
            "multicluster",
            "namespace_labels",
            "namespaces",
            "noendpoints",
            "pods",
            "resync",
            "startup_timeout",
            "tls",
            "transfer",
            "ttl",
        ]
    ),
    "hosts": frozenset({"fallthrough", "no_reverse", "reload", "ttl"}),
    "template": frozenset(
        {"additional", "answer", "authority", "ederror", "fallthrough", "match", "rcode", "upstream"}
    ),
}
"""The properties in the blocks of plugins; `hosts` has lines of addresses, too."""
_POD_MODES: Final = ("disabled", "insecure", "verified")
_TOKEN: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_ADDRESS: Final = re.compile(r"(?:dns://)?([^:\s]*|\[[0-9a-fA-F:]+\])(?::(\d{1,5}))?")
_OTHER_SCHEMES: Final = ("tls://", "https://", "grpc://", "quic://", "https3://")
_MAX_GROUPS: Final = 100
_MAX_DIRECTIVES: Final = 20_000
"""CoreDNS has no limit; snippets that import others twice would double with each."""
_RULE_WORDS: Final = 3
"""A rule has at least a field, what is replaced, and by what."""


class CorefileError(ValueError):
    """CoreDNS refuses a Corefile; the message is its own."""


class Token(NamedTuple):
    text: str
    line: int
    starts_line: bool


class PluginDirective(Struct, frozen=True):
    """A plugin with its arguments, and the lines in its block."""

    name: str
    arguments: tuple[str, ...]
    block: tuple[tuple[str, ...], ...] = ()
    line: int = 0

    def lines(self, name: str) -> Iterator[tuple[str, ...]]:
        """Yield the arguments of the lines of the block that begin with a word."""
        return (words[1:] for words in self.block if words[0] == name)


class ServerBlock(Struct, frozen=True):
    zones: tuple[tuple[str, int], ...]
    """The zones, without the last dot and "" for the root, with their ports."""
    directives: tuple[PluginDirective, ...]

    def of(self, name: str) -> Sequence[PluginDirective]:
        return [directive for directive in self.directives if directive.name == name]


class Corefile(Struct, frozen=True):
    blocks: tuple[ServerBlock, ...]

    @property
    def has_reload(self) -> bool:
        return any(block.of("reload") for block in self.blocks)

    def block_of(self, name: str, port: int = PORT) -> tuple[str, ServerBlock] | None:
        """Return the most specific zone of a name with its block; None if no server has it."""
        matches = [
            (zone, block)
            for block in self.blocks
            for zone, zone_port in block.zones
            if zone_port == port and is_in_zone(name, zone)
        ]
        return max(matches, key=lambda match: len(match[0]), default=None)


def is_in_zone(name: str, zone: str) -> bool:
    return not zone or name == zone or name.endswith(f".{zone}")


@lru_cache(maxsize=64)
def parse(text: str, path: str) -> Corefile:
    """Return what a Corefile says; raise `CorefileError` as CoreDNS ends."""
    return _Parser(text, path).corefile()


def _tokens(text: str) -> Iterator[Token]:
    for number, line in enumerate(text.splitlines(), start=1):
        starts = True
        for match in _TOKEN.finditer(line):
            word = match[2]
            if word is not None and word.startswith("#"):
                break
            unquoted = match[1].replace('\\"', '"') if word is None else word
            yield Token(unquoted, number, starts)
            starts = False


class _Parser:
    def __init__(self, text: str, path: str) -> None:
        self._tokens = [*_tokens(text)]
        self._path = path
        self._index = 0
        self._snippets: dict[str, tuple[PluginDirective, ...]] = {}

    def corefile(self) -> Corefile:
        blocks = list[ServerBlock]()
        while self._index < len(self._tokens):
            keys = self._keys()
            directives = self._directives()
            if keys[0].text.startswith("(") and keys[0].text.endswith(")"):
                self._snippets[keys[0].text[1:-1]] = directives
            else:
                blocks.append(ServerBlock(tuple(self._zones(keys)), directives))
        if not blocks:
            blocks = [ServerBlock((("", PORT),), (PluginDirective("whoami", ()),))]
        self._check_unique(blocks)
        return Corefile(tuple(blocks))

    def _keys(self) -> list[Token]:
        keys = list[Token]()
        while self._index < len(self._tokens):
            token = self._tokens[self._index]
            self._index += 1
            if token.text == "{":
                break
            keys.append(token)
        else:
            raise self._error(self._tokens[-1].line, "Unexpected EOF")
        if not keys:
            raise self._syntax_error(self._tokens[self._index - 1], "server block key")
        return keys

    def _directives(self) -> tuple[PluginDirective, ...]:
        """Read the directives of a server block, up to its closing brace."""
        found = list[PluginDirective]()
        while self._index < len(self._tokens):
            token = self._tokens[self._index]
            if token.text == "}":
                self._index += 1
                return tuple(found)
            found += self._directive()
            if len(found) > _MAX_DIRECTIVES:
                raise self._error(token.line, "too many directives")
        raise self._syntax_error(self._tokens[-1], "}")

    def _directive(self) -> Sequence[PluginDirective]:
        name = self._tokens[self._index]
        self._index += 1
        words, has_block = self._rest_of_line(name.line)
        block = self._block() if has_block else ()
        if name.text == "import":
            if not words:
                raise self._argument_error(name.line, name.text)
            return self._snippets.get(words[0], ())
        directive = PluginDirective(name.text, tuple(words), tuple(block), name.line)
        self._check(directive)
        return (directive,)

    def _rest_of_line(self, line: int) -> tuple[list[str], bool]:
        """Return the further words of a line, and whether an opening brace ends it."""
        words = list[str]()
        while self._index < len(self._tokens):
            token = self._tokens[self._index]
            if token.line != line or token.text == "}":
                break
            self._index += 1
            if token.text == "{":
                return words, True
            words.append(token.text)
        return words, False

    def _block(self) -> list[tuple[str, ...]]:
        """Return the lines of a plugin's block; those of a block inside it have no effect here."""
        lines, depth = list[tuple[str, ...]](), 1
        while self._index < len(self._tokens):
            token = self._tokens[self._index]
            self._index += 1
            if token.text == "}":
                depth -= 1
                if not depth:
                    return lines
                continue
            words, has_block = self._rest_of_line(token.line)
            if depth == 1:
                lines.append((token.text, *words))
            depth += has_block
        raise self._error(self._tokens[-1].line, "Unexpected EOF")

    def _zones(self, keys: Iterable[Token]) -> Iterator[tuple[str, int]]:
        for key in keys:
            for text in filter(None, key.text.split(",")):
                if text.startswith(_OTHER_SCHEMES):
                    yield text.partition("://")[2].rstrip(".").lower(), 0
                    continue
                match = _ADDRESS.fullmatch(text)
                if match is None:
                    raise CorefileError(
                        f"{self._path}:{key.line} - Error during parsing: address {text}: invalid zone or port"
                    )
                yield match[1].rstrip(".").lower(), int(match[2] or PORT)

    def _check_unique(self, blocks: Iterable[ServerBlock]) -> None:
        seen = set[tuple[str, int]]()
        for block in blocks:
            for zone, port in block.zones:
                if (zone, port) in seen and port:
                    raise CorefileError(f"cannot serve dns://{zone}.:{port} - it is already defined")
                seen.add((zone, port))

    # --- the rules of plugins

    def _check(self, directive: PluginDirective) -> None:
        name = directive.name
        if name not in _PLUGINS:
            raise self._error(directive.line, f"Unknown directive '{name}'")
        if name in _WITHOUT_ARGUMENTS - {"errors", "loop", "ready"} and directive.arguments:
            raise self._plugin_argument_error(directive, directive.arguments[0])
        for words in directive.block if name in _BLOCKS else ():
            if words[0] not in _BLOCKS[name] and not (name == "hosts" and parse_address(words[0])):
                if name == "hosts":
                    continue  # CoreDNS reads no line that does not begin with an address
                raise self._plugin_error(directive, f"unknown property '{words[0]}'")
        checks = {
            "forward": self._check_forward,
            "kubernetes": self._check_kubernetes,
            "rewrite": self._check_rewrite,
        }
        if name in checks:
            checks[name](directive)
        if name == "template":
            self._check_template(directive)

    def _check_forward(self, directive: PluginDirective) -> None:
        if not directive.arguments:
            raise self._plugin_argument_error(directive, "forward")
        if len(directive.arguments) == 1:
            raise self._plugin_argument_error(directive, directive.arguments[0])
        for target in directive.arguments[1:]:
            host = re.sub(r"^(dns|tls)://", "", target)
            address = parse_address(host) or parse_address(host.rpartition(":")[0].strip("[]"))
            if address is None and not target.startswith("/"):
                raise CorefileError(f'plugin/forward: not an IP address or file: "{target}"')

    def _check_kubernetes(self, directive: PluginDirective) -> None:
        for arguments in directive.lines("pods"):
            if len(arguments) != 1:
                raise self._plugin_argument_error(directive, "pods")
            if arguments[0] not in _POD_MODES:
                raise CorefileError(
                    f"plugin/kubernetes: wrong value for pods: {arguments[0]},  must be one of: disabled, verified, insecure"
                )

    def _check_rewrite(self, directive: PluginDirective) -> None:
        rules = [directive.arguments] if directive.arguments else []
        if directive.block:
            rules = [
                (*directive.arguments, *words) if words[0] != "answer" else () for words in directive.block
            ]
        for words in filter(None, rules):
            rest = words[1:] if words[0] in ("stop", "continue") else words
            if len(rest) < _RULE_WORDS:
                raise self._plugin_error(directive, "too few arguments for a rewrite rule")
            if rest[:2] == ("name", "regex"):
                _check_rewritten_pattern(*rest[2:4])

    def _check_template(self, directive: PluginDirective) -> None:
        if len(directive.arguments) < 2:
            raise self._plugin_argument_error(directive, "template")
        for words in directive.lines("match"):
            for pattern in words:
                self._check_pattern(directive, pattern)
        if not directive.block:
            return
        for words in directive.lines("answer"):
            text = " ".join(words)
            if text.count("{{") != text.count("}}"):
                raise self._plugin_error(
                    directive, f"could not compile template: {text}, template: answer:1: unclosed action"
                )

    def _check_pattern(self, directive: PluginDirective, pattern: str) -> None:
        try:
            pattern_of(pattern)
        except RegexpError as error:
            raise self._plugin_error(directive, f"could not parse regex: {pattern}, {error}") from error

    # --- messages

    def _error(self, line: int, message: str) -> CorefileError:
        return CorefileError(f"{self._path}:{line} - Error during parsing: {message}")

    def _syntax_error(self, token: Token, expected: str) -> CorefileError:
        return CorefileError(
            f"{self._path}:{token.line} - Syntax error: Unexpected token '{token.text}', expecting '{expected}'"
        )

    def _argument_error(self, line: int, after: str) -> CorefileError:
        return self._error(line, f"Wrong argument count or unexpected line ending after '{after}'")

    def _plugin_error(self, directive: PluginDirective, message: str) -> CorefileError:
        return CorefileError(f"plugin/{directive.name}: {self._error(directive.line, message)}")

    def _plugin_argument_error(self, directive: PluginDirective, after: str) -> CorefileError:
        return CorefileError(f"plugin/{directive.name}: {self._argument_error(directive.line, after)}")


def _check_rewritten_pattern(pattern: str, new: str = "") -> None:
    try:
        groups = pattern_of(pattern).groups
    except RegexpError as error:
        raise CorefileError(f"plugin/rewrite: invalid regex matching pattern: {pattern}") from error
    if sum(f"{{{number}}}" in new for number in range(_MAX_GROUPS + 1)) > groups:
        raise CorefileError(
            f"plugin/rewrite: the rewrite regex pattern ({new}) uses more subexpressions than its corresponding matching regex pattern ({pattern})"
        )


@memoize(256, max_length=300)
def pattern_of(text: str) -> CapturingPattern:
    """Return a pattern of a Corefile; raise `RegexpError` if Go does not accept it."""
    return capturing_pattern(text)
