"""kubectl prints the same in recorded sessions with a real cluster and in sessions with ours.

The runner is part of the recordings. `differences.json` lists the sessions that may differ, with the reason.
"""

import subprocess
import sys

import orjson
import pytest

from mockube.component_base.clock import RealClock
from tests.support.processes.kubectl_binaries import NO_KUBECTL, binaries
from tests.support.recorded.recordings import FOLDER, cases, reasons
from tests.support.recorded.schedule_periods import replay_between_runs

RUNNER = FOLDER / "kubectl_golden.py"
DIFFERING = reasons("kubectl/sessions")
"""Why a session may differ, by its id."""

SECONDS_OF_DIFFERENCE = 2
"""How long a step that is expected to differ is retried; one that waits for a controller is as recorded long before."""

THEIRS = "kg"
"""Prefix of the runner's namespaces."""


@pytest.fixture(scope="module")
def kubectl():
    """The newest installed kubectl: some of the output depends on its version."""
    found = [binary.values[0] for binary in binaries() if binary.values[0] is not None]
    if not found:
        pytest.skip(NO_KUBECTL)
    return found[-1]


@pytest.fixture
def quiet_control_plane(control_plane, kubectl):
    """Wait until namespaces of earlier sessions are deleted: a session that drains a node would print their pods."""
    asked = [str(kubectl), "--kubeconfig", str(control_plane.kubeconfig)]
    present = subprocess.run(
        [*asked, "get", "namespaces", "-o", "name"], capture_output=True, text=True, check=True
    )
    if left := [name for name in present.stdout.split() if name.startswith(f"namespace/{THEIRS}")]:
        subprocess.run(
            [*asked, "wait", "--for=delete", "--timeout=60s", *left], capture_output=True, check=True
        )
    return control_plane


@pytest.mark.timeout(300)
@pytest.mark.parametrize("session", cases("kubectl/*.jsonl"))
def test_kubectl_sessions_print_recorded_output(session, quiet_control_plane, kubectl, tmp_path):
    def replay(steps, *arguments):
        file = tmp_path / "session.jsonl"
        file.write_bytes(orjson.dumps(session | {"steps": steps}))
        done = subprocess.run(
            [
                *(sys.executable, str(RUNNER), "run", str(file), "-v"),
                *("--kubeconfig", str(quiet_control_plane.kubeconfig), "--kubectl", str(kubectl)),
                *arguments,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        print(done.stdout)
        return done

    name, steps = session["id"], session["steps"]
    if name in DIFFERING:
        brief = ("--patience", str(SECONDS_OF_DIFFERENCE))
        is_same = all(replay(steps[:count], *brief).returncode == 0 for count in prefixes(len(steps)))
        assert not is_same, f"{name} is the same now: take it out of differences.json"
    else:
        done = replay_between_runs(lambda: replay(steps), RealClock())
        assert done.returncode == 0, done.stdout + done.stderr


def prefixes(length):
    """How many steps are replayed of a session that is expected to differ, until it does.

    A step that differs is retried until it times out, so the replay stops at the first one.
    """
    count = 1
    while count < length:
        yield count
        count *= 2
    yield length
