"""Node ports and load balancers on this machine lead to pods, by the rules of the cluster's network."""

import os
import socket
import ssl
import sys
import urllib.request

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from kubernetes import client as official

from mockube import Cluster
from mockube.apimachinery.randomness import SystemRandom
from mockube.component_base.clock import RealClock
from mockube.component_base.serving_certificates import self_signed_pair
from tests.support.process_pods import IMAGES, create, python
from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ECHO = """
import asyncio, os
async def serve(reader, writer):
    writer.write(b"hello ")
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write(b" bye")
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["MOCKUBE_PORT_8080"]), backlog=1000)
    await server.serve_forever()
asyncio.run(main())
"""
SENDER = """
import os, socket
server = socket.create_server(("127.0.0.1", int(os.environ["MOCKUBE_PORT_8080"])))
while True:
    client, _ = server.accept()
    try:
        while True:
            client.sendall(bytes(65536))
    except OSError:
        pass
"""


def addresses():
    """Return a range for load balancers that no other process of the tests uses."""
    return f"127.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}.0/24"


@pytest.fixture(scope="module")
def cluster():
    flags = ["--publish", f"--load-balancer-cidr={addresses()}"]
    with Cluster(nodes=1, images=IMAGES, manager_flags=flags) as started:
        yield started


@pytest.fixture(scope="module")
def web(cluster):
    """Create a simulated server that says who its client is."""
    cluster.apply("""
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: c, image: registry.k8s.io/e2e-test-images/agnhost:2.53, args: [netexec]}]}
""")
    cluster.wait("Pod", "web", "Ready")
    return {"app": "web"}


def publish(cluster, name, selector, kind="NodePort", **spec):
    """Create a Service, and return the address and the port where it is published."""
    body = {"type": kind, "selector": selector, "ports": [{"port": 80, "targetPort": 8080}], **spec}
    cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": body})
    if kind == "LoadBalancer":
        cluster.wait("Service", name, lambda service: service["status"]["loadBalancer"].get("ingress"))
    service = cluster.get("Service", name)
    port = service["spec"]["ports"][0].get("nodePort")
    ingress = service["status"]["loadBalancer"].get("ingress")
    found = (ingress[0]["ip"], 80) if ingress else ("127.0.0.1", port)
    key = f"default.{name}.80.{'load-balancer' if ingress else 'node-port'}"
    record = record_of(cluster)
    if key in record:
        address, _, number = record[key].rpartition(":")
        found = address, int(number)
    if selector:
        until(lambda: leads_somewhere(found), f"{name} leads somewhere")
    return found


def leads_somewhere(endpoint):
    """Return whether connections are not reset, as they are without endpoints."""
    try:
        with connect(endpoint) as connection:
            connection.settimeout(0.05)
            connection.recv(1)
    except (ConnectionRefusedError, ConnectionResetError):
        return False
    except TimeoutError:
        pass
    return True


def record_of(cluster, condition=bool):
    name = "mockube-published-ports"
    return cluster.wait("ConfigMap", name, lambda each: condition(each["data"]), namespace="kube-system")[
        "data"
    ]


def read(endpoint, path="/"):
    with urllib.request.urlopen(f"http://{endpoint[0]}:{endpoint[1]}{path}", timeout=10) as response:
        return response.read().decode()


def connect(endpoint):
    connection = socket.create_connection(endpoint, timeout=10)
    connection.settimeout(10)
    return connection


def read_all(connection):
    parts = []
    while data := connection.recv(1 << 16):
        parts.append(data)
    return b"".join(parts)


def test_node_port_leads_to_pod_with_address_of_its_node(cluster, web):
    endpoint = publish(cluster, "plain", web)
    assert endpoint[0] == "127.0.0.1"
    assert read(endpoint, "/hostname") == "web"
    assert read(endpoint, "/clientip").startswith(cluster.get("Pod", "web")["status"]["hostIP"])


def test_load_balancer_has_address_of_its_own(cluster, web):
    endpoint = publish(cluster, "balanced", web, "LoadBalancer", externalTrafficPolicy="Local")
    assert endpoint[0].startswith(addresses().partition(".0/")[0])
    assert read(endpoint, "/clientip") == "127.0.0.1:40000"
    script = f"wget -qO- {cluster.get('Service', 'balanced')['status']['loadBalancer']['ingress'][0]['ip']}/hostname"
    cluster.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: inside}, spec: {containers: [{name: c, image: busybox, command: [sleep, inf]}]}}"
    )
    cluster.wait("Pod", "inside", "Ready")
    assert cluster.exec("inside", ["sh", "-c", script]).stdout == "web"


def test_taken_port_is_replaced_and_reported(cluster, web):
    taken = next(number for number in range(32000, 32700) if _is_free(number))
    key = "default.taken.80.node-port"
    with socket.create_server(("127.0.0.1", taken)):
        ports = [{"port": 80, "targetPort": 8080, "nodePort": taken}]
        spec = {"type": "NodePort", "selector": web, "ports": ports}
        cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "taken"}, "spec": spec})
        record = record_of(cluster, lambda data: key in data)
    address, _, number = record[key].rpartition(":")
    assert int(number) != taken
    until(lambda: leads_somewhere((address, int(number))), "the Service leads somewhere")
    assert read((address, int(number)), "/hostname") == "web"
    text = f"port {taken} of 127.0.0.1 is taken by another program: node port {taken} is published at {record[key]} in its place"
    until(lambda: text in [event["message"] for event in cluster.list("Event")], text)
    cluster.delete("Service", "taken")
    record_of(cluster, lambda data: key not in data)


def _is_free(port):
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


def test_service_without_endpoints_resets(cluster):
    endpoint = publish(cluster, "empty", {})
    with pytest.raises(ConnectionResetError), connect(endpoint) as connection:  # also connecting may fail
        connection.recv(1)


def test_closed_service_gets_nothing(cluster, web):
    ranges = publish(cluster, "ranges", web, "LoadBalancer", loadBalancerSourceRanges=["10.0.0.0/8"])
    cluster.apply("""
apiVersion: v1
kind: Pod
metadata: {name: closed, labels: {app: closed}}
spec: {containers: [{name: c, image: registry.k8s.io/e2e-test-images/agnhost:2.53, args: [netexec]}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec: {podSelector: {matchLabels: {app: closed}}, policyTypes: [Ingress]}
""")
    cluster.wait("Pod", "closed", "Ready")
    policy = publish(cluster, "closed", {"app": "closed"})
    for endpoint in (ranges, policy):
        with connect(endpoint) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.recv(1)


def own_address():
    """Return an address of this machine that is not a loopback one; one of no machine if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "192.0.2.7"
        return probe.getsockname()[0]


def test_endpoint_that_is_no_pod_gets_no_connection(cluster):
    """An EndpointSlice must not make a proxy into this machine."""
    with socket.create_server(("", 0)) as own:
        own.settimeout(0)
        cluster.apply(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": "proxy", "labels": {"kubernetes.io/service-name": "proxy"}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [own_address()]}],
                "ports": [{"port": own.getsockname()[1]}],
            }
        )
        endpoint = publish(cluster, "proxy", {})
        with pytest.raises(ConnectionResetError), connect(endpoint) as connection:  # also connecting may fail
            connection.recv(1)
        with pytest.raises(BlockingIOError):
            own.accept()


@pytest.fixture(scope="module")
def pods(cluster):
    return official.CoreV1Api(cluster.kubernetes())


def run(cluster, pods, script, label):
    ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    name = create(pods, python(script, ports=[{"containerPort": 8080}], readinessProbe=ready))
    pods.patch_namespaced_pod(name, "default", {"metadata": {"labels": {"app": label}}})
    cluster.wait("Pod", name, "Ready")
    return name


def test_process_gets_all_bytes_of_many_clients(cluster, pods):
    run(cluster, pods, ECHO, "echo")
    endpoint = publish(cluster, "echo", {"app": "echo"})
    connections = [connect(endpoint) for _ in range(50)]
    for number, connection in enumerate(connections):
        connection.sendall(b"%d " % number * 10_000)
        connection.shutdown(socket.SHUT_WR)
    for number, connection in enumerate(connections):
        with connection:
            assert read_all(connection) == b"hello " + b"%d " % number * 10_000 + b" bye"


def test_connection_breaks_when_pod_is_killed_while_it_sends(cluster, pods):
    name = run(cluster, pods, SENDER, "sender")
    endpoint = publish(cluster, "sender", {"app": "sender"})
    with connect(endpoint) as connection:
        assert connection.recv(1)
        pods.delete_namespaced_pod(name, "default", grace_period_seconds=0)
        with pytest.raises(ConnectionResetError):
            read_all(connection)


def test_open_connection_to_simulated_pod_breaks_with_it(cluster):
    cluster.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: gone, labels: {app: gone}}, spec: {containers: [{name: c, image: redis}]}}"
    )
    cluster.wait("Pod", "gone", "Ready")
    endpoint = publish(cluster, "gone", {"app": "gone"}, ports=[{"port": 80, "targetPort": 6379}])
    with connect(endpoint) as connection:
        connection.sendall(b"PING\r\n")
        assert connection.recv(16) == b"+PONG\r\n"
        cluster.delete("Pod", "gone")
        with pytest.raises(ConnectionResetError):
            read_all(connection)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says whose a socket is")
def test_port_of_other_program_is_not_reached_by_pod_that_declares_it(cluster, pods):
    with socket.create_server(("127.0.0.1", 0)) as own:
        own.settimeout(0)
        port = own.getsockname()[1]
        name = create(pods, python("import time; time.sleep(1000)", ports=[{"containerPort": port}]))
        pods.patch_namespaced_pod(name, "default", {"metadata": {"labels": {"app": "thief"}}})
        cluster.wait("Pod", name, "Ready")
        endpoint = publish(cluster, "thief", {}, ports=[{"port": 80, "targetPort": port}])
        cluster.patch("Service", "thief", {"spec": {"selector": {"app": "thief"}}})
        cluster.wait("Endpoints", "thief", lambda each: each.get("subsets"))
        with pytest.raises(ConnectionResetError), connect(endpoint) as connection:  # also connecting may fail
            connection.recv(1)
        with pytest.raises(BlockingIOError):
            own.accept()


def test_simulated_server_with_certificate_speaks_tls(cluster):
    cluster.apply("""
apiVersion: v1
kind: ConfigMap
metadata: {name: tls}
data: {default.conf: "server { listen 443 ssl; ssl_certificate /tls/tls.crt; ssl_certificate_key /tls/tls.key; return 200 secret; }"}
""")
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "of the pod")])
    names = x509.SubjectAlternativeName([x509.DNSName("tls")])
    pair = self_signed_pair(subject, names, now=RealClock().now(), random=SystemRandom())
    data = {key: text.decode() for key, text in zip(("tls.crt", "tls.key"), pair, strict=True)}
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls"}, "stringData": data})
    cluster.apply("""
apiVersion: v1
kind: Pod
metadata: {name: tls, labels: {app: tls}}
spec:
  volumes: [{name: conf, configMap: {name: tls}}, {name: tls, secret: {secretName: tls}}]
  containers:
  - {name: c, image: nginx, volumeMounts: [{name: conf, mountPath: /etc/nginx/conf.d}, {name: tls, mountPath: /tls}]}
""")
    cluster.wait("Pod", "tls", "Ready")
    endpoint = publish(cluster, "tls", {"app": "tls"}, ports=[{"port": 80, "targetPort": 443}])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(connect(endpoint), server_hostname="tls") as client:
        certificate = x509.load_der_x509_certificate(client.getpeercert(binary_form=True))
        assert certificate.subject == subject
        client.sendall(b"GET / HTTP/1.1\r\nHost: tls\r\nConnection: close\r\n\r\n")
        assert read_all(client).endswith(b"secret")
