"""Scripts with mistakes have the messages, output and exit codes of dash and of bash (`make shell-differential`, `--kind bash-failures`)."""

from pathlib import Path

import orjson
import pytest

from judges.differential.shell.shells import run_simulated

RECORDS = [
    orjson.loads(line)
    for line in Path(__file__).with_name("recorded_failures.jsonl").read_bytes().splitlines()
]
SHELLS = {"failures": "sh", "bash-failures": "bash"}


@pytest.mark.parametrize("kind", SHELLS)
def test_mistake_has_messages_of_real_shell(kind):
    for record in RECORDS:
        if record["kind"] == kind:
            result = run_simulated(record["script"], SHELLS[kind])
            expected = (record["code"], record["output"], record["messages"], record["trace"])
            actual = (result.code, result.output, list(result.messages), result.trace)
            assert actual == expected, record["script"]


def test_records_are_of_both_shells():
    kinds = [record["kind"] for record in RECORDS]
    assert {kind: kinds.count(kind) > 300 for kind in SHELLS} == dict.fromkeys(SHELLS, True)
