"""What the directives of httpd mean: addresses, virtual hosts, aliases, proxies, rewrites, access, logs. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from posixpath import join
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.regexp.perl import PerlPatternError
from mockube.extras.servers.patterns import (
    ConfiguredPattern,
    compile_text,
    matches_name,
)

from .parser import (
    HttpdConfigurationError,
    HttpdDirective,
    ReadConfiguration,
    is_loaded,
    modules_of_directives,
)

ROOT: Final = "/usr/local/apache2"
_MAX_PORT: Final = 65535
_ONE_ARGUMENT: Final = {
    "servername": "The hostname and port of the server",
    "documentroot": "Root directory of the document tree",
    "serverroot": "Common directory of server-related files (logs, confs, etc.)",
    "errorlog": "The filename of the error log",
    "serveradmin": "The email address of the server administrator",
    "user": "Effective user id for this server",
    "group": "Effective group id for this server",
    "pidfile": "A file for logging the server process ID",
    "timeout": "Timeout duration (sec)",
    "typesconfig": "the MIME types config file",
    "fallbackresource": "Set a default handler",
}
_FLAGS: Final = frozenset(
    {"keepalive", "rewriteengine", "proxyrequests", "proxypreservehost", "usecanonicalname", "sslengine", "sslproxyengine", "enablesendfile",
     "directoryslash", "extendedstatus", "expiresactive"}
)  # fmt: skip
_OPTIONS: Final = frozenset(
    {
        "indexes",
        "includes",
        "includesnoexec",
        "followsymlinks",
        "symlinksifownermatch",
        "execcgi",
        "multiviews",
        "runscripts",
        "all",
        "none",
    }
)
_PROVIDERS: Final = frozenset(
    {
        "all",
        "ip",
        "host",
        "local",
        "method",
        "env",
        "expr",
        "valid-user",
        "user",
        "group",
        "not",
        "forward-dns",
    }
)
_NOT_SIMULATED: Final = frozenset(
    {"scriptaliasmatch", "sslengine", "setoutputfilter", "addoutputfilter", "substitute", "dav", "userdir", "virtualdocumentroot",
     "proxyhtmlenable", "authldapurl", "cacheenable", "headerfilter", "action", "rewritemap", "xbithack", "mdomain", "<if", "<elseif",
     "<else", "<macro", "use", "remoteipheader", "remoteipproxyprotocol", "modsecurity", "addencoding", "luahook", "setenvif",
     "setenvifnocase", "browsermatch", "browsermatchnocase", "expiresbytype", "expiresdefault", "addcharset"}
)  # fmt: skip
"""The directives that may change answers, and that the simulation leaves out."""
REDIRECTS: Final = {"permanent": 301, "temp": 302, "seeother": 303, "gone": 410}
_LEVELS: Final = re.compile(r"(?:[\w.]+:)?(?:emerg|alert|crit|error|warn|notice|info|debug|trace[1-8])")


class RewriteRule(Struct, frozen=True, kw_only=True):
    """A RewriteRule with its conditions."""

    pattern: ConfiguredPattern
    negated: bool = False
    substitution: str
    flags: Mapping[str, str] = field(default_factory=dict)
    conditions: "tuple[RewriteCondition, ...]" = ()


class RewriteCondition(Struct, frozen=True, kw_only=True):
    text: str
    test: str
    pattern: ConfiguredPattern | None = None
    negated: bool = False
    flags: Mapping[str, str] = field(default_factory=dict)


class HttpdSection(Struct, frozen=True, kw_only=True):
    """A section for folders, paths or files, or a server itself."""

    kind: str = ""
    """directory, location, files, or "" for a server."""
    path: str = ""
    pattern: ConfiguredPattern | None = None
    directives: tuple[HttpdDirective, ...] = ()
    rules: tuple[RewriteRule, ...] = ()

    def last(self, name: str) -> tuple[str, ...] | None:
        return next((each.arguments for each in reversed(self.directives) if each.key == name), None)

    def all(self, name: str) -> Iterator[tuple[str, ...]]:
        return (each.arguments for each in self.directives if each.key == name)


class HttpdHost(Struct, frozen=True, kw_only=True):
    """The main server, or a virtual host."""

    name: str = ""
    aliases: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """The addresses with their ports, as *:80; empty for the main server."""
    own: HttpdSection
    sections: tuple[HttpdSection, ...] = ()
    file: str = ""
    line: int = 0

    def listens(self, port: int) -> bool:
        return any(
            address.rpartition(":")[2] in (str(port), "*") or ":" not in address for address in self.addresses
        )


class HttpdConfiguration(Struct, frozen=True, kw_only=True):
    main: HttpdHost
    hosts: tuple[HttpdHost, ...] = ()
    ports: tuple[int, ...] = ()
    root: str = ROOT
    formats: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    not_simulated: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """The names of the servers that are proxied to, which are looked up when they are needed."""

    def full_path(self, path: str) -> str:
        return join(self.root, path)

    def host_for(self, port: int, name: str) -> HttpdHost:
        candidates = [host for host in self.hosts if host.listens(port)]
        name = name.lower().rstrip(".")
        for host in candidates:
            if name and (name == host.name.lower() or any(_is_alias(name, alias) for alias in host.aliases)):
                return host
        return candidates[0] if candidates else self.main


def _is_alias(name: str, alias: str) -> bool:
    return matches_name(alias.lower().replace("[", "[[]"), name)


FileTest = Callable[[str], str]
"""Returns what a path is: file, folder, or "" if it does not exist."""


def configuration_of(read: ReadConfiguration, kind: FileTest) -> HttpdConfiguration:
    """Return what directives mean; raise `HttpdConfigurationError` for an invalid one."""
    return _Meaning(read, kind).configuration()


class _Meaning:
    def __init__(self, read: ReadConfiguration, kind: FileTest) -> None:
        self._read = read
        self._kind = kind
        self._unknown: dict[str, None] = {}
        self._warnings = list(read.warnings)
        self._formats: dict[str, str] = {}
        self._ports: dict[tuple[str, int], None] = {}

    def configuration(self) -> HttpdConfiguration:
        if not any(name.startswith("mpm_") for name in self._read.modules):
            raise HttpdConfigurationError("AH00534: httpd: Configuration error: No MPM loaded.")
        if sum(name.startswith("mpm_") for name in self._read.modules) > 1:
            raise HttpdConfigurationError("AH00534: httpd: Configuration error: More than one MPM loaded.")
        for each in self._read.directives:
            self._check(each, ())
        main = self._host(self._read.directives, None)
        hosts = [
            self._host(each.block or (), each) for each in self._read.directives if each.key == "<virtualhost"
        ]
        for pattern in _patterns([main, *hosts]):
            if pattern.is_unsupported:
                self._unknown[f"the pattern {pattern.text}"] = None
        if not self._ports:
            raise HttpdConfigurationError(
                "no listening sockets available, shutting down\nAH00015: Unable to open logs"
            )
        return HttpdConfiguration(
            main=main,
            hosts=tuple(hosts),
            ports=tuple({port: None for _, port in self._ports}),
            root=self._read.root,
            formats=self._formats,
            modules=tuple(self._read.modules),
            warnings=tuple(self._warnings),
            not_simulated=tuple(f"{name} of httpd" for name in self._unknown),
        )

    # --- the checks

    def _check(self, directive: HttpdDirective, outer: tuple[str, ...]) -> None:
        known = modules_of_directives().get(directive.key)
        if known is None or not is_loaded(known[0], self._read.modules):
            if known is None and self._read.unknown_modules:
                self._unknown[f"the directive {directive.name}"] = None
                return
            raise directive.error(
                f"Invalid command '{directive.name}', perhaps misspelled or defined by a module not included in the server configuration"
            )
        self._check_place(directive, known[1], outer)
        if (
            directive.block is not None
            and not directive.arguments
            and directive.key not in _WITHOUT_ARGUMENTS
        ):
            raise directive.error(f"{directive.name}> directive requires additional arguments")
        self._check_arguments(directive, outer)
        if directive.key in _NOT_SIMULATED and not _is_off(directive):
            self._unknown[f"the directive {directive.name.lstrip('<')}"] = None
        for each in directive.block or ():
            self._check(each, (*outer, directive.key))

    def _check_place(self, directive: HttpdDirective, place: str, outer: tuple[str, ...]) -> None:
        in_section = any(each != "<virtualhost" for each in outer)
        if directive.key in ("listen", "<virtualhost") and "<virtualhost" in outer:
            name = f"{directive.name}>" if directive.block is not None else directive.name
            raise directive.error(f"{name} cannot occur within <VirtualHost> section")
        if place == "server" and in_section:
            section = next(each for each in reversed(outer) if each != "<virtualhost")
            raise directive.error(
                f"{directive.name} not allowed in {_SECTION_NAMES.get(section, section)}> context"
            )
        if place == "section" and not in_section:
            raise directive.error(f"{directive.name.lstrip('<')} not allowed here")

    def _check_arguments(self, directive: HttpdDirective, outer: tuple[str, ...]) -> None:
        key, arguments = directive.key, directive.arguments
        if key in _ONE_ARGUMENT and len(arguments) != 1:
            raise directive.error(f"{directive.name} takes one argument, {_ONE_ARGUMENT[key]}")
        if key in _FLAGS and (len(arguments) != 1 or arguments[0].lower() not in ("on", "off")):
            raise directive.error(f"{directive.name} must be On or Off")
        match key:
            case "listen":
                self._listen(directive)
            case "documentroot":
                self._document_root(directive, outer)
            case "logformat" if len(arguments) == 2:
                self._formats[arguments[1]] = arguments[0]
            case _ if key in _CHECKS:
                _CHECKS[key](directive, "<location" in outer)
            case _:
                pass

    def _listen(self, directive: HttpdDirective) -> None:
        if not 1 <= len(directive.arguments) <= 2:
            raise directive.error("Listen requires 1 or 2 arguments.")
        text = directive.arguments[0]
        address, _, port_text = text.rpartition(":")
        port = int_or_none(port_text) if port_text.isdecimal() else None
        if port is None:
            raise directive.error("Port must be specified")
        if not 0 < port <= _MAX_PORT:
            raise directive.error("Invalid address or port")
        at = (address or "*", port)
        if at in self._ports:
            raise directive.error("Cannot define multiple Listeners on the same IP:port")
        self._ports[at] = None

    def _document_root(self, directive: HttpdDirective, outer: tuple[str, ...]) -> None:
        path = directive.arguments[0]
        if self._kind(join(self._read.root, path)) == "folder":
            return
        if outer:
            self._warnings.append(f"AH00112: Warning: DocumentRoot [{path}] does not exist")
        else:
            raise directive.error(f"DocumentRoot '{path}' is not a directory, or is not readable")

    # --- the meaning

    def _host(self, directives: Sequence[HttpdDirective], section: HttpdDirective | None) -> HttpdHost:
        own = [each for each in directives if each.block is None]
        name = next((each.arguments[0] for each in reversed(own) if each.key == "servername"), "")
        return HttpdHost(
            name=name.rpartition("://")[2].partition(":")[0],
            aliases=tuple(alias for each in own if each.key == "serveralias" for alias in each.arguments),
            addresses=section.arguments if section is not None else (),
            own=HttpdSection(directives=tuple(own), rules=tuple(_rules(own))),
            sections=tuple(self._sections(directives)),
            file=section.file if section is not None else "",
            line=section.line if section is not None else 0,
        )

    def _sections(self, directives: Sequence[HttpdDirective]) -> Iterator[HttpdSection]:
        for each in directives:
            kind = each.key.removeprefix("<").removesuffix("match")
            if each.block is None or kind not in ("directory", "location", "files"):
                continue
            arguments = [argument for argument in each.arguments if argument != "~"]
            is_pattern = each.key.endswith("match") or "~" in each.arguments
            path = arguments[0] if arguments else ""
            inner = tuple(_flattened(each.block))
            yield HttpdSection(
                kind=kind,
                path=path if path == "/" else path.rstrip("/") if kind == "directory" else path,
                pattern=_pattern(each, path, each.name.lstrip("<")) if is_pattern else None,
                directives=inner,
                rules=tuple(_rules(inner)),
            )
            yield from self._sections(each.block)


def _patterns(hosts: Iterable[HttpdHost]) -> Iterator[ConfiguredPattern]:
    """Yield the patterns of rules, of conditions and of sections."""
    for host in hosts:
        for section in (host.own, *host.sections):
            if section.pattern is not None:
                yield section.pattern
            for rule in section.rules:
                yield rule.pattern
                yield from (each.pattern for each in rule.conditions if each.pattern is not None)


_WITHOUT_ARGUMENTS: Final = frozenset({"<requireall", "<requireany", "<requirenone", "<else"})
_SECTION_NAMES: Final = {
    "<directory": "<Directory", "<directorymatch": "<DirectoryMatch", "<location": "<Location", "<locationmatch": "<LocationMatch",
    "<files": "<Files", "<filesmatch": "<FilesMatch", "<proxy": "<Proxy", "<if": "<If",
}  # fmt: skip


def _is_off(directive: HttpdDirective) -> bool:
    return [argument.lower() for argument in directive.arguments[:1]] in (["off"], ["disabled"])


def _flattened(directives: Sequence[HttpdDirective]) -> Iterator[HttpdDirective]:
    """Yield the directives of a section; those of RequireAny and Limit count as its own."""
    for each in directives:
        if each.block is None:
            yield each
        elif each.key in ("<requireany", "<requireall", "<limit"):
            yield from _flattened(each.block)


def _check_options(directive: HttpdDirective, _: bool) -> None:  # noqa: FBT001 - as the others
    signed = [option[:1] in "+-" for option in directive.arguments]
    if any(signed) and not all(signed):
        raise directive.error("Either all Options must start with + or -, or no Option may.")
    for option in directive.arguments:
        if option.lstrip("+-").lower() not in _OPTIONS:
            raise directive.error(f"Illegal option {option}")


def _check_error_document(directive: HttpdDirective, _: bool) -> None:  # noqa: FBT001 - as the others
    if len(directive.arguments) < 2:
        raise directive.error("ErrorDocument takes two arguments, Change responses for HTTP errors")
    code = directive.arguments[0]
    if not code.isdecimal() or int(code[:4]) not in {status.value for status in HTTPStatus}:
        raise directive.error(f"Unsupported HTTP response code {code}")


def _check_proxy(directive: HttpdDirective, in_location: bool) -> None:  # noqa: FBT001 - as the others
    arguments = [argument for argument in directive.arguments if "=" not in argument or "://" in argument]
    target = arguments[0] if in_location and len(arguments) == 1 else "".join(arguments[1:2])
    if not target:
        raise directive.error("ProxyPass|ProxyPassMatch needs a path when not defined in a location")
    if target != "!" and "://" not in target and not target.startswith("unix:"):
        raise directive.error(f"ProxyPass URL must be absolute!: {target}")


class HttpdRedirect(Struct, frozen=True):
    status: int
    path: str
    target: str


def redirect_of(directive: HttpdDirective, in_location: bool) -> HttpdRedirect:  # noqa: FBT001 - where it stands
    """Return the meaning of a Redirect; raise an error for an invalid one."""
    words = list(directive.arguments)
    status = {"redirectpermanent": 301, "redirecttemp": 302}.get(directive.key, 302)
    if directive.key == "redirect" and words and (words[0].lower() in REDIRECTS or words[0].isdecimal()):
        first = words.pop(0).lower()
        status = REDIRECTS.get(first) or int(first[:4])
    path = "" if in_location and len(words) == 1 else words.pop(0) if words else ""
    target = words.pop(0) if words else ""
    is_redirect = 300 <= status <= 399
    if is_redirect and not target:
        raise directive.error("URL to redirect to is missing")
    if not is_redirect and target:
        raise directive.error("Redirect URL not valid for this status")
    return HttpdRedirect(status, path, target)


def _pattern(directive: HttpdDirective, text: str, name: str) -> ConfiguredPattern:
    try:
        return compile_text(text)
    except PerlPatternError as error:
        problem = f"{name}: cannot compile regular expression '{text}'"
        if directive.block is not None:
            problem = "Regex could not be compiled"
        raise directive.error(problem) from error


_RULE_FLAGS: Final = frozenset(
    [
        "B",
        "C",
        "CO",
        "DPI",
        "E",
        "F",
        "G",
        "H",
        "L",
        "N",
        "NC",
        "NE",
        "NS",
        "P",
        "PT",
        "QSA",
        "QSD",
        "QSL",
        "R",
        "S",
        "T",
        "END",
        "BNP",
        "BNE",
        "BCTLS",
        "UNSAFEALLOW3F",
        "UNSAFEPREFIXSTAT",
        "UNC",
    ]
)
_LONG_FLAGS: Final = {
    "last": "L", "redirect": "R", "nocase": "NC", "forbidden": "F", "gone": "G", "proxy": "P", "passthrough": "PT", "qsappend": "QSA",
    "qsdiscard": "QSD", "chain": "C", "cookie": "CO", "env": "E", "next": "N", "noescape": "NE", "nosubreq": "NS", "skip": "S", "type": "T",
    "ornext": "OR", "novary": "NV", "handler": "H",
}  # fmt: skip


def _flags(directive: HttpdDirective, text: str, known: frozenset[str]) -> dict[str, str]:
    flags = {}
    for part in text.strip("[]").split(","):
        name, _, value = part.strip().partition("=")
        name = _LONG_FLAGS.get(name.lower(), name.upper() if name.upper() in known else name)
        if name and name not in known:
            raise directive.error(f"{directive.name}: unknown flag '{part.strip()}'")
        if name:
            flags[name] = value
    return flags


def _rules(directives: Sequence[HttpdDirective]) -> Iterator[RewriteRule]:
    conditions: list[RewriteCondition] = []
    for each in directives:
        words = each.arguments
        if each.key in ("rewritecond", "rewriterule") and len(words) < 2:
            raise each.error(f"{each.name}: bad argument line '{' '.join(words)}'")
        if each.key == "rewritecond":
            flags = _flags(each, words[2], frozenset({"NC", "OR", "NV"})) if len(words) > 2 else {}
            test = words[1].removeprefix("!")
            is_pattern = not test.startswith(("-", "=", "<", ">"))
            pattern = _compiled(each, test, flags) if is_pattern else None
            conditions.append(
                RewriteCondition(
                    text=words[0], test=test, pattern=pattern, negated=words[1].startswith("!"), flags=flags
                )
            )
        elif each.key == "rewriterule":
            flags = _flags(each, words[2], _RULE_FLAGS) if len(words) > 2 else {}
            text = words[0].removeprefix("!")
            yield RewriteRule(
                pattern=_compiled(each, text, flags),
                negated=words[0].startswith("!"),
                substitution=words[1],
                flags=flags,
                conditions=tuple(conditions),
            )
            conditions = []


def _compiled(directive: HttpdDirective, text: str, flags: Mapping[str, str]) -> ConfiguredPattern:
    try:
        return compile_text(text, ignores_case="NC" in flags)
    except PerlPatternError as error:
        raise directive.error(f"{directive.name}: cannot compile regular expression '{text}'") from error


def _check_level(directive: HttpdDirective, _: bool) -> None:  # noqa: FBT001 - as the others
    if any(not _LEVELS.fullmatch(level.lower()) for level in directive.arguments):
        raise directive.error(
            "Log level keyword must be one of emerg/alert/crit/error/warn/notice/info/debug/trace1/.../trace8"
        )


def _check_require(directive: HttpdDirective, _: bool) -> None:  # noqa: FBT001 - as the others
    provider = "".join(directive.arguments[:1])
    if provider.lower() not in _PROVIDERS:
        raise directive.error(f"Unknown Authz provider: {provider}")


def _count(least: int, most: int, message: str) -> Callable[[HttpdDirective, bool], None]:
    """Return the check of the number of arguments, outside of <Location>."""

    def check(directive: HttpdDirective, in_location: bool) -> None:  # noqa: FBT001 - as the others
        if not in_location and not least <= len(directive.arguments) <= most:
            raise directive.error(message.format(directive.name))

    return check


def _check_redirect(directive: HttpdDirective, in_location: bool) -> None:  # noqa: FBT001 - as the others
    redirect_of(directive, in_location)


def _check_matched_pattern(directive: HttpdDirective, _: bool) -> None:  # noqa: FBT001 - as the others
    """Check the pattern of AliasMatch, RedirectMatch or ProxyPassMatch, before which a status may stand."""
    words = [word.lower() for word in directive.arguments]
    if directive.key == "proxypassmatch" and len(words) == 1:
        return  # that is the target of a <LocationMatch>
    has_status = directive.key == "redirectmatch" and (
        words[:1] and (words[0] in REDIRECTS or words[0].isdecimal())
    )
    for text in directive.arguments[1:2] if has_status else directive.arguments[:1]:
        try:
            compile_text(text)
        except PerlPatternError as error:
            raise directive.error("Regular expression could not be compiled.") from error


def _check_environment_pattern(directive: HttpdDirective, _: bool) -> None:  # noqa: FBT001 - as the others
    place = 0 if directive.key.startswith("browsermatch") else 1
    for text in directive.arguments[place : place + 1]:
        try:
            compile_text(text)
        except PerlPatternError as error:
            raise directive.error(f"{directive.name} regex could not be compiled.") from error


_MANY: Final = 1000
_CHECKS: Final[Mapping[str, Callable[[HttpdDirective, bool], None]]] = {
    "options": _check_options,
    "loglevel": _check_level,
    "require": _check_require,
    "errordocument": _check_error_document,
    "redirect": _check_redirect,
    "redirectpermanent": _check_redirect,
    "redirecttemp": _check_redirect,
    "proxypass": _check_proxy,
    "aliasmatch": _check_matched_pattern,
    "redirectmatch": _check_matched_pattern,
    "proxypassmatch": _check_matched_pattern,
    "setenvif": _check_environment_pattern,
    "setenvifnocase": _check_environment_pattern,
    "browsermatch": _check_environment_pattern,
    "browsermatchnocase": _check_environment_pattern,
    "customlog": _count(
        2,
        3,
        "CustomLog takes two or three arguments, a file name, a custom log format string or format name, "
        'and an optional "env=" or "expr=" clause (see docs)',
    ),
    "logformat": _count(
        1, 2, "LogFormat takes 1-2 arguments, a log format string (see docs) and an optional format name"
    ),
    "alias": _count(2, 2, "Alias must have two arguments when used globally"),
    "proxypassreverse": _count(2, _MANY, "ProxyPassReverse needs a path when not defined in a location"),
    "header": _count(2, _MANY, "{} requires three arguments"),
    "requestheader": _count(2, _MANY, "{} requires three arguments"),
    "addtype": _count(
        2,
        _MANY,
        "AddType requires at least two arguments, a mime type followed by one or more file extensions",
    ),
}
"""The checks of arguments: each has the directive, and whether it stands in a <Location>."""
