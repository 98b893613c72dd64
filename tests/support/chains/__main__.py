"""Record what Go says of all chains: `python -m tests.support.chains`. It builds `tools/certificates`, which needs Go."""

import base64
import subprocess
from pathlib import Path

import orjson

from tests.support.chains.constraint_cases import constraint_cases
from tests.support.chains.host_cases import host_cases
from tests.support.chains.key_cases import key_cases
from tests.support.chains.random_cases import changed_bytes, random_cases
from tests.support.chains.recording import RecordedCase, write_recording
from tests.support.chains.shapes import Case
from tests.support.chains.trust_cases import trust_cases
from tests.support.seeded import source

TOOL = Path(__file__).parents[3] / "tools/certificates"
RANDOM_CASES, CHANGED_BYTES = 400, 600


def ask_go(asked: list[Case]) -> list[RecordedCase]:
    lines = b"\n".join(orjson.dumps(_encode(case)) for case in asked)
    finished = subprocess.run(["go", "run", "."], cwd=TOOL, input=lines, stdout=subprocess.PIPE, check=True)
    answers = [orjson.loads(line) for line in finished.stdout.splitlines()]
    return [RecordedCase(case, error) for case, error in zip(asked, answers, strict=True)]


def _encode(case: Case) -> dict[str, object]:
    chain, roots = ([base64.b64encode(data).decode() for data in one] for one in (case.chain, case.roots))
    time = case.time.isoformat()
    return {"chain": chain, "roots": roots, "host": case.host, "usage": case.usage, "time": time}


if __name__ == "__main__":
    random = source("chains")
    named = [*trust_cases(), *host_cases(), *key_cases(), *constraint_cases()]
    others = [*random_cases(random, RANDOM_CASES), *changed_bytes(random, CHANGED_BYTES)]
    write_recording(ask_go([*named, *others]))
