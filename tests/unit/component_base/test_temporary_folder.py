"""A temporary folder is removed at the end of its block, and by no forked process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mockube.component_base.temporary_folder import remove_abandoned_folders, temporary_folder

FORK = """
import os, sys
from mockube.component_base.temporary_folder import temporary_folder

with temporary_folder("mockube-test-") as folder:
    child = os.fork()
    if child == 0:
        sys.exit()
    os.waitpid(child, 0)
    print(folder.exists())
"""


def test_folder_is_removed_at_end():
    with temporary_folder("mockube-test-") as folder:
        (folder / "file").write_text("text")
    assert not folder.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_folder_remains_when_a_forked_process_exits():
    result = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert result.stdout == "True\n"


KILLED = """
import os, signal
from mockube.component_base.temporary_folder import temporary_folder

with temporary_folder("mockube-test-killed-") as folder:
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_folder_of_a_killed_process_is_removed_and_that_of_a_running_one_remains(tmp_path):
    result = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    killed = Path(result.stdout.strip())
    with temporary_folder("mockube-test-killed-") as running:
        file = killed.with_name("mockube-test-killed-link")
        file.symlink_to(tmp_path)
        remove_abandoned_folders("mockube-test-killed-")
        assert (killed.exists(), running.exists(), tmp_path.exists()) == (False, True, True)
        file.unlink()
