"""The processes of compose.yaml without Docker: a kill under load loses no acknowledged write."""

import pytest

from tests.support.processes.acknowledged_writes import Load, until
from tests.support.processes.compose_processes import Project

pytestmark = [pytest.mark.slow, pytest.mark.etcd]

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture
def project(tmp_path):
    with Project(tmp_path) as project:
        yield project


def deployment(name, replicas):
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    return {"metadata": {"name": name}, "spec": spec}


def ready_replicas(project, name):
    return project.request_sender.get(f"{DEPLOYMENTS}/{name}")["status"].get("readyReplicas")


def test_killed_servers_and_etcd_lose_no_acknowledged_write(project):
    with Load(project.kubeconfig, project.urls) as load:
        for replica in (*project.replicas["etcd"], *project.replicas["apiserver"]):
            load.wait_acknowledged()
            replica.kill()
            load.wait_acknowledged()
    assert load.check(project.request_sender) >= 600


def test_standby_manager_leads_after_leader_is_killed(project):
    managers = project.replicas["controller-manager"]
    until(lambda: any(manager.is_leader for manager in managers), "a leader")
    (leading,) = [manager for manager in managers if manager.is_leader]
    before = project.request_sender.leader()
    with Load(project.kubeconfig, project.urls) as load:
        leading.kill()
        load.wait_acknowledged()
    until(lambda: project.request_sender.leader() not in (None, "", before), "another leader")
    load.check(project.request_sender)
    created = project.request_sender.send_request("POST", DEPLOYMENTS, deployment("after", 3))
    assert created.status == 201
    until(lambda: ready_replicas(project, "after") == 3, "three pods")
