"""How many writes each controller makes in a story, beside what the real ones made.

The recordings bring their own runner: creations and deletions must be exact, and updates no more than ever seen.
"""

import subprocess
import sys

import orjson
import pytest

from tests.support.recordings import FOLDER, cases, present

RUNNER = FOLDER / "trails.py"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("story", cases("trails/*.jsonl"))
def test_no_more_is_written_than_real_controllers_write(story, control_plane, tmp_path):
    file = tmp_path / "story.jsonl"
    file.write_bytes(orjson.dumps(present(story)))
    audit = control_plane.kubeconfig.with_name("audit")
    arguments = ["--server", control_plane.url, "--token", "admintoken", "--audit", str(audit)]
    done = subprocess.run(
        [sys.executable, str(RUNNER), "run", str(file), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
