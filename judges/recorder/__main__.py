"""`make record`: record a real control plane's responses to scenarios, in the format of tests/conformance/golden.

    python -m judges.recorder judges/recorder/scenarios/refusals.yaml

The control plane is started from the folder that MOCKUBE_REAL_KUBERNETES names, as `tools.minors build` builds it: twice,
each time with an empty store. What is equal both times is written to the file that the scenario names; a case that
differs is named and left out, and the exit code is 1. Of trails the minimum and maximum of writes is written.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import orjson

from judges.recorder.control_plane import control_plane
from judges.recorder.scenario import Scenario, read
from tests.conformance.golden import golden, kubectl_golden, trails
from tests.support.processes.real_kubernetes import require_folder
from tests.support.recorded.recordings import FOLDER

TOKEN = "admintoken"
SETTLING = 3
"""How many times in a row a command has to print the same before it is recorded."""
MAX_TRIES = 40


def main() -> int:
    options = _options()
    require_folder()
    failed = 0
    for scenario in map(read, options.scenarios):
        first, second = (run_scenario(scenario, options.kubectl) for _ in range(2))
        if scenario.is_trails:
            first = second = [*map(with_write_budget, first, second)]
        same = [case for case, again in zip(first, second, strict=True) if case == again]
        for case in first:
            if case not in same:
                print(f"not the same twice, and left out: {case['id']}")
        write_cases(Path(options.output) / f"{scenario.records}.jsonl", same)
        print(f"{scenario.records}: {len(same)} of {len(first)} cases recorded")
        failed += len(first) - len(same)
    return int(failed > 0)


def run_scenario(scenario: Scenario, kubectl: str = "kubectl") -> list[dict]:
    """Run all conversations of a scenario with a fresh control plane."""
    with (
        tempfile.TemporaryDirectory(prefix="mockube-recorder-") as folder,
        control_plane(
            Path(folder),
            with_controllers=scenario.with_controllers,
            with_scheduler=scenario.with_scheduler,
            manager_flags=scenario.manager_flags,
        ) as plane,
    ):
        for object_ in scenario.objects:
            answer = golden.Server(plane.url, TOKEN).send({"method": "POST", **object_})
            assert answer["status"] == 201, answer["body"]
        if scenario.is_session:
            return [_session(case, plane.kubeconfig, kubectl) for case in scenario.cases]
        server = golden.Server(plane.url, TOKEN)
        if scenario.is_trails:
            return [_trail(case, server, plane.audit) for case in scenario.cases]
        with ThreadPoolExecutor(scenario.jobs) as pool:
            return [*pool.map(lambda case: record_case(server, case), scenario.cases)]


def namespace_of(id_: str) -> str:
    """Return a namespace that no other case has. It is short: objects have its name with a suffix, and some a limit."""
    return f"rec-{re.sub('[^a-z0-9]+', '-', id_.lower())[:12]}-{sha256(id_.encode()).hexdigest()[:8]}"


def has_no_response(request: dict) -> bool:
    """Return whether nothing is recorded of a request: of a pause, and of one whose response is not compared."""
    return "pause" in request or bool(request.get("ignore"))


def record_case(server, case: dict) -> dict:
    """Return a case with the server's response to each request."""
    namespace = namespace_of(case["id"])
    managed = "managedFields" in case["tags"]
    replies = golden.converse(server, case, namespace)
    steps = [
        step
        if has_no_response(step["request"])
        else {**step, "response": golden.normalise(reply, namespace, managed)}
        for step, reply in zip(case["steps"], replies, strict=True)
    ]
    return case | {"steps": steps}


def _trail(case: dict, server, audit: Path) -> dict:
    """Return a scenario with the number of writes of each controller after each of its steps."""
    found = trails.play(server, str(audit), case, f"trail-{case['id']}")
    return case | {"steps": [step | {"found": one} for step, one in zip(case["steps"], found, strict=True)]}


def with_write_budget(first: dict, second: dict) -> dict:
    """Return a scenario with the minimum and maximum of each kind of write over two recordings."""
    steps = []
    for step, again in zip(first["steps"], second["steps"], strict=True):
        kinds = sorted({*step["found"], *again["found"]})
        counts = {kind: sorted((step["found"].get(kind, 0), again["found"].get(kind, 0))) for kind in kinds}
        steps.append({"request": step["request"], "budget": counts})
    return first | {"steps": steps}


def _session(case: dict, kubeconfig: Path, kubectl: str) -> dict:
    """Return a session of kubectl with each command's output after it stopped changing."""
    shell = kubectl_golden.Shell(kubectl, str(kubeconfig), f"kr{abs(hash(case['id'])) % 10**6}")
    shell.set_up()
    steps = [step | _stable_output(shell, step) for step in case["steps"]]
    shell.tear_down()
    return case | {"steps": steps}


def _stable_output(shell, step: dict) -> dict:
    last, times = {}, 0
    for _ in range(MAX_TRIES):
        reply = kubectl_golden.clean(shell.run(step["cmd"], step.get("stdin", "")), step, shell.ns)
        times = times + 1 if reply == last else 1
        last = reply
        if times == SETTLING or not step.get("retry", True):
            break
    return last


def write_cases(path: Path, cases: Sequence[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(case) + b"\n" for case in cases))


def _options():
    parser = argparse.ArgumentParser(prog="python -m judges.recorder", description=__doc__.partition("\n")[0])
    parser.add_argument("scenarios", nargs="+", type=Path, help="files as those in judges/recorder/scenarios")
    parser.add_argument(
        "--output", default=str(FOLDER), help="the folder that the recordings are written into"
    )
    parser.add_argument("--kubectl", default="kubectl", help="the program that holds the sessions")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
