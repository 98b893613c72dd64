"""Probes and hooks reach the simulated network, and the files of clients: a container is ready when its probe really succeeds."""

import orjson
import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from tests.support.processes.acknowledged_writes import until

HOOK = "until nc -z {host} 5432; do sleep 1; done; echo reached > /tmp/reached"

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def pod(name, image="example/app", command=("sleep", "infinity"), annotations=None, grace=1, **fields):
    container = {"name": "c", "image": image, **fields}
    if command:
        container["command"] = list(command)
    metadata = {"name": name, "labels": {"app": name}, "annotations": annotations or {}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": grace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def probe(*command, **fields):
    return {"exec": {"command": list(command)}, "periodSeconds": 1, "timeoutSeconds": 5, **fields}


def hook(script):
    return {"exec": {"command": ["sh", "-c", script]}}


@pytest.fixture
def apply(cluster):
    def apply_object(tree):
        cluster.apply(orjson.dumps(tree).decode())

    return apply_object


@pytest.fixture
def start_database(cluster, apply):
    """Return a function that starts a database with a Service."""

    def start(name):
        port = {"port": 5432}
        apply(pod(name, image="postgres:16", command=(), env=[{"name": "POSTGRES_PASSWORD", "value": "x"}]))
        spec = {"selector": {"app": name}, "ports": [port]}
        apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})

    return start


def warnings(cluster, name, reason):
    return {
        event["message"]
        for event in cluster.list("Event")
        if event["involvedObject"]["name"] == name and event["reason"] == reason
    }


def status_of(pod):
    return (pod["status"].get("containerStatuses") or [{}])[0]


def test_readiness_follows_a_service(cluster, apply, start_database):
    apply(pod("reader", readinessProbe=probe("pg_isready", "-h", "readable", failureThreshold=1)))
    cluster.wait("Pod", "reader", lambda pod: status_of(pod).get("started"))
    cluster.advance(5)
    assert not status_of(cluster.get("Pod", "reader"))["ready"]
    until(
        lambda: (
            warnings(cluster, "reader", "Unhealthy")
            == {"Readiness probe failed: readable:5432 - no response\n"}
        ),
        "the event",
    )
    start_database("readable")
    cluster.advance(5)
    assert status_of(cluster.get("Pod", "reader"))["ready"]
    cluster.delete("Pod", "readable")
    cluster.wait_gone("Pod", "readable")
    cluster.advance(5)
    assert not status_of(cluster.get("Pod", "reader"))["ready"]


def test_liveness_and_startup_probes_without_their_service_restart_the_container(cluster, apply):
    apply(pod("live", livenessProbe=probe("sh", "-c", "exec nc -z missing 80", failureThreshold=3)))
    apply(pod("slow", startupProbe=probe("wget", "-q", "--spider", "missing", failureThreshold=4)))
    for name in ("live", "slow"):
        cluster.wait("Pod", name, lambda pod: "running" in status_of(pod).get("state", {}))
    cluster.advance(8)
    for name in ("live", "slow"):
        assert status_of(cluster.get("Pod", name))["restartCount"] == 1, name
    until(
        lambda: (
            warnings(cluster, "slow", "Unhealthy") == {"Startup probe failed: wget: bad address 'missing'\n"}
        ),
        "the event",
    )


def test_post_start_hook_waits_for_a_service(cluster, apply, start_database):
    lifecycle = {"postStart": hook(HOOK.format(host="hooked"))}
    apply(pod("hook", lifecycle=lifecycle, readinessProbe=probe("cat", "/tmp/reached")))
    cluster.wait("Pod", "hook", lambda pod: status_of(pod).get("state"))
    cluster.advance(10)
    assert status_of(cluster.get("Pod", "hook"))["state"] == {"waiting": {"reason": "ContainerCreating"}}
    start_database("hooked")
    cluster.advance(5)
    assert status_of(cluster.get("Pod", "hook"))["ready"]


def test_post_start_hook_that_reaches_nothing_kills_the_container(cluster, apply):
    apply(pod("unhooked", lifecycle={"postStart": hook("wget -q missing")}))
    cluster.wait("Pod", "unhooked", lambda pod: status_of(pod).get("restartCount"))
    until(
        lambda: warnings(cluster, "unhooked", "FailedPostStartHook") == {"PostStartHook failed"}, "the event"
    )


def test_pre_stop_hook_runs_before_the_pod_goes(cluster, apply):
    apply(pod("stopped", grace=5, lifecycle={"preStop": hook("sleep 4; wget -q missing")}))
    cluster.wait("Pod", "stopped", "Ready")
    cluster.delete("Pod", "stopped")
    cluster.advance(2)
    assert cluster.get("Pod", "stopped")["metadata"]["deletionTimestamp"]
    cluster.advance(4)
    cluster.wait_gone("Pod", "stopped")
    until(lambda: warnings(cluster, "stopped", "FailedPreStopHook") == {"PreStopHook failed"}, "the event")


def test_server_of_a_known_image_answers_its_own_probe(cluster, apply):
    readiness = probe("sh", "-c", "redis-cli -h localhost ping | grep -q PONG")
    apply(pod("cache", image="redis:7", command=(), readinessProbe=readiness))
    cluster.wait("Pod", "cache", "Ready")
    cluster.advance(3)
    assert not warnings(cluster, "cache", "Unhealthy")


def test_probe_of_a_server_that_is_not_simulated_succeeds_and_says_so(cluster, apply):
    readiness = probe("sh", "-c", "curl -s localhost:8080/health | grep -q UP")
    apply(pod("own", command=(), readinessProbe=readiness))
    cluster.wait("Pod", "own", "Ready")
    until(
        lambda: (
            warnings(cluster, "own", "NotSimulated")
            == {
                "the image example/app is not simulated: the container runs without it until it is stopped",
                "curl: the server on port 8080 of the image example/app is not simulated: its readinessProbe succeeds without it",
            }
        ),
        "the event",
    )


def test_probe_reads_the_answer_that_an_annotation_gives(cluster, apply):
    readiness = probe("sh", "-c", "curl -s localhost:8080/health | grep -q UP")
    apply(pod("down", annotations={"mockube.dev/answer.8080": "DOWN"}, readinessProbe=readiness))
    cluster.wait("Pod", "down", lambda pod: status_of(pod).get("started"))
    cluster.advance(5)
    assert not status_of(cluster.get("Pod", "down"))["ready"]


def test_probe_sees_files_that_a_client_writes(cluster, apply):
    apply(pod("files", readinessProbe=probe("cat", "/tmp/ready")))
    cluster.wait("Pod", "files", lambda pod: status_of(pod).get("started"))
    api = official.CoreV1Api(cluster.kubernetes())
    for command, is_ready in ((["touch", "/tmp/ready"], True), (["rm", "/tmp/ready"], False)):
        assert not stream(
            api.connect_get_namespaced_pod_exec, "files", "default", command=command, stdout=True
        )
        cluster.advance(5)
        assert status_of(cluster.get("Pod", "files"))["ready"] is is_ready


def test_probe_follows_the_files_of_a_server_and_fails_on_another_port(cluster, apply):
    action = {"httpGet": {"port": 80}, "periodSeconds": 1, "failureThreshold": 1}
    apply(pod("served", image="nginx", command=(), readinessProbe=action))
    apply(pod("unserved", image="nginx", command=(), readinessProbe={**action, "httpGet": {"port": 81}}))
    cluster.wait("Pod", "served", "Ready")
    api = official.CoreV1Api(cluster.kubernetes())
    command = ["rm", "/usr/share/nginx/html/index.html"]
    stream(api.connect_get_namespaced_pod_exec, "served", "default", command=command, stdout=True)
    cluster.advance(5)
    assert not status_of(cluster.get("Pod", "served"))["ready"]
    address = cluster.get("Pod", "unserved")["status"]["podIP"]
    refused = f'Get "http://{address}:81/": dial tcp {address}:81: connect: connection refused'
    until(
        lambda: warnings(cluster, "unserved", "Unhealthy") == {f"Readiness probe failed: {refused}"},
        "the event",
    )
    assert not status_of(cluster.get("Pod", "unserved"))["ready"]


def test_probe_runs_the_script_of_a_config_map(cluster, apply):
    text = 'test "$MODE" = on || { echo "the mode is $MODE"; exit 1; }'
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scripts"}}
    apply({**config_map, "data": {"probe.sh": text, "on": "on", "off": "off"}})
    for mode in ("on", "off"):
        variable = {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "scripts", "key": mode}}}
        tree = pod(mode, readinessProbe=probe("sh", "/scripts/probe.sh"), env=[variable])
        tree["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "scripts"}}]
        tree["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/scripts"}]
        apply(tree)
    cluster.wait("Pod", "on", "Ready")
    cluster.wait("Pod", "off", lambda pod: status_of(pod).get("started"))
    cluster.advance(5)
    assert not status_of(cluster.get("Pod", "off"))["ready"]
    until(
        lambda: warnings(cluster, "off", "Unhealthy") == {"Readiness probe failed: the mode is off\n"},
        "the event",
    )


WAITS = "until nc -z {host} 5432; do sleep 1; done; touch /tmp/go; {end}"


def test_readiness_follows_a_command_that_waits_for_a_service(cluster, apply, start_database):
    command = ["sh", "-c", WAITS.format(host="awaited", end="sleep infinity")]
    apply(pod("waits", command=command, readinessProbe=probe("cat", "/tmp/go")))
    cluster.wait("Pod", "waits", lambda pod: status_of(pod).get("started"))
    cluster.advance(5)
    assert not status_of(cluster.get("Pod", "waits"))["ready"]
    start_database("awaited")
    cluster.advance(6)
    assert status_of(cluster.get("Pod", "waits"))["ready"]


def test_command_with_network_is_restarted_by_its_probe(cluster, apply):
    command = ["sh", "-c", WAITS.format(host="missing", end="sleep infinity")]
    apply(pod("restarted", command=command, livenessProbe=probe("cat", "/tmp/go", failureThreshold=3)))
    cluster.wait("Pod", "restarted", lambda pod: status_of(pod).get("started"))
    cluster.advance(8)
    status = status_of(cluster.get("Pod", "restarted"))
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 137
    messages = {"Liveness probe failed: cat: can't open '/tmp/go': No such file or directory\n"}
    until(lambda: warnings(cluster, "restarted", "Unhealthy") == messages, "the event")


def test_hooks_of_a_command_with_network_run(cluster, apply):
    command = ["sh", "-c", WAITS.format(host="missing", end="true")]
    lifecycle = {"postStart": hook("sleep 3; touch /tmp/go"), "preStop": hook("sleep 4; false")}
    apply(pod("hooks", grace=5, command=command, lifecycle=lifecycle, readinessProbe=probe("cat", "/tmp/go")))
    cluster.wait("Pod", "hooks", lambda pod: status_of(pod).get("state"))
    assert status_of(cluster.get("Pod", "hooks"))["state"] == {"waiting": {"reason": "ContainerCreating"}}
    cluster.advance(6)
    assert status_of(cluster.get("Pod", "hooks"))["ready"]
    cluster.delete("Pod", "hooks")
    cluster.advance(2)
    assert "running" in status_of(cluster.get("Pod", "hooks"))["state"]
    cluster.advance(4)
    cluster.wait_gone("Pod", "hooks")
    until(lambda: warnings(cluster, "hooks", "FailedPreStopHook") == {"PreStopHook failed"}, "the event")


def test_probe_of_a_command_that_ends_in_a_program_that_is_not_simulated_succeeds(cluster, apply):
    command = ["sh", "-c", "nc -z missing 80; exec serve"]
    apply(pod("unknown", command=command, readinessProbe=probe("cat", "/var/ready")))
    cluster.wait("Pod", "unknown", "Ready")
    message = (
        "serve of the image example/app is not simulated: the container runs without it until it is stopped"
    )
    until(lambda: warnings(cluster, "unknown", "NotSimulated") == {message}, "the event")


def test_startup_probe_of_a_sidecar_beside_a_program_that_is_not_simulated_fails(cluster, apply):
    command = ["sh", "-c", WAITS.format(host="missing", end="sleep infinity")]
    tree = pod("proxied", command=command, startupProbe=probe("test", "-f", "/tmp/go", failureThreshold=100))
    sidecar = {**tree["spec"]["containers"][0], "name": "proxy", "restartPolicy": "Always"}
    tree["spec"] = {"initContainers": [sidecar], "containers": [{"name": "c", "image": "example/app"}]}
    apply(tree)
    cluster.wait("Pod", "proxied", lambda pod: pod["status"].get("initContainerStatuses"))
    cluster.advance(5)
    (status,) = cluster.get("Pod", "proxied")["status"]["initContainerStatuses"]
    assert ("running" in status["state"], status["started"]) == (True, False)
