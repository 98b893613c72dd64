"""The running instances of an operator under test."""

import sys
from pathlib import Path

import pytest

from mockube.judging.instances import ProcessInstance

KUBECONFIG = Path("/nonexistent/kubeconfig")
MEGABYTES = 60


@pytest.mark.skipif(sys.platform != "linux", reason="the memory is read from /proc")
def test_memory_is_that_of_all_processes_of_the_command(tmp_path: Path) -> None:
    up = tmp_path / "up"
    child = f"text = bytearray({MEGABYTES} << 20); open({str(up)!r}, 'w').write('up'); import signal; signal.pause()"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    instance = ProcessInstance([sys.executable, "-c", script], kubeconfig=KUBECONFIG, environment={})
    try:
        while not up.exists():
            instance._process._reader.join(0.01)
            assert instance.code is None, instance.last_lines()
        assert (instance.memory() or 0) > MEGABYTES << 20
    finally:
        instance.kill()
