"""Sessions of kubectl with a real cluster, had again with ours: what kubectl prints must be the same.

The recordings bring their own runner. `sessions.json` names the sessions that wait for something that is not built yet.
"""

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.support.kubectls import NO_KUBECTL, binaries
from tests.support.recordings import FOLDER, cases, present

RUNNER = FOLDER / "kubectl_golden.py"
WAITING = orjson.loads((Path(__file__).parent / "sessions.json").read_bytes())
"""By session: what it waits for."""

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
def test_kubectl_prints_what_it_printed_before_a_real_cluster(
    session, quiet_control_plane, kubectl, tmp_path
):
    name = present(session)["id"]
    file = tmp_path / "session.jsonl"
    file.write_bytes(orjson.dumps(session))
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
    if name in WAITING:
        assert done.returncode != 0, (
            f"{name} waits no longer for {WAITING[name]}: take it out of sessions.json"
        )
    else:
        assert done.returncode == 0, done.stdout + done.stderr
