"""Pods whose containers are processes, in network namespaces of their own."""

import asyncio
import textwrap

import orjson
import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from mockube import Cluster
from mockube.container_runtime.process import process_run
from mockube.container_runtime.process.process_run import ProcessRun
from tests.support.pod_network import missing
from tests.support.process_pods import RUN, create, events, is_over, python, status_of
from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no network namespaces for pods: {missing()}"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
IMAGES = {"example.org/python:*": {"command": RUN}}
PREAMBLE = """
import json, os, socket, ssl, sys, threading, urllib.request
def tcp(host, port, seconds=5):
    try:
        with socket.create_connection((host, port), seconds) as connection:
            return connection.recv(99).decode()
    except OSError as error:
        return type(error).__name__
def udp(host, port, seconds=5):
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as connection:
        connection.settimeout(seconds)
        try:
            connection.connect(address)
            connection.send(b"x")
            return connection.recv(99).decode()
        except OSError as error:
            return type(error).__name__
"""
SERVER = (
    PREAMBLE
    + """
name = os.environ["HOSTNAME"]
port = int(os.environ.get("PORT", "8080"))
def answer_datagrams():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("", port))
        while True:
            data, client = server.recvfrom(99)
            server.sendto(f"{name} by UDP".encode(), client)
threading.Thread(target=answer_datagrams, daemon=True).start()
with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as server:
    while True:
        connection, client = server.accept()
        connection.send(f"{name} {client[0].removeprefix('::ffff:')}".encode())
        connection.close()
"""
)

CLIENT_ADDRESS = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.client_address[0].encode())
http.server.HTTPServer(("", 8080), Handler).serve_forever()
"""

SIX_SERVER = CLIENT_ADDRESS.replace(
    "http.server.HTTPServer(",
    "import socket\nhttp.server.HTTPServer.address_family = socket.AF_INET6\nhttp.server.HTTPServer(",
)


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=2, images=IMAGES) as started:
        yield started


@pytest.fixture
def pods(cluster):
    return official.CoreV1Api(cluster.kubernetes())


def serve(cluster, pods, *, port=8080, labels=None, **spec):
    """Create a server; return its name and address."""
    ready = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    declared = [{"containerPort": port, **spec.pop("declared", {})}]
    environment = [{"name": "PORT", "value": str(port)}]
    container = python(SERVER, readinessProbe=ready, env=environment, ports=declared)
    name = create(pods, container, labels=labels, **spec)
    return name, cluster.wait("Pod", name, "Ready")["status"]["podIP"]


def run(cluster, pods, expression, *, labels=None, **spec):
    """Run an expression in a pod; return its value."""
    script = f"{PREAMBLE}\nprint(json.dumps({textwrap.dedent(expression).strip()}))"
    name = create(pods, python(script), policy="Never", labels=labels, **spec)
    pod = cluster.wait("Pod", name, is_over)
    log = pods.read_namespaced_pod_log(name, "default")
    assert pod["status"]["phase"] == "Succeeded", log
    return orjson.loads(log)


def execute(pods, name, script):
    """Run a script in a running pod; return what it prints."""
    connect = pods.connect_get_namespaced_pod_exec
    return stream(connect, name, "default", command=[*RUN, script], stdout=True, stderr=True).strip()


def expose(cluster, name, app, *, port=80, target=8080, protocol="TCP", **spec):
    ports = [{"port": port, "targetPort": target, "protocol": protocol}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": ports, **spec},
    }
    return cluster.apply(service)[0]


def wait_for_endpoints(cluster, name, count):
    def ready():
        slices = [
            one
            for one in cluster.list("EndpointSlice")
            if one["metadata"]["labels"].get("kubernetes.io/service-name") == name
        ]
        endpoints = [entry for one in slices for entry in one.get("endpoints") or ()]
        return len([entry for entry in endpoints if entry["conditions"].get("ready")]) == count

    until(ready, "the endpoints")


def test_pods_have_addresses_loopback_and_all_ports(cluster, pods):
    one, first = serve(cluster, pods)
    two, second = serve(cluster, pods)
    expression = f"""
        [tcp("{first}", 8080).split()[0], tcp("{second}", 8080).split()[0], udp("{first}", 8080),
         tcp("127.0.0.1", 8080), tcp("{first}", 99)]
    """
    refused = "ConnectionRefusedError"
    assert run(cluster, pods, expression) == [one, two, f"{one} by UDP", refused, refused]


def test_server_sees_address_of_client(cluster, pods):
    _, address = serve(cluster, pods)
    expression = f'[tcp("{address}", 8080).split()[1], open("/etc/hosts").read().split()[-2]]'
    seen, own = run(cluster, pods, expression)
    assert seen == own


def test_services_balance_and_refuse(cluster, pods):
    names = {serve(cluster, pods, labels={"app": "balanced"})[0] for _ in range(2)}
    expose(cluster, "balanced", "balanced")
    expose(cluster, "balanced-udp", "balanced", protocol="UDP")
    expose(cluster, "headless", "balanced", clusterIP="None")
    expose(cluster, "sticky", "balanced", sessionAffinity="ClientIP")
    expose(cluster, "nobody", "nobody")
    cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "alias"},
                   "spec": {"type": "ExternalName", "externalName": "balanced.default.svc.cluster.local"}})  # fmt: skip
    wait_for_endpoints(cluster, "sticky", 2)
    expression = """
        [[tcp("balanced", 80).split()[0] for _ in range(4)], [tcp("sticky", 80).split()[0] for _ in range(4)],
         udp("balanced-udp", 80), len(socket.gethostbyname_ex("headless.default.svc.cluster.local")[2]),
         tcp("headless", 8080).split()[0], tcp("alias", 80).split()[0], tcp("nobody", 80), udp("nobody", 80),
         tcp("balanced", 81, 1)]
    """
    balanced, sticky, by_udp, count, headless, alias, *failures = run(cluster, pods, expression)
    assert (set(balanced), len(set(sticky)), count) == (names, 1, 2)
    assert {by_udp.split()[0], headless, alias} <= names
    assert failures == ["ConnectionRefusedError", "TimeoutError", "TimeoutError"]


def test_pod_reaches_itself_by_its_service(cluster, pods):
    name, _ = serve(cluster, pods, labels={"app": "alone"})
    expose(cluster, "alone", "alone")
    wait_for_endpoints(cluster, "alone", 1)
    assert execute(pods, name, f"{PREAMBLE}\nprint(tcp('alone', 80).split()[0])") == name


def test_api_server_answers_at_its_service(cluster, pods):
    expression = """
        json.load(urllib.request.urlopen("https://kubernetes.default.svc/version", context=ssl.create_default_context(
            cafile="/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")))["major"]
    """
    assert run(cluster, pods, expression) == "1"


def test_processes_and_simulated_pods_reach_each_other(cluster, pods):
    web = {"name": "web", "image": "nginx", "ports": [{"containerPort": 80}]}
    simulated = create(pods, web, labels={"app": "simulated"})
    address = cluster.wait("Pod", simulated, "Ready")["status"]["podIP"]
    expose(cluster, "simulated", "simulated", target=80)
    wait_for_endpoints(cluster, "simulated", 1)
    expression = f"""
        [urllib.request.urlopen(f"http://{{host}}").read().decode().split("<title>")[1][:10] for host in ("{address}", "simulated")]
        + [tcp("{address}", 81)]
    """
    assert run(cluster, pods, expression) == ["Welcome to", "Welcome to", "ConnectionRefusedError"]
    _, address = serve(cluster, pods, labels={"app": "real"})
    expose(cluster, "real", "real")
    wait_for_endpoints(cluster, "real", 1)
    script = f"nc -zv {address} 8080; nc -zv real 80"
    client = create(pods, {"name": "c", "image": "busybox", "command": ["sh", "-c", script]}, policy="Never")
    cluster.wait("Pod", client, is_over)
    assert pods.read_namespaced_pod_log(client, "default").count(" open\n") == 2


def test_simulated_pod_answers_datagrams_of_processes(cluster, pods):
    container = {
        "name": "agnhost",
        "image": "registry.k8s.io/e2e-test-images/agnhost:2.53",
        "args": ["netexec", "--http-port=8080", "--udp-port=8081"],
    }
    name = create(pods, container, labels={"app": "netexec"})
    cluster.wait("Pod", name, "Ready")
    expose(cluster, "netexec", "netexec", target=8081, protocol="UDP")
    wait_for_endpoints(cluster, "netexec", 1)
    script = """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
    connection.settimeout(5)
    connection.connect(("netexec", 80))
    for text in (b"hostname", b"echo again"):
        connection.send(text)
        print(connection.recv(99).decode())
"""
    client = create(pods, python(PREAMBLE + script), policy="Never")
    cluster.wait("Pod", client, is_over)
    assert pods.read_namespaced_pod_log(client, "default").split() == [name, "again"]


def test_process_answers_datagrams_of_simulated_pods(cluster, pods):
    name, address = serve(cluster, pods, labels={"app": "udp"})
    expose(cluster, "udp", "udp", protocol="UDP")
    wait_for_endpoints(cluster, "udp", 1)
    guard(cluster, "udp", {"may": "send"})
    script = f"for host in '{address} 8080' 'udp 80'; do echo x | nc -u -w 1 $host; echo; done; echo x | nc -u -w 1 {address} 99"
    answers = [f"{name} by UDP"] * 2
    for labels, expected in (({"may": "send"}, answers), ({}, [])):
        container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script]}
        client = create(pods, container, policy="Never", labels=labels)
        cluster.wait("Pod", client, is_over)
        log = pods.read_namespaced_pod_log(client, "default").splitlines()
        assert [line for line in log if line.endswith("by UDP")] == expected


def test_process_sees_the_address_of_a_simulated_client_that_sends_a_datagram(cluster, pods):
    script = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
    server.bind(("", 8080))
    while True:
        data, client = server.recvfrom(99)
        server.sendto(client[0].encode(), client)
"""
    ready = {"exec": {"command": [*RUN, "import socket; socket.socket(type=2).connect(('127.0.0.1', 8080))"]}}
    server = create(
        pods, python(script, readinessProbe=ready, ports=[{"containerPort": 8080, "protocol": "UDP"}])
    )
    address = cluster.wait("Pod", server, "Ready")["status"]["podIP"]
    script = f"until echo x | nc -u -w 1 {address} 8080 | grep .; do true; done"
    client = create(pods, {"name": "c", "image": "busybox", "command": ["sh", "-c", script]}, policy="Never")
    own = cluster.wait("Pod", client, is_over)["status"]["podIP"]
    assert pods.read_namespaced_pod_log(client, "default").split() == [own]


def guard(cluster, app, labels):
    """Let only pods with labels reach an app."""
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": app},
        "spec": {
            "podSelector": {"matchLabels": {"app": app}},
            "ingress": [{"from": [{"podSelector": {"matchLabels": labels}}]}],
        },
    }
    cluster.apply(policy)


def test_network_policies_hold(cluster, pods):
    _, address = serve(cluster, pods, labels={"app": "guarded"})
    guard(cluster, "guarded", {"may": "enter"})
    expression = f'[tcp("{address}", 8080, 1) == "TimeoutError", udp("{address}", 8080, 1) == "TimeoutError"]'
    assert run(cluster, pods, expression) == [True, True]
    assert run(cluster, pods, expression, labels={"may": "enter"}) == [False, False]


def test_nodes_map_ports_to_pods(cluster, pods):
    mapped, _ = serve(cluster, pods, declared={"hostPort": 9090})
    on_node, node = serve(cluster, pods, port=7070, hostNetwork=True, nodeName="node-2")
    name, _ = serve(cluster, pods, labels={"app": "published"})
    service = expose(cluster, "published", "published", type="NodePort")
    wait_for_endpoints(cluster, "published", 1)
    host = cluster.get("Pod", mapped)["status"]["hostIP"]
    port = service["spec"]["ports"][0]["nodePort"]
    assert node == cluster.get("Pod", on_node)["status"]["hostIP"]
    expression = f"""
        [tcp("{host}", 9090).split()[0], tcp("{node}", 7070).split()[0], tcp("{node}", {port}).split()[0], tcp("{node}", 7071)]
    """
    expected = [mapped, "node-2", name, "ConnectionRefusedError"]
    assert run(cluster, pods, expression) == expected
    for hosted in ("node-1", "node-2"):
        assert run(cluster, pods, expression, hostNetwork=True, nodeName=hosted) == expected
    expression = f'[tcp("{node}", 7070).split()[1], tcp("127.0.0.1", 7070).split()[1]]'
    assert run(cluster, pods, expression, hostNetwork=True, nodeName="node-2") == [node, "127.0.0.1"]


def test_kubelet_answers_processes_in_the_network_of_its_node(cluster, pods):
    expression = """
        (lambda connection: (connection.request("GET", "/healthz"), connection.getresponse().status)[1])(
            __import__("http.client").client.HTTPSConnection(os.environ["HOST"], 10250, context=ssl._create_unverified_context()))
    """
    script = f"{PREAMBLE}\nprint(json.dumps({textwrap.dedent(expression).strip()}))"
    field = {"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}
    name = create(pods, python(script, env=[field]), policy="Never", hostNetwork=True, nodeName="node-1")
    cluster.wait("Pod", name, is_over)
    assert pods.read_namespaced_pod_log(name, "default") == "401\n"


REMOVE_NETWORK = (
    PREAMBLE
    + """
import ctypes, fcntl, struct, time
if not os.path.exists("/scratch/removed"):
    open("/scratch/removed", "w").close()
    with socket.socket() as one:
        fcntl.ioctl(one, 0x8914, struct.pack("16sH14x", b"eth0", 0))  # down
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as one:
        one.send(struct.pack("=IHHIIBxHiII", 32, 17, 5, 0, 0, 0, 0, socket.if_nametoindex("eth0"), 0, 0))
while True:
    time.sleep(1000)
"""
)


@pytest.mark.parametrize("is_starting", [False, True])
def test_pod_gets_another_network_when_its_own_is_removed(cluster, pods, monkeypatch, is_starting):
    """`is_starting`: the network is gone before the start of the process has returned."""
    if is_starting:
        monkeypatch.setattr(process_run, "start_process", start_until_network_is_lost(monkeypatch))
    context = {"capabilities": {"add": ["NET_ADMIN"]}}
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    container = python(REMOVE_NETWORK, volumeMounts=mounts, securityContext=context)
    name = create(pods, container, volumes=[{"name": "scratch", "emptyDir": {}}])
    message = "Pod sandbox changed, it will be killed and re-created."
    until(lambda: ("SandboxChanged", message) in events(cluster, name), "an Event")
    cluster.wait("Pod", name, lambda pod: status_of(pod).get("restartCount") == 1 and status_of(pod)["ready"])
    assert execute(pods, name, "import socket; print(socket.if_nametoindex('eth0'))") == "2"


def start_until_network_is_lost(monkeypatch):
    """Return `start_process` for which the first process has removed its network when it returns."""
    is_lost, start, lose = asyncio.Event(), process_run.start_process, ProcessRun.lose_network

    async def start_process(*arguments, **options):
        process = await start(*arguments, **options)
        await is_lost.wait()
        return process

    def lose_network(run):
        lose(run)
        is_lost.set()

    monkeypatch.setattr(ProcessRun, "lose_network", lose_network)
    return start_process


def test_services_are_reached_at_addresses_of_both_families_and_of_load_balancers():
    ranges = "--service-cluster-ip-range=10.0.0.0/24,fd00:10:96::/112"
    manager_flags = [
        ranges,
        "--cluster-cidr=10.244.0.0/16,fd00:10:244::/56",
        "--allocate-node-cidrs=true",
        "--load-balancer-cidr=127.77.0.0/16",
    ]
    with Cluster(nodes=1, images=IMAGES, flags=[ranges], manager_flags=manager_flags) as cluster:
        pods = official.CoreV1Api(cluster.kubernetes())
        name, _ = serve(cluster, pods, labels={"app": "dual"})
        _, second = (entry["ip"] for entry in cluster.get("Pod", name)["status"]["podIPs"])
        service = expose(cluster, "dual", "dual", ipFamilyPolicy="RequireDualStack", type="LoadBalancer")
        _, six = service["spec"]["clusterIPs"]
        balanced = cluster.wait(
            "Service", "dual", lambda tree: (tree["status"]["loadBalancer"] or {}).get("ingress")
        )
        balancer = balanced["status"]["loadBalancer"]["ingress"][0]["ip"]
        wait_for_endpoints(cluster, "dual", 2)
        expression = f"""
            [tcp("{second}", 8080).split()[0], tcp("{six}", 80).split()[0], tcp("{six}", 81, 1),
             tcp("{balancer}", 80).split()[0], udp("{balancer}", 80, 1), tcp("127.0.0.1", 80),
             {{entry[0].name for entry in socket.getaddrinfo("dual", 80, type=socket.SOCK_STREAM)}}.__len__()]
        """
        assert balancer.startswith("127.77.")
        refused = "ConnectionRefusedError"
        assert run(cluster, pods, expression) == [
            name,
            name,
            "TimeoutError",
            name,
            "TimeoutError",
            refused,
            2,
        ]
        expose(cluster, "six", "dual", ipFamilies=["IPv6"])
        wait_for_endpoints(cluster, "six", 1)
        container = python(SIX_SERVER, ports=[{"containerPort": 8080}])
        seen = create(pods, container, labels={"app": "seen"})
        cluster.wait("Pod", seen, "Ready")
        expose(cluster, "seen", "seen", ipFamilies=["IPv6"])
        wait_for_endpoints(cluster, "seen", 1)
        script = "nc -zv six 80; until wget -qO- http://seen; do sleep 1; done"
        client = create(
            pods, {"name": "c", "image": "busybox", "command": ["sh", "-c", script]}, policy="Never"
        )
        addresses = cluster.wait("Pod", client, is_over)["status"]["podIPs"]
        log = pods.read_namespaced_pod_log(client, "default")
        assert " open\n" in log
        assert log.endswith(addresses[1]["ip"])


def test_hook_reaches_another_pod(cluster, pods):
    script = SERVER.replace(
        "connection.send(",
        'print("called", flush=True); connection.recv(9); connection.send(b"HTTP/1.1 200 OK\\r\\n\\r\\n"); (',
    )
    name = create(pods, python(script, readinessProbe={"exec": {"command": ["true"]}}))
    address = cluster.wait("Pod", name, "Ready")["status"]["podIP"]
    hook = {"postStart": {"httpGet": {"host": address, "port": 8080, "path": "/"}}}
    caller = create(pods, python("import time; time.sleep(1000)", lifecycle=hook))
    cluster.wait("Pod", caller, "Ready")
    assert "called" in pods.read_namespaced_pod_log(name, "default")


def test_pod_that_sends_to_many_addresses_outside_stays_connected(cluster, pods):
    script = (
        PREAMBLE
        + """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for number in range(3000):
        sender.sendto(b"x", (f"192.0.2.{number % 250 + 1}", 1000 + number))
print(socket.gethostbyname("kubernetes.default"))
"""
    )
    name = create(pods, python(script), policy="Never")
    cluster.wait("Pod", name, is_over)
    assert pods.read_namespaced_pod_log(name, "default") == "10.0.0.1\n"


def test_process_sees_the_address_of_a_simulated_client(cluster, pods):
    ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    server = create(pods, python(CLIENT_ADDRESS, readinessProbe=ready, ports=[{"containerPort": 8080}]))
    address = cluster.wait("Pod", server, "Ready")["status"]["podIP"]
    field = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    script = f"curl -s {address}:8080; echo; echo $POD_IP"
    client = {"name": "c", "image": "example.org/client", "command": ["sh", "-c", script], "env": [field]}
    name = create(pods, client, policy="Never")
    cluster.wait("Pod", name, is_over)
    seen, own = pods.read_namespaced_pod_log(name, "default").split()
    assert seen == own
