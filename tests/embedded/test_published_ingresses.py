"""Ingresses and Gateways on this machine: hosts, paths, TLS with the certificates of Secrets, status and events."""

import base64
import hashlib
import http.client
import socket
import ssl

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
FAKE = "Kubernetes Ingress Controller Fake Certificate"
SERVER = """
import hashlib, http.server, os, socketserver
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if "Upgrade" in self.headers:
            self.connection.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: echo\\r\\n\\r\\n")
            while data := self.connection.recv(65536):
                self.connection.sendall(data.upper())
            return
        self.answer(b"")
    def do_POST(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(body)
    def answer(self, body):
        text = f"{self.path} {hashlib.sha256(body).hexdigest()} {self.headers['X-Forwarded-Proto']}".encode()
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"%x\\r\\n%s\\r\\n0\\r\\n\\r\\n" % (len(text), text))
    def log_message(self, *_):
        pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
Server(("127.0.0.1", int(os.environ["MOCKUBE_PORT_8080"])), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def cluster():
    flags = ["--publish", "--publish-http-port=0", "--publish-https-port=0"]
    with Cluster(nodes=1, images=IMAGES, manager_flags=flags) as started:
        yield started


@pytest.fixture(scope="module")
def server(cluster):
    """Create a Service of a process that says what it has received, and the Secret of a.example."""
    pods = official.CoreV1Api(cluster.kubernetes())
    ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    name = create(pods, python(SERVER, ports=[{"containerPort": 8080}], readinessProbe=ready))
    pods.patch_namespaced_pod(name, "default", {"metadata": {"labels": {"app": "server"}}})
    spec = {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]}
    pods.create_namespaced_service("default", {"metadata": {"name": "server"}, "spec": spec})
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    names = x509.SubjectAlternativeName([x509.DNSName("a.example")])
    pair = self_signed_pair(subject, names, now=RealClock().now(), random=SystemRandom())
    data = {
        key: base64.b64encode(value).decode() for key, value in zip(("tls.crt", "tls.key"), pair, strict=True)
    }
    pods.create_namespaced_secret(
        "default", {"metadata": {"name": "a"}, "type": "kubernetes.io/tls", "data": data}
    )
    cluster.wait("Pod", name, "Ready")
    return "server"


def ingress(cluster, name, host, *, tls="", path="/", **annotations):
    """Create an Ingress, and wait until it has an address."""
    names = {
        f"nginx.ingress.kubernetes.io/{key.replace('_', '-')}": text for key, text in annotations.items()
    }
    backend = {"service": {"name": "server", "port": {"number": 80}}}
    paths = [{"path": path, "pathType": "ImplementationSpecific", "backend": backend}]
    spec = {
        "ingressClassName": "nginx",
        "tls": [{"hosts": [host], "secretName": tls}] if tls else [],
        "rules": [{"host": host, "http": {"paths": paths}}],
    }
    metadata = {"name": name, "annotations": names}
    cluster.apply(
        {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}
    )
    cluster.wait(
        "Ingress", name, lambda each: each["status"]["loadBalancer"].get("ingress") == [{"ip": "127.0.0.1"}]
    )


def port(cluster, name):
    ready = cluster.wait(
        "ConfigMap", "mockube-published-ports", lambda each: name in each["data"], namespace="kube-system"
    )
    return int(ready["data"][name].rpartition(":")[2])


def connection(cluster, host, *, uses_tls=False):
    """Return a connection, and the common name of the server's certificate."""
    number = port(cluster, "https" if uses_tls else "http")
    raw = socket.create_connection(("127.0.0.1", number), timeout=10)
    found = http.client.HTTPConnection(host)
    found.sock, certificate = raw, ""
    if uses_tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        found.sock = context.wrap_socket(raw, server_hostname=host)
        parsed = x509.load_der_x509_certificate(found.sock.getpeercert(binary_form=True))
        certificate = parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    return found, certificate


def read(cluster, host, path="/", *, uses_tls=False, method="GET", body=None):
    client, certificate = connection(cluster, host, uses_tls=uses_tls)
    client.request(method, path, body=body)
    response = client.getresponse()
    text = response.read().decode()
    client.close()
    return response.status, text, certificate


def messages(cluster, name):
    return [each["message"] for each in cluster.list("Event") if each["involvedObject"]["name"] == name]


EMPTY = hashlib.sha256(b"").hexdigest()


def test_requests_reach_backend_of_host_and_path(cluster, server):
    ingress(cluster, "plain", "plain.example", path="/api(/|$)(.*)", rewrite_target="/$2")
    until(
        lambda: read(cluster, "plain.example", "/api/x?y=1") == (200, f"/x?y=1 {EMPTY} http", ""),
        "the backend answers",
    )
    assert read(cluster, "plain.example", "/other")[0] == 404
    assert read(cluster, "other.example", "/api")[0] == 404
    body = bytes(range(256)) * 3000
    for sent in (body, iter([body[:100_000], body[100_000:]])):
        status, text, _ = read(cluster, "plain.example", "/api/b", method="POST", body=sent)
        assert (status, text.split()[1]) == (200, hashlib.sha256(body).hexdigest())


def test_connection_is_kept_and_switched(cluster, server):
    ingress(cluster, "kept", "kept.example")
    client, _ = connection(cluster, "kept.example")
    for number in range(3):
        client.request("GET", f"/{number}")
        assert client.getresponse().read().decode().startswith(f"/{number} ")
    client.request("GET", "/", headers={"Connection": "Upgrade", "Upgrade": "echo"})
    response = client.response_class(client.sock, method="GET")
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += client.sock.recv(1)
    assert head.startswith(b"HTTP/1.1 101 ")
    client.sock.sendall(b"any bytes")
    received = b""
    while len(received) < 9:
        received += client.sock.recv(9)
    assert received == b"ANY BYTES"
    response.close()
    client.close()


def test_tls_has_certificate_of_secret_or_fake_one(cluster, server):
    ingress(cluster, "good", "a.example", tls="a")
    ingress(cluster, "missing", "missing.example", tls="none")
    ingress(cluster, "wrong", "wrong.example", tls="a")
    until(lambda: read(cluster, "a.example", uses_tls=True)[2] == "a", "the certificate is served")
    assert read(cluster, "a.example", uses_tls=True)[:2] == (200, f"/ {EMPTY} https")
    assert read(cluster, "a.example")[0] == 308
    for host in ("missing.example", "wrong.example"):
        assert read(cluster, host, uses_tls=True)[::2] == (200, FAKE)
        assert read(cluster, host)[0] == 200
    fake = "a fake certificate is served for"
    assert f'secret "default/none" does not exist: {fake} missing.example' in messages(cluster, "missing")
    text = (
        f'secret "default/a" has a certificate that is not for the host wrong.example: {fake} wrong.example'
    )
    assert text in messages(cluster, "wrong")
    data = cluster.get("Secret", "a")["data"]
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "none"}, "data": data})
    changed = f'secret "default/none" has a certificate that is not for the host missing.example: {fake} missing.example'
    until(lambda: changed in messages(cluster, "missing"), "the new Secret is read")


def test_second_ingress_of_host_and_path_is_reported(cluster, server):
    # The older one is served, and of two of the same second the last one by name.
    ingress(cluster, "the-first", "same.example")
    ingress(cluster, "second", "same.example", server_snippet="return 418;")
    text = 'host "same.example" and path "/" is already defined in ingress default/the-first, which is served'
    until(lambda: text in messages(cluster, "second"), "the duplicate is reported")
    snippet = "the annotation nginx.ingress.kubernetes.io/server-snippet is not simulated"
    assert snippet in messages(cluster, "second")


def test_ingress_of_other_controller_is_left_alone(cluster, server):
    cluster.apply("""
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: other}
spec: {controller: example.com/other}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: other}
spec: {ingressClassName: other, defaultBackend: {service: {name: server, port: {number: 80}}}}
""")
    ingress(cluster, "later", "later.example")
    assert not cluster.get("Ingress", "other")["status"]["loadBalancer"]
    assert read(cluster, "none.example")[0] == 404


def test_alias_is_no_backend(cluster, server):
    cluster.apply("""
apiVersion: v1
kind: Service
metadata: {name: alias}
spec: {type: ExternalName, externalName: localhost, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: alias}
spec:
  ingressClassName: nginx
  rules: [{host: alias.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: alias, port: {number: 80}}}}]}}]
""")
    until(lambda: read(cluster, "alias.example")[0] == 503, "the alias is no backend")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01garbage",
        b"GET / HTTP/9\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_malformed_request_ends_connection(cluster, server, sent):
    ingress(cluster, "kept", "kept.example")
    with socket.create_connection(("127.0.0.1", port(cluster, "http")), timeout=10) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while data := client.recv(4096):
            received += data
    assert not received or received.startswith(b"HTTP/1.1 4")
