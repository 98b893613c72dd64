"""Clients recover when an API server is replaced by one with an empty store at the same address.

A client has revisions of the earlier store. The new server returns 410 for them, so each client lists again.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mockube.component_base.clock import RealClock
from tests.support.processes import go_programs, kubectl_binaries
from tests.support.processes.kubectl_binaries import Kubectl
from tests.support.processes.process import ApiServerProcess, ManagerProcess

HERE = Path(__file__).parent
CLOCK = RealClock()
WAIT_TIMEOUT = 60.0
"""Seconds for everything before the server is replaced, also on a busy machine."""
RECOVERY = 10.0
"""Seconds within which a client recovers, besides its own backoff, which grows to twice the time without a server."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(go_programs.BUILD_SECONDS + 4 * WAIT_TIMEOUT)]


class RestartableServer:
    """A server that can be replaced by an empty one with the same address, certificates and kubeconfig."""

    def __init__(self, folder):
        self._folder = folder
        self._arguments = (f"--cert-dir={folder / 'pki'}",)
        self._server = ApiServerProcess(folder, *self._arguments).start()
        self.kubeconfig = self._server.kubeconfig
        self.kubectl = Kubectl(
            kubectl_binaries.require_kubectl(kubectl_binaries.binaries()[0].values[0]),
            self.kubeconfig,
            folder,
        )

    def replace(self):
        """Replace the server; return the time limit of its clients' recovery, in seconds."""
        since = CLOCK.monotonic()
        port = self._server.url.rpartition(":")[2]
        self._server.signal(signal.SIGKILL)
        self._server.wait()
        self._server = ApiServerProcess(self._folder, *self._arguments, f"--secure-port={port}").start()
        return RECOVERY + 2 * (CLOCK.monotonic() - since)

    def close(self):
        self._server.__exit__()


@pytest.fixture
def server(tmp_path):
    server = RestartableServer(tmp_path)
    yield server
    server.close()


class LineReader:
    """A process whose output is read line by line."""

    def __init__(self, command, **environment):
        self._process = subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **environment},
        )
        self._lines = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait_for(self, words, within=WAIT_TIMEOUT):
        """Return when a line contains the words; raise queue.Empty after the time limit."""
        deadline = CLOCK.monotonic() + within
        while words not in self._lines.get(timeout=deadline - CLOCK.monotonic()):
            pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def _read(self):
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)


def wait_until(met, within=WAIT_TIMEOUT):
    """Poll a condition; each poll runs kubectl, which takes long enough that no sleep is needed."""
    deadline = CLOCK.monotonic() + within
    while not met():
        assert CLOCK.monotonic() < deadline, met.__name__


def make_many_changes(kubectl):
    """Advance the first store's revision well beyond that of a new store that starts at 1."""
    for number in range(3):
        kubectl("create", "configmap", f"before-{number}")


def test_manager_schedules_pods_created_after_store_replacement(server):
    kubectl = server.kubectl

    def is_ready():
        return kubectl("get", "deployment", "web", "--output=jsonpath={.status.readyReplicas}") == "3"

    def has_its_nodes():
        return kubectl("get", "nodes", "--output=name").split() == ["node/node-1", "node/node-2"]

    with ManagerProcess(server.kubeconfig, "--simulate-nodes=2") as manager:
        kubectl("create", "deployment", "web", "--image=x", "--replicas=3")
        wait_until(is_ready)
        within = server.replace()
        kubectl("create", "deployment", "web", "--image=x", "--replicas=3")
        wait_until(is_ready, within)
        wait_until(has_its_nodes, within)  # may take longer: the scheduler's node cache can be stale
        assert manager.is_running
        assert manager.stop() == 0


def test_client_go_informer_reports_deleted_and_added_objects_after_store_replacement(server, go_program):
    make_many_changes(server.kubectl)
    with LineReader([go_program, "--kubeconfig", server.kubeconfig, "--follow=default"]) as events:
        events.wait_for("add before-2")
        within = server.replace()
        server.kubectl("create", "configmap", "after")
        events.wait_for("delete before-2", within)
        events.wait_for("add after", within)


def test_kubectl_watch_ends_after_store_replacement(server):
    """`kubectl get --watch` does not list again: it exits when the connection of its watch breaks."""
    make_many_changes(server.kubectl)
    watching = server.kubectl.start("get", "configmaps", "--watch-only")
    with watching:
        assert watching.wait(server.replace()) is not None


def test_kubectl_watch_resumed_after_store_replacement_is_refused(server):
    make_many_changes(server.kubectl)
    path = "/api/v1/namespaces/default/configmaps"
    version = server.kubectl("get", "--raw", path).partition('"resourceVersion":"')[2].partition('"')[0]
    server.replace()
    answer = server.kubectl("get", "--raw", f"{path}?watch=true&resourceVersion={version}&timeoutSeconds=5")
    assert '"code":410' in answer
    assert f"too old resource version: {version} (" in answer


def test_kopf_operator_handles_objects_created_after_store_replacement(server):
    kubectl = server.kubectl
    operator = [
        *(sys.executable, "-m", "kopf", "run", "--standalone", "--namespace=default"),
        HERE / "config_map_operator.py",
    ]

    def create(name):
        kubectl("create", "configmap", name)
        kubectl("label", "configmap", name, "wanted=yes")

    def is_handled(name):
        return lambda: kubectl("get", "configmap", name, "--output=jsonpath={.data.handled}") == "yes"

    with LineReader(operator, KUBECONFIG=str(server.kubeconfig)):
        create("before")
        wait_until(is_handled("before"))
        within = server.replace()
        create("after")
        wait_until(is_handled("after"), within)
