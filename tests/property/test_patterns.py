"""No regular expression of the packages takes more than linear time for any text.

A walk over the syntax trees finds each expression, so new ones are tested too; one that cannot be evaluated from
its module's source fails here. `tests/support/hostile/adversarial_texts.py` makes the texts from the expression itself.
"""

import re
import signal
from collections import deque
from time import thread_time

import pytest

from mockube.apiserver.control.patterns import MAX_PATTERN, Pattern
from tests.support.hostile import adversarial_texts, pattern_walk
from tests.support.hostile.doubling import Growth, check_linear, cost, without_collections

SIZE = 2_500
NEGLIGIBLE = 0.0015
"""Seconds for 5,000 characters: a quadratic expression takes ten times as long."""
TOO_LONG = 0.05
"""Seconds of the processor for one text, after which a match is interrupted."""
MARGIN = 10
"""How many times as long as its figure a pattern of a user may take: on a machine without load it takes less than once."""
SAMPLE_SIZES = (28, 60, 160, 640, 2 * SIZE)
"""Small ones are for expressions that look ahead for the end of a short text."""

APPLY = {
    "match": lambda pattern: pattern.match,
    "fullmatch": lambda pattern: pattern.fullmatch,
    "search": lambda pattern: pattern.search,
    "finditer": lambda pattern: lambda text: deque(pattern.finditer(text), maxlen=0),
}


def costliest(ways):
    """Without those that another one covers: `finditer` searches repeatedly, and `search` begins as `match` does."""
    found = {*ways}
    if "finditer" in found:
        found -= {"search", "match"}
    if "search" in found:
        found -= {"match"}
    return sorted(found)


class Interrupted(Exception):
    """A match takes too long."""


@pytest.fixture(autouse=True)
def interruption():
    """Let a timer interrupt a match: `re` handles signals while it matches, so that an exponential match ends too."""

    def interrupt(_number, _frame):
        raise Interrupted

    previous = signal.signal(signal.SIGVTALRM, interrupt)
    yield
    signal.signal(signal.SIGVTALRM, previous)


def is_negligible(make, run):
    """Whether matches of short and long texts take little time: most texts, which need no comparison of sizes."""
    # An interruption of a collection, which calls functions of others, would be lost.
    with without_collections():
        start = thread_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, TOO_LONG)
        try:
            for size in SAMPLE_SIZES:
                run(make(size))
        except Interrupted:
            return False
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return thread_time() - start < NEGLIGIBLE


def slow_text(pattern, ways, **options):
    """Return what makes a pattern slow, if anything does."""
    if adversarial_texts.has_few_paths(pattern):
        return ""
    for way in costliest(ways):
        run = APPLY[way](pattern)
        for make in adversarial_texts.texts(pattern):
            if is_negligible(make, run):
                continue
            try:
                check_linear(make, run, SIZE, negligible=NEGLIGIBLE, too_long=TOO_LONG, **options)
            except Growth as growth:
                return f"{way} of {make.__qualname__}: {growth}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("place", pattern_walk.places())
def test_patterns_are_linear(place):
    every = {(found.compiled, found.ways): found.location for found in pattern_walk.of_file(place)}
    slow = {
        f"{where} {compiled.pattern!r}": problem
        for (compiled, ways), where in every.items()
        if (problem := slow_text(compiled, ways))
    }
    assert not slow


def user_patterns():
    """Return patterns of few and of many parts, short and long ones, that fail late."""
    for unit in ("a", "?", "[a-z]", "[!b]", "ab", "a?", "é"):
        for lead in ("*", "a*"):
            for tail in ("", "*", "b", "*b", "?b"):
                room = MAX_PATTERN - len(lead) - len(tail)
                most = room // len(unit)
                yield from (lead + unit * times + tail for times in (1, 2, 8, most // 8, most // 2, most))
                yield from (lead + f"{unit}*" * times + tail for times in (2, room // (len(unit) + 1)))
                half = unit * ((room // 2 - 1) // len(unit))
                yield f"{lead}{half}*{half}{tail}"


@pytest.mark.slow
def test_patterns_of_users_take_no_longer_than_they_cost():
    units = ("a", "ab", "a" * 15 + "b", "é")
    texts = [(unit * MAX_PATTERN)[:MAX_PATTERN] for unit in units] + ["a" * (MAX_PATTERN - 1) + "b"]
    slow = {}
    for pattern in user_patterns():
        compiled = Pattern(pattern)
        most = max(cost(compiled.matches, text, runs=3) for text in texts)
        if most > compiled.cost * MARGIN / 1_000_000:
            slow[pattern] = most
    assert not slow


# --- the test itself: it finds planted patterns

BAD = [
    pytest.param(r"(a+)+$", "match", id="nested repeats"),
    pytest.param(r"(a|a)*b", "match", id="two ways for one character"),
    pytest.param(r"([0-9]*)([0-9.]*)x", "fullmatch", id="repeats side by side"),
    pytest.param(r"[-+]?[0-9]*\.?[0-9]*(e[0-9]+)?", "fullmatch", id="a number with an optional point"),
    pytest.param(r"\s+$", "search", id="space before the end, looked for everywhere"),
    pytest.param(r"<[^>]*>", "finditer", id="many unclosed brackets"),
    pytest.param(r'"(\\.|[^"])*"', "match", id="a backslash that is both escape and character"),
    pytest.param(r"([a-z]+:[^\n]*\n)*([^-]*?)-end", "match", id="lines, then any text"),
    pytest.param(r"^(([a-z])+.)+[A-Z]([a-z])+$", "fullmatch", id="a class inside a repeat"),
    pytest.param(rb"(\d+,?)+;", "match", id="bytes"),
]


@pytest.mark.parametrize(("pattern", "way"), BAD)
def test_exponential_pattern_is_detected(pattern, way):
    assert slow_text(re.compile(pattern), [way], rounds=1)


@pytest.mark.parametrize(
    "pattern", [r"(a++)+$", r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", r'"(?:\\.|[^"\\])*"', r"(x*?)y", r"a{3}b{2,5}"]
)
def test_linear_pattern_is_accepted(pattern):
    assert not slow_text(re.compile(pattern), ["fullmatch"])


@pytest.mark.parametrize(
    ("pattern", "is_linear"),
    [
        pytest.param(r"[0-9a-f]{8}-?[0-9a-f]{4}", True, id="counted"),
        pytest.param(r"(a|b){3}c?d??", True, id="few choices"),
        pytest.param(r"a*", False, id="a star"),
        pytest.param(r"(a|a){0,30}b", False, id="many choices"),
        pytest.param(r"((a?){9}){9}b", False, id="choices of choices"),
        pytest.param(r"(?=a+)b", False, id="a star ahead"),
        pytest.param(r"a(?:b|c*)", False, id="a star in a branch"),
        pytest.param(r"(?>a*+)", False, id="an atomic star"),
    ],
)
def test_patterns_have_few_paths(pattern, is_linear):
    assert adversarial_texts.has_few_paths(re.compile(pattern)) is is_linear


def found_patterns(text, **namespace):
    found = pattern_walk.of_module(text, "planted.py", lambda: {"re": re} | namespace)
    return [(each.compiled.pattern, each.ways) for each in found]


@pytest.mark.parametrize(
    ("text", "namespace", "found"),
    [
        pytest.param("import re\n_A = re.compile('a')\n_A.match('')", {}, [("a", ("match",))], id="literal"),
        pytest.param("import re\nre.sub(A + 'b', '', '')", {"A": "a"}, [("ab", ("finditer",))], id="sum"),
        pytest.param("import re\nA = re.compile('a')", {}, [("a", pattern_walk.WAYS)], id="public: any way"),
        pytest.param(
            "import re\ndef _f(text):\n    whole = f'{text}$'\n    return re.compile(whole).search\n_f('a')\n_f(text='b')",
            {},
            [("a$", ("search",)), ("b$", ("search",))],
            id="argument of a private function",
        ),
        pytest.param(
            "import re\nX = [re.compile(p).match for _, p in PAIRS]",
            {"PAIRS": [(1, "a"), (2, "b")]},
            [("a", ("match",)), ("b", ("match",))],
            id="comprehension",
        ),
        pytest.param(
            "import re\ndef f(x):\n    for each in ALL:\n        re.match(each.pattern, x)",
            {"ALL": [re.compile("a")]},
            [("a", ("match",))],
            id="loop",
        ),
        pytest.param("import re\nre.split('a', '', flags=re.I)", {}, [("a", ("finditer",))], id="flags"),
    ],
)
def test_walk_finds_patterns(text, namespace, found):
    assert found_patterns(text, **namespace) == found


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import re\ndef f(text):\n    return re.compile(text)", id="text from a parameter"),
        pytest.param("import re\ndef _f(text):\n    return re.compile(text)", id="never called"),
        pytest.param("import re\ndef _f(text):\n    return re.compile(text)\ng(_f)", id="handed on"),
        pytest.param("import re\nfound = map(re.compile, texts)", id="handed on itself"),
        pytest.param(
            "import re\ndef f():\n    a = 'a'\n    a += x\n    return re.match(a, '')", id="nested bounds"
        ),
        pytest.param("from re import compile", id="a name of the module"),
        pytest.param("import re as regular", id="another name of the module"),
        pytest.param("import fnmatch\nimport re", id="another module that compiles"),
        pytest.param("from fnmatch import fnmatchcase", id="a name of another module that compiles"),
        pytest.param("def f():\n    from fnmatch import translate", id="a name that a function imports"),
        pytest.param("import glob", id="a module that matches file names"),
        pytest.param("from glob import iglob", id="a name of a module that matches file names"),
        pytest.param("from sre_parse import parse", id="a part of re"),
        pytest.param("import re2", id="the engine"),
        pytest.param("import re2 as engine", id="the engine by another name"),
        pytest.param("from re2 import compile", id="a name of the engine"),
        pytest.param("import re._compiler", id="a module of re"),
        pytest.param(
            "from pathlib import PurePath\ndef f(text):\n    return PurePath('a').match(text)",
            id="a path that matches",
        ),
        pytest.param(
            "import pathlib\ndef f(path: pathlib.Path, text):\n    return list(path.rglob(f'{text}*'))",
            id="a path that finds others",
        ),
        pytest.param("import re\nre.compile(open('x').read())", id="not a constant"),
    ],
)
def test_unreadable_pattern_is_refused(text):
    with pytest.raises(pattern_walk.Unknown):
        found_patterns(text)


@pytest.mark.parametrize(
    "text",
    [
        "from pathlib import Path\nEND = '.tmp'\nPath('a').glob('*' + END)",
        "import re\nfrom pathlib import Path\n_A = re.compile('a')\n_A.match(Path('a').name)",
    ],
)
def test_constant_pattern_of_path_is_accepted(text):
    found_patterns(text)


def test_only_one_module_imports_engine():
    assert list(pattern_walk.of_module("import re2", "apimachinery/regexp/engine.py", dict)) == []
    for place in pattern_walk.places():
        deque(pattern_walk.of_file(place), maxlen=0)
