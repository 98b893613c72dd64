"""Joins the modules of a page into one script, so that a file needs no other one.

The modules are our own, and of a plain form: each import and export is a statement on one line, and no circle of imports exists.
"""

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

_IMPORT: Final = re.compile(
    r"""^import ?(?:(?P<names>\{[^{}]*\})|(?P<default>\w+)) ?from ?"(?P<path>[^"]+)";""", re.MULTILINE
)
_EXPORT_FROM: Final = re.compile(
    r"""^export ?(?P<names>\{[^{}]*\}) ?from ?"(?P<path>[^"]+)";""", re.MULTILINE
)
_EXPORT_NAMES: Final = re.compile(r"(?:^|(?<=;|\}))export ?(?P<names>\{[^{}]*\});?", re.MULTILINE)
_EXPORT: Final = re.compile(
    r"^export (?P<kind>(?:async )?function\*?|class|const) (?P<name>\w+)", re.MULTILINE
)
_EXPORT_DEFAULT: Final = re.compile(r"(?:^|(?<=;))export default (?=function\()", re.MULTILINE)
_DEFAULT: Final = "$default"


def bundle(read: Callable[[str], str], entry: str, replaced: Mapping[str, str]) -> str:
    """Return a script with a module and all that it imports; `replaced` are modules that others take the place of."""
    scripts: dict[str, str] = {}
    exported: dict[str, Collection[str]] = {}

    def add(path: str, needed: Collection[str]) -> str:
        """Add a module after those that it imports, and return the name of its exports."""
        path = replaced.get(path, path)
        name = _name_of(path)
        if path not in scripts:
            text, exports = _linked(
                read(path),
                lambda imported, names: add(
                    posixpath.normpath(f"{posixpath.dirname(path)}/{imported}"), names
                ),
            )
            exported[path] = exports
            members = ", ".join(f"{new}: {old}" for new, old in sorted(exports.items()))
            scripts[path] = f"const {name} = (() => {{\n{text}\nreturn {{ {members} }};\n}})();"
        if missing := {*needed} - {*exported[path]}:
            raise ValueError(f"{path} does not export {', '.join(sorted(missing))}")
        return name

    add(entry, ())
    return "\n".join(scripts.values())


def _name_of(path: str) -> str:
    return "$" + re.sub(r"\W", "_", path)


def _linked(text: str, link: Callable[[str, Collection[str]], str]) -> tuple[str, Mapping[str, str]]:
    """Return a module without imports and exports, and its exports. `link` gets a path and the names that are needed of it."""
    exports: dict[str, str] = {}

    def take_import(found: re.Match[str]) -> str:
        if found["default"]:
            return f"const {found['default']} = {link(found['path'], (_DEFAULT,))}.{_DEFAULT};"
        source = link(found["path"], [old for old, _ in _names(found["names"])])
        return f"const {{ {', '.join(_renamed(found['names'], ': '))} }} = {source};"

    def take_exports_of(found: re.Match[str]) -> str:
        source = link(found["path"], [old for old, _ in _names(found["names"])])
        exports.update((new, f"{source}.{old}") for old, new in _names(found["names"]))
        return ""

    def take_names(found: re.Match[str]) -> str:
        exports.update((new, old) for old, new in _names(found["names"]))
        return ""

    def take_declaration(found: re.Match[str]) -> str:
        exports[found["name"]] = found["name"]
        return f"{found['kind']} {found['name']}"

    def take_default(_: re.Match[str]) -> str:
        exports[_DEFAULT] = _DEFAULT
        return f"const {_DEFAULT} = "

    for pattern, take in (
        (_IMPORT, take_import),
        (_EXPORT_FROM, take_exports_of),
        (_EXPORT_NAMES, take_names),
        (_EXPORT_DEFAULT, take_default),
        (_EXPORT, take_declaration),
    ):
        text = pattern.sub(take, text)
    return text.rstrip(), exports


def _names(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names of `{ a, b as c }`, each with the one that it gets."""
    for part in filter(None, map(str.strip, text.strip("{}").split(","))):
        old, _, new = part.partition(" as ")
        yield old.strip(), (new or old).strip()


def _renamed(text: str, separator: str) -> Iterator[str]:
    for old, new in _names(text):
        yield old if old == new else f"{old}{separator}{new}"
