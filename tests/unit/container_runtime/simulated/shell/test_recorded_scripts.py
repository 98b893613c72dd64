"""Random scripts have the output, files and exit codes that real shells have recorded (`make shell-differential ARGS="--record FILE"`)."""

from pathlib import Path

import orjson
import pytest

from judges.differential.shell.shells import run_simulated

pytestmark = pytest.mark.thorough

RECORDS = [
    orjson.loads(line)
    for line in Path(__file__).with_name("recorded_scripts.jsonl").read_bytes().splitlines()
]
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_script_has_results_of_real_shells(part):
    for record in RECORDS[part::PARTS]:
        result = run_simulated(record["script"], "bash" if record["kind"] == "bash" else "sh")
        expected = (record["code"], record["output"], record["files"])
        assert (result.code, result.output, dict(result.files)) == expected, record["script"]
