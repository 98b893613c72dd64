"""port-forward, and the pod, service and node proxies, to the ports of simulated pods."""

import ssl
import urllib.error
import urllib.request

import pytest
from kubernetes import client as official
from kubernetes.stream import portforward, stream

from mockube.apimachinery import conditions
from tests.support.server.spdy_client import SpdyClient

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SERVICE = {
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 8080, "targetPort": 80}]},
}


@pytest.fixture(scope="module")
def api(module_cluster):
    api = official.CoreV1Api(module_cluster.kubernetes())
    api.create_namespaced_service("default", SERVICE)
    metadata = {"name": "web", "labels": {"app": "web"}, "annotations": {"mockube.dev/answer.90": "ninety"}}
    container = {"name": "c", "image": "example/web", "ports": [{"containerPort": 80}]}
    api.create_namespaced_pod("default", {"metadata": metadata, "spec": {"containers": [container]}})
    module_cluster.wait("Pod", "web", "Ready")
    module_cluster.wait("Endpoints", "web", lambda endpoints: endpoints.get("subsets"))
    return api


def response_line(path, port=80, method="GET"):
    return f"mockube: pod default/web is simulated, but not the image example/web: {method} {path} on port {port}\n"


def test_port_forward_works_over_websocket(api):
    forwarded = portforward(api.connect_get_namespaced_pod_portforward, "web", "default", ports="80,81")
    socket = forwarded.socket(80)
    socket.settimeout(10)
    socket.sendall(
        b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nConnection: close\r\n\r\n"
    )
    answer = b""
    while data := socket.recv(4096):
        answer += data
        if b"GET /b" in answer:
            break
    assert response_line("/a", method="POST").encode() in answer
    assert response_line("/b").encode() in answer
    socket.close()


async def test_port_forward_works_over_spdy(module_cluster, api):
    path = "/api/v1/namespaces/default/pods/web/portforward"
    async with SpdyClient.upgrade(module_cluster, path, [], protocol="portforward.k8s.io") as (client, _):
        for number, port in ((1, "80"), (5, "81")):
            client.open(number, stream_Type="error", port=port, request_ID=port)
            client.open(number + 2, stream_Type="data", port=port, request_ID=port)
        client.send(3, b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
        await client.until_ended(1, 3, 5, 7)
        assert client.received[3].endswith(response_line("/").encode())
        assert b"81" in client.received[5]
        assert b"connection refused" in client.received[5]


def test_pods_and_services_are_proxied(api):
    pod = api.connect_get_namespaced_pod_proxy_with_path
    assert pod("web", "default", path="a/b") == response_line("/a/b")
    assert pod("web:90", "default", path="") == "ninety"
    service = api.connect_post_namespaced_service_proxy_with_path
    assert service("http:web:8080", "default", path="x") == response_line("/x", method="POST")


def test_proxy_to_undeclared_port_is_connection_refused(api):
    with pytest.raises(official.ApiException, match="connect: connection refused") as refused:
        api.connect_get_namespaced_pod_proxy_with_path("web:81", "default", path="")
    assert refused.value.status == 503
    with pytest.raises(official.ApiException, match="error trying to reach service") as refused:
        api.connect_get_namespaced_pod_proxy_with_path("https:web:80", "default", path="")
    assert refused.value.status == 503


def test_node_is_proxied(api):
    assert api.connect_get_node_proxy_with_path("node-1", path="healthz") == "ok"
    with pytest.raises(official.ApiException) as refused:
        api.connect_get_node_proxy_with_path("node-1", path="nothing")
    assert refused.value.status == 404


def test_node_counts_health_checks(api):
    for _ in range(2):
        assert api.connect_get_node_proxy_with_path("node-2", path="healthz") == "ok"
    assert api.connect_get_node_proxy_with_path("node-2", path="healthz/ping") == "ok"
    page = api.connect_get_node_proxy_with_path("node-2", path="metrics/slis")
    assert 'kubernetes_healthcheck{name="syncloop",type="healthz"} 1\n' in page
    assert 'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 2\n' in page
    assert api.connect_delete_node_proxy_with_path("node-2", path="metrics/slis") == "metrics reset\n"
    page = api.connect_get_node_proxy_with_path("node-2", path="metrics/slis")
    assert "kubernetes_healthcheck" not in page
    assert "\nprocess_start_time_seconds " in page


def test_kubelets_refuse_unauthenticated_clients(module_cluster, api):
    data = api.read_namespaced_config_map("mockube-kubelets", "kube-system").data
    context = ssl.create_default_context(cadata=data["certificate"])
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"https://{data['address']}/pods", context=context)
    with refused.value as answer:
        assert answer.code == 401
        assert "Server" not in answer.headers


@pytest.mark.parametrize("first", ["true", "wget -qO- http://nope"])
def test_server_in_a_script_listens_from_its_call_on(module_cluster, api, first):
    """The second script runs in real time from its start, the first one from the command of the client on."""
    name = "late" if first == "true" else "late-live"
    script = f"{first}; until [ -f /go ]; do sleep 1; done; httpd -f -p 8080"
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script], "readinessProbe": probe}
    api.create_namespaced_pod("default", {"metadata": {"name": name}, "spec": {"containers": [container]}})
    module_cluster.wait("Pod", name, "jsonpath={.status.phase}=Running")

    def exec_of(*command):
        call = api.connect_get_namespaced_pod_exec
        return stream(call, name, "default", command=["sh", "-c", *command], stdout=True, stderr=True)

    assert "refused" in exec_of("wget -qO- localhost:8080")
    assert ":8080" not in exec_of("netstat -tln")
    assert conditions.is_true(module_cluster.get("Pod", name), "Ready") is False
    exec_of("touch /go")
    module_cluster.wait("Pod", name, "Ready")
    assert ":8080" in exec_of("netstat -tln")
