"""The messages of GNU's programs, for images whose programs are not those of busybox. Pure.

The programs report errors in busybox' words. This table has the words of coreutils, findutils and tar for them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

Rule = tuple[Callable[[str], re.Match[str] | None], str]


_FILE: Final = re.compile(r"(?P<file>[^:']+): (?P<reason>.+)").fullmatch
_QUOTED: Final = r"'(?P<file>.+)': (?P<reason>.+)"
_OPEN: Final = re.compile(rf"can't open {_QUOTED}").fullmatch
_STAT: Final = re.compile(rf"can't stat {_QUOTED}").fullmatch
_EXECUTE: Final = re.compile(rf"can't execute {_QUOTED}").fullmatch
_HELP: Final = "\nTry '{name} --help' for more information."
_NO_FILE: Final = re.compile(r"(?P<file>[^:']+): (?P<reason>No such file or directory)").fullmatch
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
_OF_COREUTILS: Final = (
    (re.compile(r"unrecognized option: (?P<file>.)").fullmatch, f"invalid option -- '{{file}}'{_HELP}"),
    (re.compile(r"unrecognized option: (?P<file>..+)").fullmatch, f"unrecognized option '--{{file}}'{_HELP}"),
    (re.compile(r"usage: .*").fullmatch, f"missing operand{_HELP}"),
    (re.compile(r"missing file operand").fullmatch, f"missing file operand{_HELP}"),
)
_BY_NAME: Final[Mapping[str, Sequence[Rule]]] = {
    "cat": ((_OPEN, "{file}: {reason}"),),
    "chgrp": (
        (_NO_FILE, "cannot access '{file}': {reason}"),
        (_FILE, "changing group of '{file}': {reason}"),
    ),
    "chmod": (
        (_NO_FILE, "cannot access '{file}': {reason}"),
        (_FILE, "changing permissions of '{file}': {reason}"),
    ),
    "chown": (
        (_NO_FILE, "cannot access '{file}': {reason}"),
        (_FILE, "changing ownership of '{file}': {reason}"),
    ),
    "cp": (
        (_STAT, "cannot stat '{file}': {reason}"),
        (re.compile(rf"can't create {_QUOTED}").fullmatch, "cannot create regular file '{file}': {reason}"),
        (_OPEN, "cannot open '{file}' for reading: {reason}"),
        (
            re.compile(r"omitting directory '(?P<file>.+)'").fullmatch,
            "-r not specified; omitting directory '{file}'",
        ),
    ),
    "date": ((re.compile(r"invalid date '(?P<file>.*)'").fullmatch, "invalid date \u2018{file}\u2019"),),
    "dd": ((_OPEN, "failed to open '{file}': {reason}"),),
    "du": ((_FILE, "cannot access '{file}': {reason}"),),
    "env": ((_EXECUTE, "\u2018{file}\u2019: {reason}"),),
    "find": ((_FILE, "\u2018{file}\u2019: {reason}"),),
    "head": (
        (
            re.compile(r"(?P<file>.+): (?P<reason>Is a directory)").fullmatch,
            "error reading '{file}': {reason}",
        ),
        (_FILE, "cannot open '{file}' for reading: {reason}"),
    ),
    "ln": ((_FILE, "failed to create symbolic link '{file}': {reason}"),),
    "ls": (
        (_OPEN, "cannot open directory '{file}': {reason}"),
        (_FILE, "cannot access '{file}': {reason}"),
    ),
    "mkdir": (
        (
            re.compile(rf"can't create directory {_QUOTED}").fullmatch,
            "cannot create directory \u2018{file}\u2019: {reason}",
        ),
    ),
    "mv": (
        (
            re.compile(r"can't rename '(?P<file>.+)': (?P<reason>No such file or directory)").fullmatch,
            "cannot stat '{file}': {reason}",
        ),
    ),
    "nohup": ((_EXECUTE, "failed to run command \u2018{file}\u2019: {reason}"),),
    "rm": ((re.compile(rf"can't remove {_QUOTED}").fullmatch, "cannot remove '{file}': {reason}"),),
    "rmdir": ((re.compile(_QUOTED).fullmatch, "failed to remove '{file}': {reason}"),),
    "sed": ((_NO_FILE, "can't read {file}: {reason}"),),
    "sleep": (
        (
            re.compile(r"invalid time interval '(?P<file>.+)'").fullmatch,
            f"invalid time interval \u2018{{file}}\u2019{_HELP}",
        ),
    ),
    "sort": ((_NO_FILE, "cannot read: {file}: {reason}"),),
    "stat": ((_STAT, "cannot statx '{file}': {reason}"),),
    "tac": ((_FILE, "failed to open '{file}' for reading: {reason}"),),
    "tail": (
        (
            re.compile(r"can't open '(?P<file>.+)': (?P<reason>Is a directory)").fullmatch,
            "error reading '{file}': {reason}",
        ),
        (_OPEN, "cannot open '{file}' for reading: {reason}"),
    ),
    "tar": ((_OPEN, "{file}: Cannot open: {reason}\ntar: Error is not recoverable: exiting now"),),
    "timeout": ((_EXECUTE, "failed to run command \u2018{file}\u2019: {reason}"),),
    "touch": ((_FILE, "cannot touch '{file}': {reason}"),),
    "xargs": ((_EXECUTE, "{file}: {reason}"),),
    **dict.fromkeys(
        ("cmp", "diff", "md5sum", "sha1sum", "sha256sum", "sha512sum"),
        ((_OPEN, "{file}: {reason}"),),
    ),
}


@lru_cache(maxsize=256)
def gnu_words(name: str, text: str) -> str:
    """Return what GNU's program of a name reports where busybox' reports a text; the same text if that is not known."""
    general = _OF_COREUTILS if name in _COREUTILS else ()
    for match_of, words in (*general, *_BY_NAME.get(name, ())):
        if (match := match_of(text)) is not None:
            text = words.format(name=name, **match.groupdict())
            break
    return text
