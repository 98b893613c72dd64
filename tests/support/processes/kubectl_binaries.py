"""The kubectl binaries of this machine: the one on PATH, and other versions in the same folder."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NO_KUBECTL = "no kubectl on this machine"


def binaries():
    """Parameters for a test: each kubectl under the end of its name, as kubectl or kubectl.1.27; those between the oldest and the newest for a release."""
    found = shutil.which("kubectl")
    if found is None:
        return [pytest.param(None, id="none")]
    beside = sorted(Path(found).resolve().parent.glob("kubectl*"))
    every = [path for path in beside if os.access(path, os.X_OK) and path.is_file()]
    return [
        pytest.param(path, id=path.name, marks=[pytest.mark.release] if path in every[2:-1] else [])
        for path in every
    ]


def require_kubectl(binary):
    if binary is None:
        pytest.skip(NO_KUBECTL)
    return binary


class Kubectl:
    """Runs one binary against one cluster; returns its output, and fails if it failed."""

    def __init__(self, binary, kubeconfig, home):
        self._binary = binary
        self._environment = {
            "PATH": os.environ["PATH"],
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(home),
            "KUBE_EDITOR": "sed -i s/edit-me/edited/",
        }

    def attempt(self, *arguments, stdin=""):
        return subprocess.run(
            [str(self._binary), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env=self._environment,
            check=False,
        )

    def start(self, *arguments):
        """Start a command that continues; its output is discarded."""
        return subprocess.Popen(
            [str(self._binary), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environment,
        )

    def __call__(self, *arguments, stdin=""):
        done = self.attempt(*arguments, stdin=stdin)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout
