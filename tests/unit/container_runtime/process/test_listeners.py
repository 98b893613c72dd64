"""The addresses on which processes listen."""

import os
import socket
from pathlib import Path

import pytest

from mockube.container_runtime.process.listeners import listens_on_loopback_only, parse_address


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="needs /proc/net/tcp of Linux")
@pytest.mark.parametrize(("host", "loopback"), [("127.0.0.1", "127.0.0.1"), ("", "")])
def test_listener_of_process_is_found(host, loopback):
    with socket.create_server((host, 0)) as server:
        port = server.getsockname()[1]
        assert listens_on_loopback_only(os.getpid(), port) == loopback
    assert not listens_on_loopback_only(os.getpid(), port)


def test_addresses_of_proc_are_parsed():
    assert [str(part) for part in parse_address("0100007F:1F90")] == ["127.0.0.1", "8080"]
    assert [str(part) for part in parse_address("00000000000000000000000001000000:0050")] == ["::1", "80"]
