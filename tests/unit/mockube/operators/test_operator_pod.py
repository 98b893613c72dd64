"""The pod that an operator stands for: which pods there are, what the operator gets of one, and what it needs of this machine."""

import asyncio
import os
import sys
from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import NotFound
from mockube.client import kinds
from mockube.component_base.clock import SteppedClock
from mockube.operators import operator_pod
from mockube.operators.operator_pod import (
    UnsupportedPod,
    can_have_mounts,
    paths_of_command,
    pods_of,
    read_operator_pod,
    runs,
)
from tests.support.event_loop import yield_to_loop

WORKLOAD = {
    "metadata": {"name": "manager", "namespace": "system"},
    "spec": {"selector": {"matchLabels": {"app": "manager"}}},
}


def pod(name="manager-1", phase="Running", *, app="manager", deleting=False, container=(), **spec):
    deletion = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}
    metadata = {"name": name, "namespace": "system", "uid": name, "labels": {"app": app}, **deletion}
    main = {"name": "main", "image": "i", **dict(container)}
    return {"metadata": metadata, "spec": {"containers": [main], **spec}, "status": {"phase": phase}}


class Client:
    """A server with some objects by their resource, namespace and name."""

    def __init__(self, *pods, objects=()):
        self.pods, self.objects, self.asked = [*pods], dict(objects), []

    async def list(self, resource, namespace="", **_):
        self.asked.append(namespace)
        return SimpleNamespace(items=[*self.pods] if resource is kinds.PODS else [])

    async def get(self, resource, key):
        if (resource, *key) not in self.objects:
            raise NotFound("none")
        return self.objects[resource, *key]


async def names(client, number=1, clock=None, seconds=9):
    found = await pods_of(client, WORKLOAD, number, clock or SteppedClock(), seconds)
    return [each["metadata"]["name"] for each in found]


async def test_pods_of_a_workload_that_run_are_first():
    client = Client(
        pod("c", "Pending"), pod("b"), pod("a"), pod("other", app="x"), pod("going", deleting=True)
    )
    assert await names(client) == ["a", "b", "c"]
    assert client.asked == ["system"]


async def test_pods_are_waited_for_until_enough_run_or_time_is_up():
    client, clock = Client(pod("a"), pod("b", "Pending")), SteppedClock()
    waiting = asyncio.create_task(names(client, 2, clock))
    for _ in range(3):
        await yield_to_loop()
        assert not waiting.done()
        clock.advance(0.05)
    client.pods[1] = pod("b")
    await yield_to_loop()
    clock.advance(0.05)
    assert await waiting == ["a", "b"]
    late = asyncio.create_task(names(client, 3, clock, seconds=1))
    await yield_to_loop()
    clock.advance(1)
    assert await late == ["a", "b"]


@pytest.mark.parametrize(("tree", "is_running"), [(pod(), True), (pod(phase="Pending"), False), ({}, False)])
def test_pod_runs_in_its_phase(tree, is_running):
    assert runs(tree) is is_running


async def read(client, tree, folder):
    return await read_operator_pod(client, tree, "secret", folder, SteppedClock().now())


async def test_operator_has_the_variables_of_its_container(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("UNRELATED", "x")
    env = [
        {"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "colors", "key": "main"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "tokens", "key": "t"}}},
        {
            "name": "CPUS",
            "valueFrom": {"resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}},
        },
    ]
    tree = pod(container={"env": env}, nodeName="node-1")
    client = Client(
        objects={
            (kinds.CONFIG_MAPS, "system", "colors"): {"data": {"main": "red"}},
            (kinds.SECRETS, "system", "tokens"): {"data": {"t": "YQ=="}},
            (kinds.NODES, "", "node-1"): {"status": {"allocatable": {"cpu": "3", "memory": "1Gi"}}},
        }
    )
    found = (await read(client, tree, tmp_path)).environment("https://127.0.0.1:6443")
    assert {name: found.get(name) for name in ("COLOR", "TOKEN", "CPUS", "HOME", "UNRELATED")} == {
        "COLOR": "red",
        "TOKEN": "a",
        "CPUS": "3",
        "HOME": "/home/me",
        "UNRELATED": None,
    }
    assert found["PATH"] == os.environ["PATH"]
    assert (found["KUBERNETES_SERVICE_HOST"], found["KUBERNETES_SERVICE_PORT"]) == ("127.0.0.1", "6443")


async def test_machine_without_a_home_has_none_for_an_operator(tmp_path, monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    found = (await read(Client(), pod(), tmp_path)).environment("https://127.0.0.1:6443")
    assert found["KUBERNETES_SERVICE_PORT"] == "6443"


@pytest.mark.parametrize("fields", [{}, {"nodeName": "gone"}])
async def test_pod_without_a_node_has_no_allocatable_resources(fields, tmp_path):
    found = await read(Client(), pod(**fields), tmp_path)
    assert found.references.allocatable == {}


@pytest.mark.parametrize(("links", "namespaces"), [(None, ["system"]), (True, ["system"]), (False, [])])
async def test_services_of_the_namespace_are_read_for_links(links, namespaces, tmp_path):
    client = Client()
    await read(client, pod(**({} if links is None else {"enableServiceLinks": links})), tmp_path)
    assert client.asked == namespaces


async def test_volume_that_a_process_cannot_have_is_refused(tmp_path):
    volumes = [{"name": "v", "hostPath": {"path": "/x", "type": "Socket"}}]
    mounted = {"volumeMounts": [{"name": "v", "mountPath": "/x"}]}
    tree = pod(volumes=volumes, container=mounted)
    with pytest.raises(UnsupportedPod, match=r"^pod manager-1: "):
        await read(Client(), tree, tmp_path)


async def test_tokens_of_volumes_are_those_of_the_operator(tmp_path):
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
    volumes = [{"name": "t", "projected": {"sources": [source]}}]
    mounted = {"volumeMounts": [{"name": "t", "mountPath": "/var/run/secrets/x"}]}
    found = await read(Client(), pod(volumes=volumes, container=mounted), tmp_path)
    assert {*found.references.tokens.values()} == {"secret"}
    assert found.mounts([]).root.startswith(str(tmp_path))


def test_paths_of_a_command_are_those_that_exist(tmp_path, monkeypatch):
    file = tmp_path / "config.yaml"
    file.write_text("")
    program = tmp_path / "manager"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_text("")
    command = ["manager", "--config", str(file), "/nonexistent/x", "plain"]
    assert paths_of_command(command) == [program, file]
    assert paths_of_command(["none", str(file)]) == [file]


def test_other_systems_have_no_mounts(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert can_have_mounts.__wrapped__() is False


@pytest.mark.parametrize(("code", "allows"), [(0, True), (1, False)])
def test_machine_allows_mounts_if_a_process_with_some_starts(code, allows, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(operator_pod.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=code))
    assert can_have_mounts.__wrapped__() is allows
