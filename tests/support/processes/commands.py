"""The command `mockube`, as a process with clusters in a folder of the test, or in this process."""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import orjson

from mockube.cli.main import main
from mockube.clusters.named_cluster import cluster_folder, cluster_folders, read_record, wait_until
from mockube.component_base.clock import RealClock
from tests.support.processes.process import START_TIMEOUT, tls, token
from tools.packages import ROOT

_NOT_HANDED_ON = ("MOCKUBE_", "KUBECONFIG", "XDG_")


def exit_code(arguments):
    """Run a command in this process; return its exit code, from the return value or from SystemExit."""
    try:
        return main(arguments)
    except SystemExit as end:
        return end.code


class Mockube:
    """All processes that it starts end with it."""

    def __init__(self, home, **environment):
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(_NOT_HANDED_ON)}
        self.home = home
        self.environment = {
            **inherited,
            "PYTHONPATH": str(ROOT),
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "TMPDIR": str(home),
            **environment,
        }
        self._started = []

    def run(self, *arguments, **environment):
        return subprocess.run(
            self._command(arguments),
            cwd=self.home,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=START_TIMEOUT,
        )

    def start(self, *arguments):
        process = subprocess.Popen(
            self._command(arguments),
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def folder(self, name="default"):
        return cluster_folder(name, self.environment)

    def record(self, name="default"):
        return read_record(self.folder(name).record)

    def processes(self, name="default"):
        """Return the process ids of a cluster, the process that runs it first."""
        running = self.record(name)
        return [running.pid, *(one.pid for one in running.components.values())]

    def close(self):
        for process in self._started:
            process.kill()
            process.communicate()
        for folder in cluster_folders(self.environment):
            if running := read_record(folder.record):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(running.pid, signal.SIGKILL)

    def _command(self, arguments):
        return [sys.executable, "-m", "mockube", *arguments]


def ask(kubeconfig, method, path, body=None):
    """Return the status and the decoded body of the cluster of a kubeconfig."""
    url = next(line.split()[-1] for line in kubeconfig.read_text().splitlines() if "server:" in line)
    request = urllib.request.Request(
        url + path,
        method=method,
        data=None if body is None else orjson.dumps(body),
        headers={"Authorization": f"Bearer {token(kubeconfig)}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, context=tls(kubeconfig)) as answer:
            return answer.status, orjson.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, orjson.loads(error.read())


def wait_for(condition):
    assert asyncio.run(wait_until(condition, RealClock(), seconds=START_TIMEOUT))


def wait_line(stream, words):
    """Read lines up to the one that contains the words."""
    for line in stream:
        if words in line:
            return line
    raise AssertionError(f"{words!r} was not printed")


def wait_gone(process_ids):
    """Wait until none of the processes runs any more; a zombie has ended as well."""
    for number in process_ids:
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(number)
            try:
                ended, _, _ = select.select([descriptor], [], [], START_TIMEOUT)
                assert ended, f"process {number} did not end"
            finally:
                os.close(descriptor)
