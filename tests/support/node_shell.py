"""`mockube node-shell` as a process, with a cluster of the test."""

import subprocess
import sys

from tests.support.event_loop import WAIT_TIMEOUT


def shell(cluster, *arguments, stdin=b""):
    """Run the command with a cluster; return its exit code, its output and its error output."""
    command = [
        sys.executable,
        "-m",
        "mockube",
        "node-shell",
        "--kubeconfig",
        str(cluster.kubeconfig),
        *arguments,
    ]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=WAIT_TIMEOUT, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def on_node(cluster, script, node="control-plane-1"):
    """Run a script on a node; return its output."""
    code, output, errors = shell(cluster, node, "--", "sh", "-c", script)
    assert code == 0, errors
    return output
