"""kubectl on nodes: the server and the credentials of its kubeconfig, and the commands of administrators."""

import orjson
import pytest

from mockube.container_runtime.simulated.network.calls import Reply
from tests.support.node_machine import NODE, Machine

CONTROL_PLANE = {
    **NODE,
    "metadata": {**NODE["metadata"], "labels": {"node-role.kubernetes.io/control-plane": ""}},
}
PEM = "-----BEGIN {0}-----\nAA==\n-----END {0}-----\n"
PAIR = (PEM.format("CERTIFICATE"), PEM.format("RSA PRIVATE KEY"))
VERSION = {"gitVersion": "v1.37.2"}


def reply(tree, status=200, authority=b"CA"):
    return Reply(outcome="open", status=status, body=orjson.dumps(tree), authority=authority)


def machine_that_answers(answer, administrator=PAIR):
    return Machine(CONTROL_PLANE, administrator=administrator, http=answer)


def test_kubectl_has_the_certificate_of_the_administrator():
    machine = machine_that_answers(lambda _: reply(VERSION))
    assert "Server Version: v1.37.2\n" in machine.run("kubectl", "version")[1]
    (request,) = machine.requests
    assert (request.address, request.port, request.path) == ("10.0.0.9", 6443, "/version")
    assert (request.certificate.decode(), request.key.decode()) == PAIR
    assert "Authorization" not in dict(request.headers)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            Reply(outcome="refused"),
            "The connection to the server 10.0.0.9:6443 was refused - did you specify the right host or port?",
        ),
        (reply(VERSION, authority=b"other"), "x509: certificate signed by unknown authority"),
        (Reply(outcome="open"), "Unable to connect to the server: EOF"),
        (
            reply({"reason": "Unauthorized", "message": "Unauthorized"}, 401),
            "error: You must be logged in to the server (Unauthorized)",
        ),
    ],
)
def test_kubectl_reports_why_the_server_does_not_answer(answer, message):
    code, _, errors = machine_that_answers(lambda _: answer).run("kubectl", "version")
    assert (code, message in errors) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kubeconfig=/none"], "error: stat /none: no such file or directory"),
        (["--context=other"], 'error: context "other" does not exist'),
        (["--kubeconfig=/etc/kubernetes/kubelet.conf"], "kubelet-client-current.pem does not run: it is not"),
        (["--server=https://10.0.0.9:x"], "invalid URL"),
    ],
)
def test_wrong_kubeconfig_is_reported(arguments, message):
    code, _, errors = machine_that_answers(lambda _: reply(VERSION)).run("kubectl", "version", *arguments)
    assert (code != 0, message in errors) == (True, True)


@pytest.mark.parametrize(
    "text",
    [b"[]", b"clusters: 3\ncurrent-context: x\n", b"a: [", b"contexts: [{name: 1}]\ncurrent-context: x\n"],
)
def test_broken_kubeconfig_is_reported(text):
    machine = machine_that_answers(lambda _: reply(VERSION))
    machine.files.write("/root/broken.conf", text)
    code, _, errors = machine.run("kubectl", "version", "--kubeconfig=/root/broken.conf")
    assert (code, errors.startswith("error: ")) == (1, True)


def test_node_without_an_administrator_has_no_credentials():
    errors = machine_that_answers(lambda _: reply(VERSION), administrator=None).run("kubectl", "version")[2]
    assert "credentials in /etc/kubernetes/admin.conf does not run: it is not simulated" in errors


def test_kubectl_config_view_hides_credentials():
    machine = machine_that_answers(lambda _: reply(VERSION))
    shown = machine.run("kubectl", "config", "view")[1]
    assert ("client-key-data: DATA+OMITTED" in shown, "BEGIN" in shown) == (True, False)
    assert machine.run("kubectl", "config", "current-context")[1] == "kubernetes-admin@kubernetes\n"
    assert (
        machine.run("kubectl", "config", "get-contexts")[1]
        .splitlines()[1]
        .startswith("*         kubernetes-admin@")
    )


def pod(name, kind="", **spec):
    owners = [{"kind": kind, "name": "o", "controller": True}] if kind else []
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "ownerReferences": owners},
        "spec": spec,
    }


class Drained:
    """An API server with the pods of a node."""

    def __init__(self, *pods, refusals=0):
        self.pods = {each["metadata"]["name"]: each for each in pods}
        self.evicted, self.refusals = [], refusals

    def __call__(self, request):
        if request.path.startswith("/api/v1/nodes/"):
            return reply({"metadata": {"name": "node-1"}, "spec": {}})
        if request.path.startswith("/api/v1/pods"):
            return reply({"items": [*self.pods.values()]})
        name = request.path.split("/")[6]
        if request.path.endswith("/eviction") and self.refusals:
            self.refusals -= 1
            return reply({"reason": "TooManyRequests", "message": "Cannot evict pod"}, 429)
        if request.path.endswith("/eviction"):
            self.evicted.append(name)
            return reply({}, 201)
        return reply({"reason": "NotFound", "message": "not found"}, 404)


def test_drain_evicts_the_pods_of_a_node():
    server = Drained(pod("web", "ReplicaSet"), pod("proxy", "DaemonSet"), refusals=1)
    code, output, errors = machine_that_answers(server).run(
        "kubectl", "drain", "node-1", "--ignore-daemonsets"
    )
    assert (code, server.evicted) == (0, ["web"])
    assert output.splitlines() == [
        "node/node-1 cordoned", "evicting pod default/web", "pod/web evicted", "node/node-1 drained"
    ]  # fmt: skip
    assert "Warning: ignoring DaemonSet-managed Pods: default/proxy" in errors
    assert "(will retry after 5s): Cannot evict pod" in errors


@pytest.mark.parametrize(
    ("present", "message"),
    [
        (pod("proxy", "DaemonSet"), "use --ignore-daemonsets to ignore): default/proxy"),
        (pod("bare"), "declare no controller (use --force to override): default/bare"),
        (
            pod("data", "ReplicaSet", volumes=[{"name": "d", "emptyDir": {}}]),
            "use --delete-emptydir-data to override",
        ),
    ],
)
def test_drain_names_what_needs_a_flag(present, message):
    server = Drained(present)
    code, _, errors = machine_that_answers(server).run("kubectl", "drain", "node-1")
    assert (code, message in errors, server.evicted) == (1, True, [])


def test_uncordon_makes_a_node_schedulable():
    def answer(request):
        return reply({"metadata": {"name": "node-1"}, "spec": {"unschedulable": True}})

    machine = machine_that_answers(answer)
    assert machine.run("kubectl", "uncordon", "node-1")[1] == "node/node-1 uncordoned\n"
    assert orjson.loads(machine.requests[-1].body) == {"spec": {"unschedulable": None}}
    assert machine.run("kubectl", "cordon", "node-1")[1] == "node/node-1 already cordoned\n"
