"""Containers reach names, Services and pods of the cluster, and fail where a real container fails."""

from contextlib import closing

import orjson
import pytest
from kubernetes import client as official
from kubernetes.stream import portforward, stream

from mockube import Cluster
from mockube.apimachinery.pods import assumption_of
from mockube.apiserver.control.matching import CONTROLLERS
from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CLIENT = "example.org/client"
"""An image of which nothing is known, so that it may have all programs."""
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def pod(name, *command, namespace="default", labels=None, init=None, **spec):
    container = {"name": "c", "image": CLIENT, "command": list(command)}
    init = [{"name": "i", "image": "busybox", "command": init}] if init else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"containers": [container], "initContainers": init, **spec},
    }


def service(name, **spec):
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}], **spec}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


@pytest.fixture(scope="module")
def cluster(module_cluster):
    web = pod("web", labels={"app": "web"})
    web["spec"]["containers"] = [
        {"name": "c", "image": "example/web", "ports": [{"name": "http", "containerPort": 8080}]}
    ]
    module_cluster.apply(orjson.dumps(web).decode())
    module_cluster.apply(orjson.dumps(service("web")).decode())
    module_cluster.apply(orjson.dumps(pod("shell", "sleep", "infinity", labels={"role": "shell"})).decode())
    module_cluster.wait("Pod", "web", "Ready")
    module_cluster.wait("Pod", "shell", "Ready")
    module_cluster.wait("Endpoints", "web", lambda endpoints: endpoints.get("subsets"))
    return module_cluster


@pytest.fixture(scope="module")
def shell(cluster):
    api = official.CoreV1Api(cluster.kubernetes())

    def run(script):
        """Run a script in the pod; return its exit code and its output."""
        session = stream(
            api.connect_get_namespaced_pod_exec, "shell", "default", command=["sh", "-c", script], stdout=True,
            stderr=True, _preload_content=False,
        )  # fmt: skip
        session.run_forever(timeout=30)
        code = session.returncode
        return code, session.read_all()

    return run


def run_to_end(cluster, tree):
    """Run a pod to its end; return its phase, and the log of its container."""
    name = tree["metadata"]["name"]
    cluster.apply(orjson.dumps(tree).decode())
    cluster.wait("Pod", name, lambda pod: pod["status"].get("phase") in ("Succeeded", "Failed"))
    log = official.CoreV1Api(cluster.kubernetes()).read_namespaced_pod_log(name, "default")
    return cluster.get("Pod", name)["status"]["phase"], log


def test_pod_that_reaches_service_succeeds(cluster):
    phase, log = run_to_end(cluster, pod("good", "wget", "-qO-", "web:80", restartPolicy="Never"))
    assert phase == "Succeeded"
    assert log == "mockube: pod default/web is simulated, but not the image example/web: GET / on port 8080\n"


def test_pod_that_reaches_no_service_fails(cluster):
    phase, log = run_to_end(cluster, pod("bad", "wget", "nosuchservice:9999", restartPolicy="Never"))
    assert (phase, log) == ("Failed", "wget: bad address 'nosuchservice:9999'\n")


def is_initializing(pod):
    return any("running" in status["state"] for status in pod["status"].get("initContainerStatuses", ()))


def test_init_container_waits_for_service(cluster):
    wait = ["sh", "-c", "until nslookup later; do echo waiting; sleep 1; done"]
    cluster.apply(orjson.dumps(pod("waiting", "sleep", "infinity", init=wait)).decode())
    cluster.wait("Pod", "waiting", is_initializing)
    cluster.apply(orjson.dumps(service("later")).decode())
    cluster.wait("Pod", "waiting", "Ready")


def test_programs_that_are_not_simulated_leave_the_pod_running(cluster):
    mixed = pod("mixed", "sh", "-c", "wget -qO- web:80; my-server --port 80")
    mixed["spec"]["containers"][0]["image"] = "example/app"
    cluster.apply(orjson.dumps(mixed).decode())
    cluster.wait("Pod", "mixed", "Ready")
    read_log = official.CoreV1Api(cluster.kubernetes()).read_namespaced_pod_log
    with closing(read_log("mixed", "default", follow=True, _preload_content=False)) as log:
        text, chunks = b"", log.stream(4096)
        while b"does not run\n" not in text:
            text += next(chunks)
    assert text.splitlines() == [
        b"mockube: pod default/web is simulated, but not the image example/web: GET / on port 8080",
        b"mockube: container c is simulated: my-server does not run",
    ]
    assert cluster.get("Pod", "mixed")["status"]["phase"] == "Running"
    message = "my-server of the image example/app is not simulated: the container runs without it until it is stopped"
    answered = (
        "the image example/web is not simulated: mockube answers on port 8080 of pod default/web in its place"
    )
    until(lambda: not_simulated(cluster, "mixed") == {answered, message}, "the events")


def test_pod_whose_script_starts_a_server_that_does_not_run_is_ready_by_assumption(cluster):
    start = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "start"},
        "data": {"start.sh": 'exec mysqld "$@"'},
    }
    cluster.apply(orjson.dumps(start).decode())
    tree = pod("started", "sh", "/start/start.sh", "--max-connections=9")
    tree["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "start"}}]
    tree["spec"]["containers"][0] |= {
        "image": "percona:8",
        "volumeMounts": [{"name": "v", "mountPath": "/start"}],
    }
    cluster.apply(orjson.dumps(tree).decode())
    end = "is not simulated: the container runs without it until it is stopped"
    assumption = f"mysqld of the image percona:8 {end}"
    cluster.wait("Pod", "started", lambda pod: assumption_of(pod) == assumption)
    assert cluster.get("Pod", "started")["status"]["phase"] == "Running"


def test_task_that_calls_an_unknown_program_ends_by_assumption(cluster):
    task = pod("task", "sh", "-c", "wget -qO- web:80; my-task; exit 3")
    task["spec"]["restartPolicy"] = "Never"
    cluster.apply(orjson.dumps(task).decode())
    cluster.wait("Pod", "task", lambda pod: pod["status"]["phase"] == "Succeeded")
    (status,) = cluster.get("Pod", "task")["status"]["containerStatuses"]
    end = status["state"]["terminated"]
    assert (end["exitCode"], end["reason"]) == (0, "NotSimulated")
    assert end["message"].startswith("my-task of the image ")


@pytest.mark.parametrize("stdin", [False, True])
def test_objects_of_a_container_are_requested_once_by_each_command(cluster, stdin):
    name = f"loads-{stdin}".lower()
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}}
    cluster.apply(orjson.dumps(data).decode())
    tree = pod(name, "sh", "-c", "wget -qO- web:80; sleep infinity")
    tree["spec"]["volumes"] = [{"name": "v", "configMap": {"name": name}}]
    tree["spec"]["containers"][0] |= {"stdin": stdin, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    cluster.apply(orjson.dumps(tree).decode())

    def requests():
        return len(cluster.calls(verb="get", resource="configmaps", name=name, user=CONTROLLERS))

    api = official.CoreV1Api(cluster.kubernetes())
    cluster.wait("Pod", name, "Ready")
    until(lambda: "GET /" in api.read_namespaced_pod_log(name, "default"), "the output of the command")
    assert requests() == 1
    cat = ["cat", "/v/key"]
    assert stream(api.connect_get_namespaced_pod_exec, name, "default", command=cat, stdout=True) == "value"
    assert requests() == 2


def test_interactive_command_reports_each_program_that_is_not_simulated_once(cluster):
    script = "my-tool --x; my-tool; env other-tool; type third-tool; sleep infinity"
    interactive = pod("interactive", "sh", "-c", script)
    interactive["spec"]["containers"][0] |= {"stdin": True, "image": "example/app"}
    cluster.apply(orjson.dumps(interactive).decode())

    def events():
        return [event for event in cluster.list("Event") if is_not_simulated(event, "interactive")]

    until(lambda: len(events()) == 2, "an event for each program")
    end = "of the image example/app is not simulated: its exit code is 127, and the command that called it goes on"
    assert {(event["message"], event.get("count") or 1) for event in events()} == {
        (f"my-tool {end}", 1),
        (f"other-tool {end}", 1),
    }


def not_simulated(cluster, pod_name):
    """Return the messages of the Events NotSimulated of a pod."""
    return {event["message"] for event in cluster.list("Event") if is_not_simulated(event, pod_name)}


def is_not_simulated(event, pod_name):
    return (event["reason"], event["involvedObject"]["name"]) == ("NotSimulated", pod_name)


def test_exec_reaches_service(shell):
    code, output = shell("curl -s -o /dev/null -w '%{http_code}' http://web.default.svc")
    assert (code, output) == (0, "200")
    output = shell("curl -s web.default.svc.cluster.local/x")[1]
    assert (
        output
        == "mockube: pod default/web is simulated, but not the image example/web: GET /x on port 8080\n"
    )


def test_own_port_without_server_refuses(shell):
    code, output = shell("nc -zv localhost 80")
    assert (code, output) == (1, "nc: can't connect to remote host (127.0.0.1): Connection refused\n")


def test_name_outside_of_the_cluster_is_named(shell):
    code, output = shell("curl -s https://example.com")
    message = (
        "mockube: curl of example.com, which is outside of the cluster, does not run: it is not simulated\n"
    )
    assert (code, output) == (1, message)


def test_nginx_serves_files_of_its_volumes(cluster, shell):
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "page", "namespace": "default"},
        "data": {"index.html": "from a volume\n"},
    }
    server = pod("nginx", labels={"app": "nginx"}, volumes=[{"name": "page", "configMap": {"name": "page"}}])
    mount = {"name": "page", "mountPath": "/usr/share/nginx/html"}
    server["spec"]["containers"] = [{"name": "c", "image": "nginx", "volumeMounts": [mount]}]
    cluster.apply(orjson.dumps(config_map).decode())
    cluster.apply(orjson.dumps(server).decode())
    address = cluster.wait("Pod", "nginx", "Ready")["status"]["podIP"]
    assert shell(f"curl -s {address}")[1] == "from a volume\n"
    assert shell(f"curl -s -o /dev/null -w '%{{http_code}}' {address}/none")[1] == "404"
    proxy = official.CoreV1Api(cluster.kubernetes()).connect_get_namespaced_pod_proxy_with_path
    assert proxy("nginx:80", "default", path="index.html") == "from a volume\n"


def test_clients_of_nc_get_its_input_and_its_log_has_what_they_send(cluster, shell):
    listening = pod("listening", "sh", "-c", "while true; do echo hello | nc -l -p 9000; done")
    cluster.apply(orjson.dumps(listening).decode())
    address = cluster.wait("Pod", "listening", "Ready")["status"]["podIP"]
    assert shell(f"echo one | nc {address} 9000; nc {address} 9000 </dev/null") == (0, "hello\nhello\n")
    api = official.CoreV1Api(cluster.kubernetes())
    forward = portforward(api.connect_get_namespaced_pod_portforward, "listening", "default", ports="9000")
    with closing(forward.socket(9000)) as connection:
        connection.sendall(b"two\n")
        assert connection.recv(100) == b"hello\n"
    sent = "one\ntwo\n"
    until(
        lambda: api.read_namespaced_pod_log("listening", "default") == sent, "what the clients sent is logged"
    )


def test_database_answers_its_clients_only(cluster, shell):
    server = pod("redis")
    server["spec"]["containers"] = [{"name": "c", "image": "redis"}]
    cluster.apply(orjson.dumps(server).decode())
    address = cluster.wait("Pod", "redis", "Ready")["status"]["podIP"]
    assert shell(f"redis-cli -h {address} ping") == (0, "PONG\n")
    assert shell(f"printf 'PING\\r\\n' | nc {address} 6379") == (0, "+PONG\r\n")
    assert shell(f"curl -s {address}:6379")[0] == 52
    assert shell(f"pg_isready -h {address} -p 6379")[0] == 2


def test_ingress_controller_forwards_by_host_and_path(cluster, shell):
    controller = pod("controller")
    controller["spec"]["containers"] = [{"name": "c", "image": "registry.k8s.io/ingress-nginx/controller"}]
    ingress_class = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": "nginx"},
        "spec": {"controller": "k8s.io/ingress-nginx"},
    }
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {
        "host": "shop.example",
        "http": {"paths": [{"path": "/a", "pathType": "Prefix", "backend": backend}]},
    }
    ingress = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"ingressClassName": "nginx", "rules": [rule]},
    }
    for tree in (controller, ingress_class, ingress):
        cluster.apply(orjson.dumps(tree).decode())
    address = cluster.wait("Pod", "controller", "Ready")["status"]["podIP"]
    script = f"until curl -sf -H 'Host: shop.example' {address}/a/x; do sleep 0.1; done"
    assert shell(script) == (
        0,
        "mockube: pod default/web is simulated, but not the image example/web: GET /a/x on port 8080\n",
    )
    assert shell(f"curl -s -o /dev/null -w '%{{http_code}}' -H 'Host: other.example' {address}/a")[1] == "404"


def test_api_server_is_reached_as_service_account(cluster, shell):
    request = f'curl -s --cacert {ACCOUNT}/ca.crt -H "Authorization: Bearer $(cat {ACCOUNT}/token)"'
    assert shell(f"{request} https://kubernetes.default.svc/livez")[1] == "ok"
    output = shell(f"{request} https://kubernetes.default.svc/api/v1/namespaces/default/pods")[1]
    assert orjson.loads(output)["message"].startswith(
        'pods is forbidden: User "system:serviceaccount:default:default" cannot list'
    )
    assert shell("curl -s https://kubernetes.default.svc/livez")[0] == 60
    output = shell("curl -sk https://kubernetes.default.svc/api/v1/pods")[1]
    assert 'User \\"system:anonymous\\" cannot list' in output


def test_network_policy_drops_connections_and_name_queries(cluster, shell):
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "egress", "namespace": "default"},
        "spec": {"podSelector": {"matchLabels": {"role": "shell"}}, "policyTypes": ["Egress"], "egress": []},
    }
    address = cluster.get("Service", "web")["spec"]["clusterIP"]
    cluster.apply(orjson.dumps(policy).decode())
    try:
        code, output = shell(
            f"for i in 1 2 3 4 5 6 7 8 9; do curl -s -m 1 {address} || exit $?; sleep 0.1; done"
        )
        assert code == 28
        code, output = shell("curl -sS -m 1 web")
        assert (code, output) == (28, "curl: (28) Resolving timed out after 1000 milliseconds\n")
        dns = {"matchLabels": {"k8s-app": "kube-dns"}}
        rule = {
            "to": [{"namespaceSelector": {}, "podSelector": dns}],
            "ports": [{"port": 53, "protocol": "UDP"}],
        }
        cluster.apply(orjson.dumps(policy | {"spec": policy["spec"] | {"egress": [rule]}}).decode())
        code, output = shell("until nslookup web; do sleep 0.1; done; curl -s -m 1 web")
        assert code == 28
    finally:
        cluster.delete("NetworkPolicy", "egress")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_policies_of_administrators_are_refused_by_name():
    names = {"plural": "adminnetworkpolicies", "kind": "AdminNetworkPolicy", "singular": "adminnetworkpolicy"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema}
    annotations = {"api-approved.kubernetes.io": "https://example.org/approved"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "adminnetworkpolicies.policy.networking.k8s.io", "annotations": annotations},
        "spec": {
            "group": "policy.networking.k8s.io", "scope": "Cluster", "names": names, "versions": [version],
        },
    }  # fmt: skip
    policy = {
        "apiVersion": "policy.networking.k8s.io/v1alpha1",
        "kind": "AdminNetworkPolicy",
        "metadata": {"name": "strict"},
    }
    with Cluster(nodes=1) as cluster:
        cluster.apply(orjson.dumps(definition).decode())
        cluster.wait("CustomResourceDefinition", definition["metadata"]["name"], "Established")
        cluster.apply(orjson.dumps(policy).decode())
        log = run_to_end(cluster, pod("client", "wget", "web", restartPolicy="Never"))[1]
    assert "wget: AdminNetworkPolicy 'strict', which is not simulated, does not run" in log


IMAGES = """
shop:
  names: [example.test/shop]
  logs: [open for business]
  ports:
    8080:
      routes: [{path: /price, exact: true, status: 402, contentType: application/json, body: '{"price":1}'}]
"""


def test_images_of_file_answer_and_log(tmp_path):
    path = tmp_path / "images.yaml"
    path.write_text(IMAGES)
    with Cluster(nodes=1, manager_flags=[f"--images={path}"]) as cluster:
        api = official.CoreV1Api(cluster.kubernetes())
        server = pod("shop")
        server["spec"]["containers"] = [{"name": "c", "image": "example.test/shop:1"}]
        cluster.apply(orjson.dumps(server).decode())
        address = cluster.wait("Pod", "shop", "Ready")["status"]["podIP"]
        assert api.read_namespaced_pod_log("shop", "default") == "open for business\n"
        script = f"curl -s -w ' %{{http_code}} %{{content_type}}' {address}:8080/price"
        log = run_to_end(cluster, pod("buyer", "sh", "-c", script, restartPolicy="Never"))[1]
    assert log == '{"price":1} 402 application/json'
