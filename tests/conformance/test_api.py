"""Every recorded conversation with a real server, had again with ours: how many come out the same, by tag.

The recordings bring their own runner, which says for each tag how many are the same, and how many are apart in the
wording of messages only. `floors.json` has what was reached; a floor that falls fails, and is raised by hand.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.support.process import ApiServerProcess
from tests.support.recordings import FOLDER, NO_RECORDINGS

RUNNER, TOKENS = FOLDER / "golden.py", FOLDER / "tokens.csv"
FLOORS = orjson.loads((Path(__file__).parent / "floors.json").read_bytes())
SOONER = {("life/apiregistration.k8s.io-v1-apiservice-1", 1, "body.status.conditions")}
"""What is done beside a conversation, and may be seen sooner than in the recording by a client that is held up."""
LINE = re.compile(r"^(\S+)\s+(\d+) of\s+(\d+) the same,\s+(\d+) apart in wording only$", re.MULTILINE)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if not RUNNER.exists():
        pytest.skip(f"{NO_RECORDINGS} in {FOLDER}")
    folder = tmp_path_factory.mktemp("conformance")
    arguments = ("--token-auth-file", str(TOKENS), "--service-cluster-ip-range", "10.0.0.0/16")
    with ApiServerProcess(folder, *arguments) as running:
        yield running


@pytest.mark.timeout(600)
@pytest.mark.parametrize("tag", FLOORS)
def test_as_many_as_ever_come_out_the_same(server, tag, tmp_path):
    floor, report = FLOORS[tag], tmp_path / "report.jsonl"
    same, total, close = replayed(server, tag, report)
    if same < floor["same"]:
        # A few conversations show what a server does beside them, and how soon: on a busy machine not always as recorded.
        same, total, close = replayed(server, tag, report)
    print(f"{tag}: {same} of {total} the same, {close} apart in wording only")
    assert same >= floor["same"], f"{tag}: {same} of {total}, the floor is {floor['same']}; see {report}"
    assert same + close >= floor.get("close", 0)


def replayed(server, tag, report):
    """How many are the same, of how many, and how many are apart in wording only."""
    files = sorted(map(str, (FOLDER / "api").glob("*.jsonl")))
    arguments = ["run", *files, "--only", tag, "--server", server.url, "--token", "admintoken"]
    done = subprocess.run(
        [sys.executable, str(RUNNER), *arguments, "--report", str(report)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    found = {row[0]: tuple(map(int, row[1:])) for row in LINE.findall(done.stdout)}
    assert tag in found, f"the runner said nothing of {tag}: {done.stdout}{done.stderr}"
    same, total, close = found[tag]
    return same + sum(map(is_only_sooner, report.read_bytes().splitlines())), total, close


def is_only_sooner(line):
    """One line of the report: a case, and where it is not the same."""
    case = orjson.loads(line)
    places = {(case["id"], one["step"], one["at"]) for one in case["differences"]}
    return bool(places) and places <= SOONER
