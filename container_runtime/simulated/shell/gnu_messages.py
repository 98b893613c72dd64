"""The messages of GNU's programs, for images whose programs are not those of busybox. Pure.

The programs report errors in busybox' words. This table has the words of coreutils, findutils and tar for them.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

Rule = tuple[re.Pattern[str], str]


def _rules(*pairs: tuple[str, str]) -> Sequence[Rule]:
    return [(re.compile(pattern), words) for pattern, words in pairs]


_FILE: Final = r"(?P<file>[^:']+): (?P<reason>.+)"
_QUOTED: Final = r"'(?P<file>.+)': (?P<reason>.+)"
_OPEN: Final = rf"can't open {_QUOTED}"
_HELP: Final = "\nTry '{name} --help' for more information."
_NO_FILE: Final = r"(?P<file>[^:']+): (?P<reason>No such file or directory)"
_COREUTILS: Final = frozenset(
    [
        "base32",
        "base64",
        "basename",
        "cat",
        "chgrp",
        "chmod",
        "chown",
        "cksum",
        "comm",
        "cp",
        "csplit",
        "cut",
        "date",
        "dd",
        "df",
        "dirname",
        "du",
        "env",
        "expand",
        "expr",
        "factor",
        "fmt",
        "fold",
        "head",
        "id",
        "ln",
        "ls",
        "md5sum",
        "mkdir",
        "mkfifo",
        "mktemp",
        "mv",
        "nl",
        "nproc",
        "od",
        "paste",
        "pr",
        "printenv",
        "readlink",
        "realpath",
        "rm",
        "rmdir",
        "seq",
        "sha1sum",
        "sha256sum",
        "sha512sum",
        "shred",
        "shuf",
        "sleep",
        "sort",
        "split",
        "stat",
        "sum",
        "tac",
        "tail",
        "tee",
        "timeout",
        "touch",
        "tr",
        "truncate",
        "tsort",
        "uname",
        "unexpand",
        "uniq",
        "wc",
        "whoami",
        "yes",
    ]
)
_OF_COREUTILS: Final = _rules(
    (r"unrecognized option: (?P<file>.)", f"invalid option -- '{{file}}'{_HELP}"),
    (r"unrecognized option: (?P<file>..+)", f"unrecognized option '--{{file}}'{_HELP}"),
    (r"usage: .*", f"missing operand{_HELP}"),
    (r"missing file operand", f"missing file operand{_HELP}"),
)
_BY_NAME: Final[Mapping[str, Sequence[Rule]]] = {
    "cat": _rules((_OPEN, "{file}: {reason}")),
    "chgrp": _rules(
        (_NO_FILE, "cannot access '{file}': {reason}"), (_FILE, "changing group of '{file}': {reason}")
    ),
    "chmod": _rules(
        (_NO_FILE, "cannot access '{file}': {reason}"), (_FILE, "changing permissions of '{file}': {reason}")
    ),
    "chown": _rules(
        (_NO_FILE, "cannot access '{file}': {reason}"), (_FILE, "changing ownership of '{file}': {reason}")
    ),
    "cp": _rules(
        (rf"can't stat {_QUOTED}", "cannot stat '{file}': {reason}"),
        (rf"can't create {_QUOTED}", "cannot create regular file '{file}': {reason}"),
        (_OPEN, "cannot open '{file}' for reading: {reason}"),
        (r"omitting directory '(?P<file>.+)'", "-r not specified; omitting directory '{file}'"),
    ),
    "date": _rules((r"invalid date '(?P<file>.*)'", "invalid date \u2018{file}\u2019")),
    "dd": _rules((_OPEN, "failed to open '{file}': {reason}")),
    "du": _rules((_FILE, "cannot access '{file}': {reason}")),
    "env": _rules((rf"can't execute {_QUOTED}", "\u2018{file}\u2019: {reason}")),
    "find": _rules((_FILE, "\u2018{file}\u2019: {reason}")),
    "head": _rules(
        (r"(?P<file>.+): (?P<reason>Is a directory)", "error reading '{file}': {reason}"),
        (_FILE, "cannot open '{file}' for reading: {reason}"),
    ),
    "ln": _rules((_FILE, "failed to create symbolic link '{file}': {reason}")),
    "ls": _rules(
        (_OPEN, "cannot open directory '{file}': {reason}"), (_FILE, "cannot access '{file}': {reason}")
    ),
    "mkdir": _rules(
        (rf"can't create directory {_QUOTED}", "cannot create directory \u2018{file}\u2019: {reason}")
    ),
    "mv": _rules(
        (
            r"can't rename '(?P<file>.+)': (?P<reason>No such file or directory)",
            "cannot stat '{file}': {reason}",
        ),
    ),
    "nohup": _rules((rf"can't execute {_QUOTED}", "failed to run command \u2018{file}\u2019: {reason}")),
    "rm": _rules((rf"can't remove {_QUOTED}", "cannot remove '{file}': {reason}")),
    "rmdir": _rules((_QUOTED, "failed to remove '{file}': {reason}")),
    "sed": _rules((_NO_FILE, "can't read {file}: {reason}")),
    "sleep": _rules(
        (r"invalid time interval '(?P<file>.+)'", f"invalid time interval \u2018{{file}}\u2019{_HELP}")
    ),
    "sort": _rules((_NO_FILE, "cannot read: {file}: {reason}")),
    "stat": _rules((rf"can't stat {_QUOTED}", "cannot statx '{file}': {reason}")),
    "tac": _rules((_FILE, "failed to open '{file}' for reading: {reason}")),
    "tail": _rules(
        (r"can't open '(?P<file>.+)': (?P<reason>Is a directory)", "error reading '{file}': {reason}"),
        (_OPEN, "cannot open '{file}' for reading: {reason}"),
    ),
    "tar": _rules(
        (_OPEN, "{file}: Cannot open: {reason}\ntar: Error is not recoverable: exiting now"),
    ),
    "timeout": _rules((rf"can't execute {_QUOTED}", "failed to run command \u2018{file}\u2019: {reason}")),
    "touch": _rules((_FILE, "cannot touch '{file}': {reason}")),
    "xargs": _rules((rf"can't execute {_QUOTED}", "{file}: {reason}")),
    **dict.fromkeys(
        ("cmp", "diff", "md5sum", "sha1sum", "sha256sum", "sha512sum"), _rules((_OPEN, "{file}: {reason}"))
    ),
}


@lru_cache(maxsize=256)
def gnu_words(name: str, text: str) -> str:
    """Return what GNU's program of a name reports where busybox' reports a text; the same text if that is not known."""
    general = _OF_COREUTILS if name in _COREUTILS else ()
    for pattern, words in (*general, *_BY_NAME.get(name, ())):
        if (match := pattern.fullmatch(text)) is not None:
            return words.format(name=name, **match.groupdict())
    return text
