"""Programs in simulated containers reach containers that run as processes."""

import pytest
from kubernetes import client as official

from mockube import Cluster
from tests.support.process_pods import IMAGES, create, python

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(418)
        self.send_header("X-Path", self.path)
        self.end_headers()
        self.wfile.write(b"got " + body)
http.server.HTTPServer(("127.0.0.1", int(os.environ["MOCKUBE_PORT_8080"])), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, images=IMAGES) as started:
        yield started


def test_simulated_container_reaches_process(cluster):
    pods = official.CoreV1Api(cluster.kubernetes())
    ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    server = create(pods, python(SERVER, ports=[{"containerPort": 8080}], readinessProbe=ready))
    address = cluster.wait("Pod", server, "Ready")["status"]["podIP"]
    script = f"curl -s -d hello -w ' %{{http_code}}\\n' {address}:8080/x; nc -zv {address} 8080"
    container = {"name": "c", "image": "example.org/client", "command": ["sh", "-c", script]}
    client = create(pods, container, policy="Never")
    cluster.wait("Pod", client, lambda pod: pod["status"].get("phase") in ("Succeeded", "Failed"))
    log = pods.read_namespaced_pod_log(client, "default")
    assert log == f"got hello 418\n{address} ({address}:8080) open\n"


ANSWER_AT_THE_END = """
import contextlib, os, socket
server = socket.create_server(("127.0.0.1", int(os.environ["MOCKUBE_PORT_8080"])))
while True:
    client, _ = server.accept()
    with contextlib.suppress(OSError), client, client.makefile("rwb") as stream:
        stream.write(b"banner ")
        stream.flush()
        stream.write(b"got " + stream.read() + b"bye ")
"""


def test_nc_gets_what_a_process_sends_first_and_at_the_end_of_the_input(cluster):
    pods = official.CoreV1Api(cluster.kubernetes())
    server = create(pods, python(ANSWER_AT_THE_END, ports=[{"containerPort": 8080}]))
    address = cluster.wait("Pod", server, "Ready")["status"]["podIP"]
    script = f"until nc -z {address} 8080; do sleep 1; done; printf 'hi ' | nc {address} 8080; nc {address} 8080 </dev/null"
    container = {"name": "c", "image": "example.org/client", "command": ["sh", "-c", script]}
    client = create(pods, container, policy="Never")
    cluster.wait("Pod", client, lambda pod: pod["status"].get("phase") in ("Succeeded", "Failed"))
    assert pods.read_namespaced_pod_log(client, "default") == "banner got hi bye banner got bye "
