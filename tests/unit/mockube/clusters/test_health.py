"""The problems of an unhealthy cluster; `tests/cli/test_up.py` tests a real one."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mockube.clusters.health import check_health
from mockube.clusters.named_cluster import ClusterState, FoundCluster
from mockube.component_base.component_urls import write_component_urls
from tests.support.processes.clusters import ready


@pytest.mark.parametrize(
    ("state", "record", "problem"),
    [
        pytest.param(ClusterState.DEAD, ready(), "the process that ran it was killed", id="killed"),
        pytest.param(ClusterState.STARTING, ready(), "it is not ready yet", id="not ready"),
    ],
)
def test_stopped_cluster_has_one_problem(folder, state, record, problem):
    assert check_health(FoundCluster(folder=folder, state=state, record=record)).problems == (problem,)


def test_unresponsive_server_and_stopped_process_are_problems(folder):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"https://127.0.0.1:{closed.getsockname()[1]}"
    folder.kubeconfig.write_text(
        f"{{current-context: x, contexts: [{{name: x, context: {{cluster: x}}}}], "
        f"clusters: [{{name: x, cluster: {{server: '{url}'}}}}]}}"
    )
    cluster = FoundCluster(
        folder=folder, state=ClusterState.RUNNING, record=ready(url, apiserver=1, manager=0)
    )
    not_running, unanswered = check_health(cluster).problems
    assert not_running == "the manager is not running"
    assert unanswered.startswith(f"{url} does not respond: ")


class Unhealthy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_):
        pass


def test_component_that_is_not_healthy_is_a_problem(folder):
    folder.kubeconfig.write_text("{}")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        free = closed.getsockname()[1]
    with ThreadingHTTPServer(("127.0.0.1", 0), Unhealthy) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}/healthz"
        urls = {"controller-manager": url, "scheduler": url, "controllers-page": "http://127.0.0.1:1"}
        write_component_urls(folder.component_urls, urls)
        record = ready("https://x", **{"controller-manager": 1})
        cluster = FoundCluster(folder=folder, state=ClusterState.RUNNING, record=record)
        assert check_health(cluster).problems[0] == "the controller-manager is not healthy: /healthz"
        server.shutdown()
    write_component_urls(folder.component_urls, {"scheduler": f"http://127.0.0.1:{free}/healthz"})
    assert check_health(cluster).problems[0].startswith("the scheduler does not respond: ")
    stopped = ready("https://x", **{"controller-manager": 0})
    write_component_urls(folder.component_urls, {"controller-manager": f"http://127.0.0.1:{free}/healthz"})
    first, second = check_health(
        FoundCluster(folder=folder, state=ClusterState.RUNNING, record=stopped)
    ).problems
    assert first == "the controller-manager is not running"
    assert second.startswith("https://x does not respond: ")


def test_kubeconfig_without_server_is_a_problem(folder):
    folder.kubeconfig.write_text("{}")
    cluster = FoundCluster(folder=folder, state=ClusterState.RUNNING, record=ready("https://x"))
    (problem,) = check_health(cluster).problems
    assert problem.startswith("https://x does not respond: ")
