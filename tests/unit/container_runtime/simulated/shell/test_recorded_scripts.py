"""Scripts have the output, files and exit codes that real shells have recorded (`make shell-differential ARGS="--record FILE"`).

Some are random, others call programs with each of their options. The trace of a record is what only the simulated shell has: its
effects, messages and counted work. `--retrace FILE` records it anew after a change that is meant.
"""

from pathlib import Path

import orjson
import pytest

from judges.differential.shell.shells import run_simulated

RECORDS = [
    orjson.loads(line)
    for file in ("recorded_scripts.jsonl", "recorded_programs.jsonl")
    for line in Path(__file__).with_name(file).read_bytes().splitlines()
]
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_script_has_results_of_real_shells(part):
    for record in RECORDS[part::PARTS]:
        result = run_simulated(record["script"], "bash" if record["kind"] == "bash" else "sh")
        expected = (record["code"], record["output"], record["files"], record["trace"])
        actual = (result.code, result.output, dict(result.files), result.trace)
        assert actual == expected, record["script"]
