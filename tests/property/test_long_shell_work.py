"""No command of the shell takes long without counting its work, at which other tasks run, nor much memory."""

import gc
from time import thread_time

import pytest

from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import CommandStart, Output, Sleep
from mockube.container_runtime.simulated.shell.syntax import ShellSyntaxError
from mockube.container_runtime.simulated.work_turns import SLICE
from tests.unit.container_runtime.simulated.shell.test_scripts import container, run

ENOUGH = 1.0
"""Seconds of CPU time without a pause, on a slow machine: about 0.1 s at most is usual."""
ALL = 8.0
"""Seconds for all of a script."""
KIB = "x=aaaaaaaaaaaaaaaa; x=$x$x$x$x; x=$x$x$x$x; x=$x$x$x$x; "
LONG = KIB + "x=$x$x$x$x; x=$x$x$x$x; x=$x$x$x$x; x=$x$x$x$x; "
WORDS = LONG.replace("aaaaaaaaaaaaaaaa", "'a a a a a a a a '")


@pytest.fixture(scope="module", autouse=True)
def other_objects_frozen():
    """Do not let the collector walk the objects of all other tests in a slice that is measured.

    They stay frozen, as those of the collection of tests do: each later collection would walk all of them.
    """
    gc.collect()
    gc.freeze()


def least(measure):
    """Return the least of up to three measured times: other programs of the machine make one longer, never shorter."""
    return next((seconds for _ in range(2) if (seconds := measure()) < ENOUGH), None) or measure()


def longest_slice(script, *arguments):
    """Return the CPU time of the longest slice of a script, and its output."""
    execution = run_command(container(), ["sh", "-c", script, *arguments], {})
    commands, longest, output = 0, 0.0, b""
    begun = started = thread_time()
    while True:
        try:
            effect = next(execution)
        except StopIteration:
            break
        except ShellSyntaxError as error:
            output += str(error).encode()
            break
        commands += isinstance(effect, CommandStart)
        if isinstance(effect, Output):
            output += effect.data[:1000]
        if commands == SLICE or isinstance(effect, Output | Sleep):
            now = thread_time()
            longest, started, commands = max(longest, now - started), now, 0
            assert now - begun < ALL
    return max(longest, thread_time() - started), output


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        pytest.param(KIB + "y=$x$x; x=$x$x$x$x; echo ${x##*${y}b} | wc -c", [], id="a long pattern"),
        pytest.param(LONG + "y=$x; echo ${x%%${y}b*} | wc -c", [], id="a longer pattern"),
        pytest.param(
            LONG + "for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3; do y=${x##*[a-b]?c*}; done; done",
            [],
            id="many patterns",
        ),
        pytest.param(LONG + "case $x in " + "*b?c) ;; " * 1_000 + "esac", [], id="branches of a case"),
        pytest.param(LONG + "y=" + "${x##*[a-b]?c*}" * 3_000, [], id="patterns in a word"),
        pytest.param(WORDS + "for i in $x; do case a in b) ;; esac; done", [], id="a loop without commands"),
        pytest.param("echo " + "a " * 32_000, [], id="words"),
        pytest.param('echo "' + "a" * 60_000 + '"', [], id="quoted characters"),
        pytest.param('echo "$@"' + ' "$@"' * 5_000, [""] * 100_000, id="empty arguments"),
        pytest.param('echo "$@"' + '"$@"' * 5_000, ["aaaa"] * 100_000, id="arguments in one word"),
        pytest.param(LONG + "echo " + "$x" * 5_000, [], id="variables in one word"),
        pytest.param(LONG + "echo $x | { read y; echo ${#y}; }", [], id="bytes that are read one by one"),
        pytest.param(
            "y=1+1; y=$y+$y+$y+$y; y=$y+$y+$y+$y; y=$y+$y+$y+$y; z=" + "$(($y))" * 3_000, [], id="arithmetic"
        ),
        pytest.param(LONG + "echo $x | cut -c " + "1-," * 20_000 + "1- | wc -c", [], id="ranges of cut"),
        pytest.param(LONG + f"echo $x | grep '{'(a|a?)' * 3_000}b'", [], id="a large expression"),
        pytest.param(WORDS + "ls $x > /dev/null 2>&1", [], id="arguments of a program"),
        pytest.param(WORDS + "printf '%s' $x", [], id="values of printf"),
        pytest.param(LONG + "echo $x$x | tr -s a | wc -c", [], id="squeezed characters"),
        pytest.param(LONG + "echo $x | fold -w 1 | wc -l", [], id="folded lines"),
        pytest.param(LONG + "echo $x | grep -o a | wc -l", [], id="matches of grep"),
        pytest.param(LONG + "echo $x | sed 's/a.*z\\|a/b/g' | wc -c", [], id="matches of sed"),
        pytest.param(LONG + "echo $x | sed ':a;s/a/b/;ta' | wc -c", [], id="a loop of sed"),
        pytest.param("awk 'BEGIN { while (x < 300000) x++ }'", [], id="a loop of awk"),
        pytest.param("awk 'function f(n) { return f(n+1) } BEGIN { f(1) }'", [], id="recursion of awk"),
        pytest.param(
            LONG + "echo $x | awk '{ gsub(/a/, \"b\"); print length($0) }'", [], id="matches of awk"
        ),
        pytest.param(LONG + "echo $x | gzip | gunzip | od -c | tail -n 1", [], id="compressed data"),
        pytest.param(WORDS + "echo $x | xargs -n 1 true", [], id="programs of xargs"),
        pytest.param(LONG + "echo ${x//a*z/b}${x/%a/b} | wc -c", [], id="replaced patterns"),
        pytest.param("printf '" + "%9999s" * 10_000 + "'", [], id="widths of printf"),
        pytest.param(
            "i=0; while [ $i -lt 1000 ]; do touch /data/$i; i=$((i+1)); done; cd /data; echo "
            + "*z " * 1_000,
            [],
            id="patterns of files",
        ),
    ],
)
def test_work_is_divided(script, arguments):
    assert least(lambda: longest_slice(script, *arguments)[0]) < ENOUGH


def test_pattern_that_would_take_long_is_refused():
    _, output = longest_slice(LONG + "p=${x%${x#" + "?" * 2_000 + "}}; echo ${x##*" + "?a" * 4_000 + "}")
    assert b"the pattern has too many wildcards for a text of this length" in output


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("x=a.b.c; echo ${x#*.} ${x##*.} ${x%.*} ${x%%.*}", b"b.c c a.b a\n"),
        ("x=abc; echo ${x#?} ${x%[b-c]} ${x%[!c]} ${x#b} ${x##*} ${x%%*}end", b"bc ab abc abc end\n"),
        ("x='a*b'; p='*'; echo ${x#\"a$p\"} ${x#a$p} ${x#a'*'} ${x%\\*b}", b"b *b b a\n"),
        ("case 'a*' in 'b*') echo 1;; a\"*\") echo 2;; esac", b"2\n"),
        ("case ab in 'a*') echo 1;; a?) echo 2;; esac", b"2\n"),
        ("x='[a'; case $x in [a) echo open;; esac", b"open\n"),
        ("cd /data; touch a1 'a*' b1; echo a* 'a*' \"a\"? a\\*", b"a* a1 a* a* a1 a*\n"),
        ("echo abcdef | cut -c 5-,1,2-3,2", b"abcef\n"),
        ("x='a\nb\nc'; echo ${x##*\n}${x%%\n*}", b"ca\n"),
    ],
)
def test_patterns_have_results_of_shell(script, expected):
    assert longest_slice(script)[1] == expected


LINES = b"a\n" * (1 << 20)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        pytest.param("sort", "input", id="sort"),
        pytest.param("sort -n", "input", id="sort by number"),
        pytest.param("uniq -c", "input", id="uniq"),
        pytest.param("grep -c a", "input", id="grep"),
        pytest.param("cut -c 1", "input", id="cut"),
        pytest.param("base64 -w 1", "output", id="base64"),
    ],
)
def test_input_of_too_many_lines_is_refused_without_output(command, problem):
    def refuse():
        begun = thread_time()
        output, errors, code, _ = run("sh", "-c", command, sent=LINES)
        assert (output, errors, code) == ("", f"{command.split()[0]}: the {problem} has too many lines\n", 2)
        return thread_time() - begun

    assert least(refuse) < ENOUGH


def test_line_that_does_not_end_is_refused():
    begun = thread_time()
    script = "for i in $(seq 17); do cat /dev/zero; done | grep x"
    assert run("sh", "-c", script)[:3] == ("", "grep: the input is too long\n", 2)
    assert thread_time() - begun < ENOUGH


def test_last_bytes_of_long_input_are_returned_quickly():
    begun = thread_time()
    assert run("tail", "-c", "2", sent=LINES)[:3] == ("a\n", "", 0)
    assert thread_time() - begun < ENOUGH
