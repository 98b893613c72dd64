"""How Apache httpd reads its configuration: directives of modules that it loads, and sections. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from mockube.container_runtime.images.options import ServerOptions

from .option_syntax import Use

_CONDITIONS: Final = frozenset(
    ("ifmodule", "ifdefine", "ifversion", "iffile", "ifdirective", "ifsection", "macro")
)
"""Sections that may not be read at all, or that are read elsewhere."""


def httpd_lines(options: ServerOptions, lines: Sequence[str]) -> Iterator[Use]:
    """Yield the directives of a file, those of modules that are not loaded, and the ends of sections that do not fit.

    Where a file includes others, or loads a module of which nobody knows, nobody knows which directives there are.
    """
    directives = list(_directives(lines))
    modules = [words.split()[0] for _, name, words in directives if name.lower() == "loadmodule" and words]
    if any(module not in options.modules for module in modules):
        return
    is_whole = not any(name.lower() in ("include", "includeoptional") for _, name, _ in directives)
    loaded = frozenset(modules) if is_whole else None
    sections: list[tuple[int, str]] = []
    for number, name, words in directives:
        if name.startswith("</"):
            if problem := _end_problem(sections, name.strip("</>")):
                yield Use(name, text=name, line=number, problem=problem)
            continue
        if not any(section.lower() in _CONDITIONS for _, section in sections):
            yield _use(options, number, name, words, loaded)
        if name.startswith("<"):
            sections.append((number, name.strip("<>")))
    for number, section in sections[-1:]:
        yield Use(section, line=number, problem=f"$(file):{number}: <{section}> was not closed.")


def _directives(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the number of the line, the name and the arguments of each directive, which a backslash at its end continues."""
    text = ""
    for number, line in enumerate(lines, start=1):
        text += line.strip()
        if text.endswith("\\"):
            text = f"{text[:-1]} "
            continue
        if text and not text.startswith("#"):
            name, *words = text.split(None, 1)
            yield number, name, words[0] if words else ""
        text = ""


def _use(options: ServerOptions, number: int, name: str, words: str, loaded: frozenset[str] | None) -> Use:
    """Return a directive; `loaded` is None if nobody knows which modules are loaded."""
    known = options.by_lower_name.get(name.rstrip(">").lower(), name)
    modules = options.modules_of.get(known, frozenset())
    is_absent = loaded is not None and bool(modules) and modules.isdisjoint(loaded)
    return Use(known, words, name, number, is_absent=is_absent)


def _end_problem(sections: list[tuple[int, str]], name: str) -> str:
    """Remove the section that ends; return what is wrong with its end."""
    if not sections:
        return f"</{name}> without matching <{name}> section"
    _, section = sections.pop()
    return "" if section.lower() == name.lower() else f"Expected </{section}> but saw </{name}>"
