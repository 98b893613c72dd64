"""Compare printed output with the output on a page: equal, except for values that differ from run to run.

Values that may differ have names here, in the order in which they are replaced: a name may end as an age does. `...` on a line of
its own stands for any lines, within a line for any characters.
"""

import difflib
import re
from typing import Final

ALLOWANCES: Final = (
    ("warnings of asyncio about a slow machine", r"^Executing <(?:Task|Handle) .* took [\d.]+ seconds\n", ""),
    ("ends of generated names", r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-RANDOM"),
    # pytest adds minutes to the time of a long run.
    ("measured times", r"\b\d+(?:\.\d+)? ?m?s\b(?: \(\d+:\d\d:\d\d\))?", "TIME"),
    ("ages", r"\b(?:\d+d)?(?:\d+h)?(?:\d+m)?\d+[smhd]\b", "TIME"),
    ("moments", r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "MOMENT"),
    ("heads of lines in a log", r"^([IWE])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \w+\.py:\d+\]", r"\1LOG]"),
    ("uids", r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
    ("ports of this machine", r"(127\.0\.0\.1|localhost):\d+", r"\1:PORT"),
    ("addresses in the cluster", r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    ("where a pod was placed", r"ADDRESS +node-\d+", "ADDRESS NODE"),
    ("versions of a resource", r"(resourceVersion\W+)\d+", r"\1VERSION"),
    ("revisions", r"(revision\W+)\d+", r"\1REVISION"),
    ("revisions in tables", r"\b1[78]\d{14}\b", "REVISION"),
    ("numbers of recorded requests", r"^000\d{5}\b", "NUMBER"),
    ("measured seconds", r"\b0\.\d{3,6}\b", "SECONDS"),
    ("timers of a server", r"\b(true|false) +(\d+) +\d+ +(?=TIME$)", r"\1 \2 TIMERS "),
    ("how much is stored", r"\b\d+ objects", "N objects"),
    ("ids of processes", r"\bpid \d+", "pid PID"),
    ("the version of kubectl", r"(Client|Kustomize) Version: v\S+", r"\1 Version: VERSION"),
    ("a slip of kubectl 1.27", r" annotated$", " annotate"),
    ("widths of columns", r"[ \t]+", " "),
    ("blanks at the end", r" $", ""),
)


def is_same_output(expected, printed):
    return re.fullmatch("".join(map(_pattern, _lines(expected))), "".join(_lines(printed))) is not None


def difference(expected, printed):
    """Return a readable diff, without the values that may differ."""
    return "".join(difflib.unified_diff(_lines(expected), _lines(printed), "shown\n", "printed\n"))


def _lines(text):
    for _, pattern, instead in ALLOWANCES:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return [f"{line}\n" for line in text.strip("\n").split("\n")]


def _pattern(line):
    if line.strip() == "...":
        return "(?:[^\n]*\n)*"
    return "[^\n]*".join(map(re.escape, line.split("...")))
