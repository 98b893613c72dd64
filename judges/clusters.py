"""Starts the clusters that public charts, tasks and lessons run in."""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.processes.commands import Mockube


@contextlib.contextmanager
def running_cluster(flags: Sequence[str] = (), nodes: int = 3) -> Iterator[tuple[Path, Path]]:
    """Start a cluster as `mockube up` does, on a free port; yield its kubeconfig and a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="mockube-judges-") as folder:
        mockube = Mockube(Path(folder))
        try:
            started = mockube.run("up", "--detach", "--secure-port=0", f"--simulate-nodes={nodes}", *flags)
            if started.returncode:
                raise SystemExit(started.stderr)
            yield mockube.folder().kubeconfig, Path(folder)
        finally:
            mockube.run("down")
            mockube.close()
