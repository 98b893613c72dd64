"""Scripts with blanks, comments, newlines, line continuations and here-documents at any place have the results of dash, busybox and bash.

The records are a sample of those of `make shell-differential ARGS="--kind layouts --seed 0 --scripts 24000 --record FILE"`, and of
`--kind bash-layouts`.
"""

from pathlib import Path

import orjson
import pytest

from judges.differential.shell.shells import run_simulated

RECORDS = [
    orjson.loads(line)
    for line in Path(__file__).with_name("recorded_layouts.jsonl").read_bytes().splitlines()
]
SHELLS = {"layouts": "sh", "bash-layouts": "bash"}


@pytest.mark.parametrize("kind", SHELLS)
def test_layout_has_results_of_real_shells(kind):
    records = [record for record in RECORDS if record["kind"] == kind]
    assert len(records) > 200
    for record in records:
        result = run_simulated(record["script"], SHELLS[kind])
        expected = (record["code"], record["output"], record["trace"])
        assert (result.code, result.output, result.trace) == expected, record["script"]


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo a; ", "a\n"),
        ("echo a; # note", "a\n"),
        ("if true; then echo a; fi; ", "a\n"),
        ("{ echo a; } ; ", "a\n"),
        ("true & ", ""),
        ("true &# note\n", ""),
        ("i\\\nf true; then echo a; fi", "a\n"),
        ("true &\\\n& echo a", "a\n"),
        ("abc=1; echo $a\\\nb\\\nc$\\\n{abc}", "11\n"),
        ("cat <\\\n<E\\\nF\na\nEF\n", "a\n"),
        ("echo 'a\\\nb' # c\\\necho c", "a\\\nb\nc\n"),
        ("echo 'a\\\nb' #\necho c", "a\\\nb\nc\n"),
    ],
)
def test_layout_is_no_part_of_grammar(shell, script, output):
    result = run_simulated(script, shell)
    assert (result.code, result.output) == (0, output)


def test_line_of_message_counts_line_continuations():
    script = "echo a \\\n b\\\nc &\\\n& nosuch\nnosuch \\\n a\n"
    assert run_simulated(script).errors == "sh: 4: nosuch: not found\nsh: 5: nosuch: not found\n"
