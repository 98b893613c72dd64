"""`mockube node-shell`, the pages of a kubelet and `kubectl debug node/` in one cluster, with the rights that each needs."""

import asyncio

import aiohttp
import orjson
import pytest
from kubernetes import client as official
from yarl import URL

from mockube import Cluster
from mockube.cli.main import main
from mockube.client.kubeconfig import read
from mockube.client.tls import tls_context
from mockube.component_base.clock import RealClock
from tests.support.node_shell import shell

PROXY = "/api/v1/nodes/node-1/proxy"
ROLE = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s}, rules: [{apiGroups: [''], resources: [%s], verbs: [%s]}]}"
BINDING = (
    "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %s}, roleRef: {apiGroup: rbac.authorization.k8s.io, "
    "kind: ClusterRole, name: %s}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: %s}]}"
)


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=2) as started:
        started.apply(
            "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: node-1, containers: [{name: c, image: nginx}]}}"
        )
        started.wait("Pod", "web", "Ready")
        yield started


def send(cluster, method, path, user="", **headers):
    """Send a request as a user; return the status and the body."""

    async def exchange():
        access = read(cluster.kubeconfig)
        connector = aiohttp.TCPConnector(ssl=tls_context(access, RealClock()))
        sent = {**headers, **({"Impersonate-User": user} if user else {})}
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, URL(access.server + path, encoded=True), headers=sent) as response,
        ):
            return response.status, await response.text()

    return asyncio.run(exchange())


def annotate(cluster, units):
    body = {"metadata": {"annotations": {"mockube.dev/stopped-units": units}}}
    official.CoreV1Api(cluster.kubernetes()).patch_node("node-1", body)


def allow(cluster, user, resource, verb):
    name = f"{user}-role"
    cluster.apply(ROLE % (name, resource, verb))
    cluster.apply(BINDING % (name, name, user))


def test_command_has_streams_and_an_exit_code(cluster):
    assert shell(cluster, "node-1", "--", "sh", "-c", "cat; echo error >&2; exit 7", stdin=b"in") == (
        7,
        "in",
        "error\n",
    )


def test_script_on_the_standard_input_runs(cluster):
    code, output, _ = shell(cluster, "node-1", stdin=b"hostname\ncrictl ps -q | wc -l\nexit 4\n")
    assert (code, output.split()) == (4, ["node-1", "1"])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nosuch"], 3, 'mockube: nodes "nosuch" not found'),
        (["a/b"], 2, "'a/b' is not the name of a node"),
        (["node-1", "--"], 2, "there is no command after --"),
    ],
)
def test_wrong_use_is_refused(cluster, capsys, arguments, code, message):
    assert main(["node-shell", "--kubeconfig", str(cluster.kubeconfig), *arguments]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "path", ["/mockube/shell", "//mockube/shell", "/%6dockube/shell", "/pods/../mockube/shell"]
)
def test_shell_needs_the_verb_create(cluster, path):
    allow(cluster, "reader", "nodes/proxy", "get")
    upgrade = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }  # fmt: skip
    target = f"{PROXY}{path}?command=id&output=1"
    assert send(cluster, "POST", target, "reader", **upgrade)[0] == 403
    assert send(cluster, "GET", target, "reader", **upgrade)[0] in (404, 405)


def test_user_without_rights_sees_no_page(cluster):
    for path in ("/pods", "/configz", "/logs/", "/logs/?query=kubelet", "/stats/summary", "/mockube/shell"):
        assert send(cluster, "GET", PROXY + path, "nobody")[0] == 403


def test_pages_of_a_kubelet(cluster):
    pods = orjson.loads(send(cluster, "GET", f"{PROXY}/pods")[1])
    assert pods["items"][0]["metadata"]["annotations"]["kubernetes.io/config.source"] == "api"
    running = orjson.loads(send(cluster, "GET", f"{PROXY}/runningpods/")[1])
    assert [each["metadata"]["name"] for each in running["items"]] == ["web"]
    assert send(cluster, "POST", f"{PROXY}/run/default/web/c?cmd=cat%20/etc/hostname") == (200, "web\n")
    assert send(cluster, "POST", f"{PROXY}/run/default/web/c?cmd=false")[0] == 500
    code, text = send(cluster, "POST", f"{PROXY}/checkpoint/default/web/c")
    assert (code, "not simulated" in text) == (500, True)
    assert send(cluster, "POST", f"{PROXY}/checkpoint/default/web/x") == (404, "container x does not exist")
    assert '"SyncLoop ADD"' in send(cluster, "GET", f"{PROXY}/logs/?query=kubelet")[1]
    assert "containers/" in send(cluster, "GET", f"{PROXY}/logs/")[1]
    settings = orjson.loads(send(cluster, "GET", f"{PROXY}/configz")[1])["kubeletconfig"]
    assert settings["staticPodPath"] == "/etc/kubernetes/manifests"


def test_kubelet_knows_only_pods_of_its_node(cluster):
    other = PROXY.replace("node-1", "node-2")
    assert send(cluster, "POST", f"{other}/run/default/web/c?cmd=hostname")[0] == 404
    assert send(cluster, "GET", f"{other}/containerLogs/default/web/c")[0] == 404


def test_port_of_a_stopped_kubelet_refuses_connections(cluster):
    annotate(cluster, "kubelet=stopped")
    code, text = send(cluster, "GET", "/api/v1/namespaces/default/pods/web/log")
    assert (code, "10250: connect: connection refused" in text) == (500, True)
    assert shell(cluster, "node-1", "--", "systemctl", "is-active", "kubelet") == (3, "inactive\n", "")
    annotate(cluster, None)
    assert send(cluster, "GET", "/api/v1/namespaces/default/pods/web/log")[0] == 200
