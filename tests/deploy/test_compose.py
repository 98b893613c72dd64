"""The compose project on a Docker engine: kubectl works, killed containers restart, and Prometheus scrapes.

`make compose-test` provides an engine and the images; without them these tests are skipped.
"""

import urllib.parse
import urllib.request
from contextlib import closing

import orjson
import pytest

from tests.support.processes.acknowledged_writes import Load, RequestSender, until
from tests.support.processes.compose import COMPOSE, PROMETHEUS, URL, Project

if not COMPOSE:
    pytest.skip("no Docker engine: `make compose-test` starts one where it may", allow_module_level=True)

pytestmark = pytest.mark.slow

EVALUATION_SECONDS = 5
"""Prometheus' evaluation_interval in deploy/prometheus."""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with Project(tmp_path_factory.mktemp("kubeconfig")) as project:
        yield project


@pytest.fixture
def request_sender(project):
    with closing(RequestSender(project.kubeconfig, [URL])) as request_sender:
        yield request_sender


def ask_prometheus(path, **parameters):
    with urllib.request.urlopen(f"{PROMETHEUS}/{path}?{urllib.parse.urlencode(parameters)}") as answer:
        return answer.read()


def query(expression):
    answer = orjson.loads(ask_prometheus("api/v1/query", query=expression))
    assert answer["status"] == "success", answer
    return answer["data"]["result"]


def test_kubectl_finds_working_cluster(project):
    assert project.kubectl("get", "nodes", "--no-headers").split().count("Ready") == 3
    project.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=5")
    assert "successfully rolled out" in project.kubectl(
        "rollout", "status", "deployment/web", "--timeout=60s"
    )
    project.kubectl("delete", "deployment", "web")
    assert "Number of desired pods" in project.kubectl("explain", "deployment.spec.replicas")


def test_restarted_project_is_same_cluster(project):
    project.kubectl("create", "configmap", "old", "--from-literal=a=b")
    kubeconfig = project.kubeconfig.with_name("old.conf")
    kubeconfig.write_bytes(project.kubeconfig.read_bytes())
    project("down", "--timeout=20")
    project.start()
    with closing(RequestSender(kubeconfig, [URL])) as request_sender:
        assert request_sender.get("/api/v1/namespaces/default/configmaps/old")["data"] == {"a": "b"}
    project.kubectl("delete", "configmap", "old")


def test_kubeconfig_file_is_private_to_owner(project):
    assert project.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert project.kubeconfig.stat().st_uid == project.kubeconfig.parent.stat().st_uid


@pytest.mark.parametrize("service", ["etcd", "apiserver", "front", "prometheus"])
def test_killed_container_loses_no_acknowledged_write(project, request_sender, service):
    with Load(project.kubeconfig, [URL], prefix=service) as load:
        for container in project.containers(service):
            load.wait_acknowledged()
            container.kill()
            load.wait_acknowledged()
            until(container.is_healthy, f"health of {container.name}")
    assert load.check(request_sender) > 200


def test_standby_manager_leads_after_leader_is_killed(project, request_sender):
    with Load(project.kubeconfig, [URL], prefix="leader") as load:
        until(request_sender.leader, "a leader")
        before = request_sender.leader()
        leading = [one for one in project.containers("controller-manager") if one.hostname in before]
        assert len(leading) == 1, before
        leading[0].kill()
        load.wait_acknowledged()
        until(lambda: request_sender.leader() not in (None, "", before), "another leader")
    load.check(request_sender)
    project.kubectl("create", "deployment", "after", "--image=nginx", "--replicas=3")
    project.kubectl("rollout", "status", "deployment/after", "--timeout=60s")
    project.kubectl("delete", "deployment", "after")


def test_acknowledged_write_is_in_etcd(project):
    project.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    etcd = project.containers("etcd")[0]
    assert etcd.execute("etcdctl", "get", "--keys-only", "/registry/configmaps/default/kept").strip()
    project.kubectl("delete", "configmap", "kept")


@pytest.mark.parametrize("service", ["apiserver", "controller-manager"])
def test_containers_have_no_extra_privileges(project, service):
    for container in project.containers(service):
        assert container.execute("id", "-u").strip() == "65532"
        assert container.execute("sh", "-c", "touch /opt/x || echo refused").strip() == "refused"
        assert container.execute("sh", "-c", "grep CapEff: /proc/1/status").split()[1] == "0" * 16
        tools = "for tool in gcc cc pip; do command -v $tool; done; python3 -c 'import pip' || echo none"
        assert container.execute("sh", "-c", tools).strip() == "none"


@pytest.mark.parametrize("service", ["apiserver", "controller-manager"])
def test_stopped_containers_exit_with_code_0(project, service):
    containers = project.containers(service)
    project("stop", service)
    assert [one.inspect()["State"]["ExitCode"] for one in containers] == [0] * len(containers)
    project("start", service)
    for container in containers:
        until(container.is_healthy, f"health of {container.name}")


def test_health_check_of_image_reports_process(project):
    server = project.containers("apiserver")[0]
    assert server.execute("ready").strip() == "ok"
    unready = server.execute(
        "env",
        "MOCKUBE_APISERVER_SECURE_PORT=1",
        "MOCKUBE_CONTROLLER_MANAGER_SECURE_PORT=1",
        "ready",
        check=False,
    )
    assert unready.strip() == "nothing listens yet"


def test_prometheus_scrapes_all_processes(project):
    managers = ["kube-controller-manager"] * 2 + ["kube-scheduler"] * 2
    expected = sorted(["kube-apiserver"] * 2 + managers + ["etcd"])
    until(lambda: sorted(one["metric"]["job"] for one in query("up == 1")) == expected, "all targets are up")
    assert query("sum(apiserver_request_total)")[0]["value"][1] != "0"
    until(
        lambda: [one["value"][1] for one in query("sum(leader_election_master_status)")] == ["1"],
        "one leader",
    )


def test_prometheus_accepts_every_panel_and_rule(project):
    for panel in orjson.loads(ask_prometheus("consoles/panels.json")):
        query(panel["query"])
    assert b"<title>mockube</title>" in ask_prometheus("consoles/mockube.html")
    until(lambda: query("name:workqueue_queue_duration_seconds:p99"), "a recorded rule")
    until(
        lambda: health_of_rules(longest_interval=EVALUATION_SECONDS) == {"ok"}, "an evaluation of all rules"
    )
    # Groups of kubernetes-mixin with an interval of minutes may not have been evaluated yet.
    assert health_of_rules() <= {"ok", "unknown"}


def health_of_rules(longest_interval=float("inf")):
    groups = orjson.loads(ask_prometheus("api/v1/rules"))["data"]["groups"]
    return {
        rule["health"] for group in groups if group["interval"] <= longest_interval for rule in group["rules"]
    }
