"""The API server and the controller manager as real processes, and a client that uses the kubeconfig of the server.

Nothing waits for a fixed time: the processes are ready when their logs say so.
"""

import base64
import contextlib
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import aiohttp
import yaml

from tests.support.server.apiserver import Client
from tests.support.stores.etcd_server import die_with_parent

ROOT = Path(__file__).parents[3]
START_TIMEOUT = 60.0
_ENVIRONMENT = ("MOCKUBE_APISERVER_", "KUBECONFIG")


class ProcessFailed(Exception):
    pass


class Process:
    """One process. `start` returns when it is ready; `stop` ends it with SIGTERM and returns its exit code."""

    MODULE = ""
    READY = re.compile("")

    def __init__(self, *arguments):
        self.log = []
        self.ready = None
        """The log message that reports readiness."""
        self._arguments = arguments
        self._known = threading.Event()
        self._logged = threading.Condition()

    def start(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(_ENVIRONMENT)}
        self._process = subprocess.Popen(
            [*self._program(), *map(str, self._arguments)],
            cwd=ROOT,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - it makes one system call and takes no lock
        )
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        if not self._known.wait(START_TIMEOUT) or self.ready is None:
            self.__exit__()
            raise ProcessFailed("".join(self.log))
        return self

    @property
    def pid(self):
        return self._process.pid

    @property
    def is_running(self):
        return self._process.poll() is None

    def signal(self, number):
        self._process.send_signal(number)

    def wait(self):
        code = self._process.wait(START_TIMEOUT)
        self._reader.join()
        return code

    def wait_logged(self, words, *, times=1):
        """Wait until this many lines of the log contain the words."""
        with self._logged:
            found = self._logged.wait_for(
                lambda: sum(words in line for line in self.log) >= times, START_TIMEOUT
            )
        if not found:
            raise ProcessFailed("".join(self.log))

    def lines_after(self, position):
        """Wait until the log has more lines than `position`, and return them; none after a minute."""
        with self._logged:
            self._logged.wait_for(lambda: len(self.log) > position, START_TIMEOUT)
            return self.log[position:]

    def stop(self):
        if self.is_running:
            self.signal(signal.SIGTERM)
        return self.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        if self.is_running:
            self._process.kill()
        self.wait()

    def _program(self):
        return [sys.executable, "-m", self.MODULE]

    def _read_log(self):
        with self._process.stderr as lines:
            for line in lines:
                with self._logged:
                    self.log.append(line)
                    self._logged.notify_all()
                if match := self.READY.search(line):
                    self.ready = match
                    self._known.set()
        self._known.set()  # the process ended


class ApiServerProcess(Process):
    """On a free port."""

    MODULE = "mockube.apiserver"
    READY = re.compile(r"Ready on (https://\S+)")

    def __init__(self, folder, *arguments):
        self.kubeconfig = Path(folder) / "kubeconfig"
        super().__init__("--secure-port=0", f"--write-kubeconfig={self.kubeconfig}", *arguments)

    @property
    def url(self):
        return self.ready[1]


class ManagerProcess(Process):
    """Ready when it is the leader."""

    MODULE = "mockube.controller_manager"
    READY = re.compile(r"Controllers: ")

    def __init__(self, kubeconfig, *arguments):
        super().__init__(f"--kubeconfig={kubeconfig}", "--secure-port=0", *arguments)


def tls(kubeconfig, *, certificate=True):
    """Return the TLS context of a kubeconfig: its CA and its client certificate."""
    tree = yaml.safe_load(Path(kubeconfig).read_text())
    decoded = {
        name: base64.b64decode(value)
        for part in (tree["clusters"][0]["cluster"], tree["users"][0]["user"])
        for name, value in part.items()
        if name.endswith("-data")
    }
    context = ssl.create_default_context(cadata=decoded["certificate-authority-data"].decode())
    if certificate:
        with tempfile.NamedTemporaryFile() as file:
            file.write(decoded["client-certificate-data"] + decoded["client-key-data"])
            file.flush()
            context.load_cert_chain(file.name)
    return context


def token(kubeconfig):
    return yaml.safe_load(Path(kubeconfig).read_text())["users"][0]["user"]["token"]


@contextlib.asynccontextmanager
async def client(server, *, certificate=False, token_=None):
    """Return a client with the kubeconfig's token, another one, or ("") none."""
    connector = aiohttp.TCPConnector(ssl=tls(server.kubeconfig, certificate=certificate))
    async with aiohttp.ClientSession(connector=connector, read_bufsize=1 << 22) as session:
        bearer = token(server.kubeconfig) if token_ is None else token_
        yield Client(session, server.url, authorization=f"Bearer {bearer}" if bearer else "")
