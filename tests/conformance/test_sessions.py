"""Sessions of kubectl with a real cluster, had again with ours: what kubectl prints must be the same.

The recordings bring their own runner. `differences.json` lists the sessions that may differ, with the reason.
"""

import subprocess
import sys

import orjson
import pytest

from tests.support.processes.kubectl_binaries import NO_KUBECTL, binaries
from tests.support.recorded.recordings import FOLDER, cases, reasons

RUNNER = FOLDER / "kubectl_golden.py"
DIFFERING = reasons("kubectl/sessions")
"""Why a session may differ, by its id."""

THEIRS = "kg"
"""What the runner's namespaces begin with."""


@pytest.fixture(scope="module")
def kubectl():
    """The newest that there is: some of what was recorded depends on its version."""
    found = [binary.values[0] for binary in binaries() if binary.values[0] is not None]
    if not found:
        pytest.skip(NO_KUBECTL)
    return found[-1]


@pytest.fixture
def quiet_control_plane(control_plane, kubectl):
    """Without what earlier sessions leave to be deleted: one that drains a node would be told of it."""
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
    def replay(steps):
        file = tmp_path / "session.jsonl"
        file.write_bytes(orjson.dumps(session | {"steps": steps}))
        done = subprocess.run(
            [
                *(sys.executable, str(RUNNER), "run", str(file), "-v"),
                *("--kubeconfig", str(quiet_control_plane.kubeconfig), "--kubectl", str(kubectl)),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        print(done.stdout)
        return done

    name, steps = session["id"], session["steps"]
    if name in DIFFERING:
        is_same = all(replay(steps[:count]).returncode == 0 for count in prefixes(len(steps)))
        assert not is_same, f"{name} is the same now: take it out of differences.json"
    else:
        done = replay(steps)
        assert done.returncode == 0, done.stdout + done.stderr


def prefixes(length):
    """How many steps are replayed of a session that is expected to differ, until it does.

    Each step that differs is tried again for as long as one that is expected to be the same; the first one is enough.
    """
    count = 1
    while count < length:
        yield count
        count *= 2
    yield length
