"""The syntax of httpd's configuration: directives and sections, with what is read at once, such as modules and included files. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from posixpath import join
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.yaml_decode import load

_DATA: Final = Path(__file__).with_name("directives.yaml")
_MAX_DIRECTIVES: Final = 20_000
_MAX_DEPTH: Final = 30
_MAX_EXPANDED: Final = 1 << 20
"""The length of all values of variables; httpd has 16 MiB for a line, and variables that contain others twice would double with each."""
_VARIABLE: Final = re.compile(r"\$\{([^}$]+)\}")
_STATIC: Final = frozenset({"core", "so", "http"})
"""The modules that are compiled in."""
_AT_ONCE: Final = frozenset({"<ifmodule", "<ifdefine", "<ifversion", "<iffile", "<ifdirective", "<ifsection"})
"""The sections whose content counts as that of what is around them."""
_LISTED: Final = frozenset(
    {"<directory", "<directorymatch", "<location", "<locationmatch", "<files", "<filesmatch", "<virtualhost", "<proxy", "<proxymatch", "<if",
     "<elseif", "<limit", "<limitexcept", "<requireall", "<requireany", "<requirenone"}
)  # fmt: skip
OTHER_MODULES: Final = frozenset(
    [
        "allowmethods",
        "asis",
        "auth_form",
        "authn_anon",
        "authn_dbd",
        "authn_dbm",
        "authn_socache",
        "authnz_fcgi",
        "authnz_ldap",
        "authz_dbd",
        "authz_dbm",
        "authz_host",
        "authz_owner",
        "authz_user",
        "bucketeer",
        "cache_socache",
        "case_filter",
        "case_filter_in",
        "cgi",
        "charset_lite",
        "data",
        "dav_lock",
        "dbd",
        "dialup",
        "dumpio",
        "echo",
        "file_cache",
        "heartbeat",
        "heartmonitor",
        "lbmethod_bybusyness",
        "lbmethod_byrequests",
        "lbmethod_bytraffic",
        "lbmethod_heartbeat",
        "ldap",
        "log_debug",
        "log_forensic",
        "lua",
        "macro",
        "md",
        "mime_magic",
        "mpm_prefork",
        "mpm_worker",
        "optional_fn_export",
        "optional_fn_import",
        "optional_hook_export",
        "optional_hook_import",
        "proxy_ajp",
        "proxy_balancer",
        "proxy_express",
        "proxy_fdpass",
        "proxy_hcheck",
        "proxy_html",
        "proxy_http",
        "proxy_http2",
        "proxy_scgi",
        "proxy_uwsgi",
        "ratelimit",
        "reflector",
        "session",
        "session_cookie",
        "session_crypto",
        "session_dbd",
        "slotmem_plain",
        "slotmem_shm",
        "socache_dbm",
        "socache_memcache",
        "socache_redis",
        "socache_shmcb",
        "status",
        "suexec",
        "unique_id",
        "watchdog",
        "xml2enc",
    ]
)
"""The modules without directives, and those whose directives are not listed."""


class HttpdConfigurationError(Exception):
    """The configuration is invalid; the message is that of httpd, with the file and the line."""


class HttpdDirective(Struct, frozen=True, kw_only=True):
    name: str
    """The name as it is written; that of a section begins with `<`."""
    arguments: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    block: "tuple[HttpdDirective, ...] | None" = None

    @property
    def key(self) -> str:
        return self.name.lower()

    def error(self, message: str) -> HttpdConfigurationError:
        return HttpdConfigurationError(
            f"AH00526: Syntax error on line {self.line} of {self.file}:\n{message}"
        )

    def error_at_once(self, message: str) -> HttpdConfigurationError:
        """Return the error of what is read at once."""
        return HttpdConfigurationError(f"httpd: Syntax error on line {self.line} of {self.file}: {message}")


ReadFiles = Callable[[str], Sequence[tuple[str, str]]]
"""Returns the files of a path, which may be a pattern or a folder, each with its text; raises `OSError` for a missing one."""


class ReadConfiguration(Struct, kw_only=True):
    directives: tuple[HttpdDirective, ...] = ()
    modules: dict[str, None] = {}
    """The modules that are loaded, without those that are compiled in."""
    unknown_modules: list[str] = []
    """Modules of the container's own files, whose directives nobody knows."""
    defines: dict[str, str] = {}
    warnings: list[str] = []
    root: str = "/usr/local/apache2"


class Reader:
    """Reads a file and those that it includes."""

    def __init__(
        self,
        read_files: ReadFiles,
        has_file: Callable[[str], bool],
        environment: Mapping[str, str],
        root: str,
        defines: Sequence[str] = (),
    ) -> None:
        self._read_files = read_files
        self._has_file = has_file
        self._environment = environment
        self.result = ReadConfiguration(
            modules={}, unknown_modules=[], defines=dict.fromkeys(defines, ""), warnings=[], root=root
        )
        self._count = 0
        self._expanded = 0

    def read(self, path: str) -> ReadConfiguration:
        try:
            files = self._read_files(path)
        except OSError as error:
            raise HttpdConfigurationError(
                f"httpd: Could not open configuration file {path}: {error.strerror}"
            ) from error
        self.result.directives = tuple(each for name, text in files for each in self._file(name, text, 0))
        return self.result

    def _file(self, name: str, text: str, depth: int) -> list[HttpdDirective]:
        lines = _Lines(name, text)
        return self._block(lines, None, depth)

    def _block(
        self, lines: "_Lines", section: HttpdDirective | None, depth: int, *, is_skipped: bool = False
    ) -> list[HttpdDirective]:
        found: list[HttpdDirective] = []
        while (line := lines.next()) is not None:
            directive = self._directive(lines, line, expands=not is_skipped)
            if directive.name.startswith("</"):
                name = directive.name[2:].rstrip(">")
                if section is None:
                    raise directive.error_at_once(f"</{name}> without matching <{name}> section")
                if section.name[1:].lower() != name.lower():
                    raise directive.error_at_once(f"Expected </{section.name[1:]}> but saw </{name}>")
                return found
            found += self._finish(lines, directive, depth, is_skipped=is_skipped)
        if section is not None:
            place = f"{section.file}:{section.line}: {section.name}> was not closed."
            raise section.error_at_once(place)
        return found

    def _finish(
        self, lines: "_Lines", directive: HttpdDirective, depth: int, *, is_skipped: bool
    ) -> list[HttpdDirective]:
        self._count += 1
        if self._count > _MAX_DIRECTIVES or depth > _MAX_DEPTH:
            raise directive.error_at_once("Exceeded the maximum include directory depth")
        key = directive.key
        if key in _AT_ONCE:
            return self._block(
                lines, directive, depth + 1, is_skipped=is_skipped or not self._holds(directive)
            )
        if key in _LISTED or (key.startswith("<") and (key in modules_of_directives() or is_skipped)):
            block = self._block(lines, directive, depth + 1, is_skipped=is_skipped)
            return [] if is_skipped else [replace(directive, block=tuple(block))]
        if is_skipped:
            return []
        if key in ("include", "includeoptional"):
            return self._include(directive, depth, is_optional=key != "include")
        if key in ("define", "undefine"):
            self._define(directive)
            return []
        if key == "loadmodule":
            self._load_module(directive)
        elif key == "serverroot":
            self._set_root(directive)
        return [directive]

    def _define(self, directive: HttpdDirective) -> None:
        name, value = "".join(directive.arguments[:1]), "".join(directive.arguments[1:2])
        if directive.key == "undefine":
            self.result.defines.pop(name, None)
            return
        if not 1 <= len(directive.arguments) <= 2:
            raise directive.error_at_once(
                "Define takes 1-2 arguments, Define a variable, optionally to a value.  Same as passing -D to the command line."
            )
        self.result.defines[name] = value

    def _set_root(self, directive: HttpdDirective) -> None:
        root = "".join(directive.arguments[:1])
        if not self._has_file(root):
            raise directive.error_at_once("ServerRoot must be a valid directory")
        self.result.root = root.rstrip("/") or "/"

    def _holds(self, section: HttpdDirective) -> bool:
        text = section.arguments[0] if section.arguments else ""
        negated, name = text.startswith("!"), text.removeprefix("!")
        match section.key:
            case "<ifmodule":
                known = name.removesuffix("_module").removeprefix("mod_").removesuffix(".c")
                holds = known in self.result.modules or known in _STATIC
            case "<ifdefine":
                holds = name in self.result.defines
            case "<iffile":
                holds = self._has_file(join(self.result.root, name))
            case "<ifversion":
                return _matches_version(section.arguments)
            case "<ifdirective":
                holds = name.lower() in modules_of_directives()
            case _:
                holds = f"<{name.lower()}" in _LISTED
        return holds is not negated

    def _load_module(self, directive: HttpdDirective) -> None:
        if len(directive.arguments) != 2:
            raise directive.error_at_once(
                "LoadModule takes two arguments, a module name and the name of a shared object file to load it from"
            )
        module, path = directive.arguments
        name = module.removesuffix("_module")
        if name in self.result.modules:
            self.result.warnings.append(f"AH01574: module {module} is already loaded, skipping")
            return
        if name in _STATIC:
            raise directive.error_at_once(f"module {module} is built-in and can't be loaded")
        full = join(self.result.root, path)
        file = path.rpartition("/")[2].removeprefix("mod_").removesuffix(".so")
        if file not in known_modules():
            if not self._has_file(full):
                raise directive.error_at_once(
                    f"Cannot load {path} into server: {full}: cannot open shared object file: No such file or directory"
                )
            self.result.unknown_modules.append(name)
        elif name != file:
            raise directive.error_at_once(
                f"Can't locate API module structure `{module}' in file {full}: {full}: undefined symbol: {module}"
            )
        self.result.modules[name] = None

    def _include(self, directive: HttpdDirective, depth: int, *, is_optional: bool) -> list[HttpdDirective]:
        if not directive.arguments:
            raise directive.error_at_once(
                f"{directive.name} takes one argument, Name(s) of the config file(s) to be included"
            )
        path = join(self.result.root, directive.arguments[0])
        try:
            files = self._read_files(path)
        except OSError as error:
            if is_optional:
                return []
            if any(char in path for char in "*?["):
                folder = path[: min(path.index(char) for char in "*?[" if char in path)].rpartition("/")[0]
                raise directive.error_at_once(
                    f"Include/IncludeOptional: Could not open directory {folder}: {error.strerror}"
                ) from error
            raise directive.error_at_once(
                f"Could not open configuration file {path}: {error.strerror}"
            ) from error
        return [each for name, text in files for each in self._file(name, text, depth + 1)]

    def _directive(self, lines: "_Lines", line: str, *, expands: bool) -> HttpdDirective:
        if expands and "${" in line:
            line = self._expand(lines, line)
        name, _, rest = line.partition(" ") if " " in line else line.partition("\t")
        name, rest = name.strip(), rest.strip()
        if "\t" in name:
            name, _, more = name.partition("\t")
            rest = f"{more} {rest}".strip()
        directive = HttpdDirective(name=name, file=lines.name, line=lines.line)
        if not name.startswith("<"):
            return replace(directive, arguments=_words(rest))
        if name.startswith("</"):
            return directive
        if not line.rstrip().endswith(">"):
            raise directive.error(f"{name}> directive missing closing '>'")
        name, rest = name.rstrip(">"), rest.removesuffix(">")
        return replace(directive, name=name, arguments=_words(rest))

    def _expand(self, lines: "_Lines", line: str) -> str:
        """Return a line with the values of its variables, which may be long ones themselves."""
        parts, end = list[str](), 0
        for match in _VARIABLE.finditer(line):
            parts += [line[end : match.start()], self._value(match)]
            self._expanded += len(parts[-1])
            end = match.end()
            if self._expanded > _MAX_EXPANDED:
                place = HttpdDirective(name="", file=lines.name, line=lines.line)
                raise place.error_at_once("Line too long")
        return "".join([*parts, line[end:]])

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        value = self.result.defines.get(name) or self._environment.get(name)
        if value is None:
            self.result.warnings.append(f"AH00111: Config variable ${{{name}}} is not defined")
            return match[0]
        return value


class _Lines:
    """The lines of a file without comments; those that end with a backslash go on."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.line = 0
        self._lines = text.split("\n")

    def next(self) -> str | None:
        while self.line < len(self._lines):
            parts = [self._next_line()]
            while parts[-1].endswith("\\") and self.line < len(self._lines):
                parts[-1] = parts[-1][:-1]
                parts.append(self._next_line())
            text = "".join(parts).strip()
            if text and not text.startswith("#"):
                return text
        return None

    def _next_line(self) -> str:
        self.line += 1
        return self._lines[self.line - 1].rstrip("\r")


def _words(text: str) -> tuple[str, ...]:
    words, at = list[str](), 0
    while at < len(text):
        char = text[at]
        if char in " \t":
            at += 1
            continue
        word = list[str]()
        if char in "\"'":
            at += 1
            while at < len(text) and text[at] != char:
                if text[at] == "\\" and text[at + 1 : at + 2] in (char, "\\"):
                    at += 1
                word.append(text[at])
                at += 1
            at += 1
        else:
            while at < len(text) and text[at] not in " \t":
                word.append(text[at])
                at += 1
        words.append("".join(word))
    return tuple(words)


def _matches_version(arguments: Sequence[str]) -> bool:
    operator, text = (arguments[0], arguments[1]) if len(arguments) > 1 else ("=", "".join(arguments))
    numbers = [int(part) for part in text.split(".") if part.isdecimal() and len(part) < 5]
    own = [2, 4, 66][: len(numbers)]
    results = {
        "=": own == numbers,
        "==": own == numbers,
        ">": own > numbers,
        ">=": own >= numbers,
        "<": own < numbers,
        "<=": own <= numbers,
    }
    return results.get(operator, False)


@cache
def modules_of_directives() -> Mapping[str, tuple[str, str]]:
    """Return the module of each directive, by its name in lower case, and where it may stand: server, section or anywhere."""
    found: dict[str, tuple[str, str]] = {}
    for module, places in load(_DATA.read_bytes()).tree.items():
        for place, names in places.items():
            found |= {name.lower(): (module, place) for name in names.split()}
    return found


@cache
def known_modules() -> frozenset[str]:
    return OTHER_MODULES | {module for module, _ in modules_of_directives().values()}


def is_loaded(module: str, modules: Mapping[str, None]) -> bool:
    if module in _STATIC or module in modules:
        return True
    others = {"mpm_event": ("mpm_worker", "mpm_prefork"), "cgid": ("cgi",)}
    return any(other in modules for other in others.get(module, ()))
