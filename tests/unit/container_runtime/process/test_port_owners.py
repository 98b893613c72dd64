"""A port of this machine counts as a pod's only if a process of the pod listens there."""

import socket
import subprocess
import sys

import pytest

from mockube.container_runtime.process.port_owners import PortOwners

LISTEN = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says whose a socket is")
def test_port_belongs_to_process_with_marker():
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", LISTEN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"MOCKUBE_ROOT": "/tmp/uid-of-pod/root"},
        ) as process,
    ):
        port = int(process.stdout.readline())
        owners = PortOwners("uid-of-pod")
        assert owners.has(port)
        assert owners.has(port)
        assert not owners.has(other.getsockname()[1])
        assert not PortOwners("uid-of-another").has(port)
        process.stdin.close()
    assert owners.has(port)  # nothing listens there: the connection is refused
