"""Stage runner: stages run in order, after their delays, and never twice."""

from datetime import timedelta

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.status import NotFound
from mockube.client.kinds import PODS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.records import Records
from mockube.kubelet.stages.document import stage_of
from mockube.kubelet.stages.runner import StageRunner
from mockube.kubelet.status_writer import StatusWriter
from tests.support.controllers.pods import patched

KEY = Key("ns", "p")


class Server:
    """A fake server that stores one pod and records all writes."""

    def __init__(self, **status):
        self.pod = {"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "status": status}
        self.done = []

    async def patch(self, resource, key, body, *, kind, subresource):
        self._find(resource, key)
        revision = str(int(meta.resource_version(self.pod)) + 1)
        self.pod = meta.with_metadata(self.pod, resourceVersion=revision)
        self.pod["status"] = patched(self.pod["status"], body.get("status") or {})
        self.done.append((kind, subresource, body))
        return self.pod

    async def delete(self, resource, key, *, uid, grace_period_seconds):
        self._find(resource, key)
        self.done.append(("delete", uid, grace_period_seconds))
        gone, self.pod = self.pod, None
        return gone

    def _find(self, resource, key):
        if self.pod is None or (resource, key) != (PODS, KEY):
            raise NotFound("no such pod")

    def record_on(self, _host, _about, type_, reason, message, **_part):
        self.done.append((type_, reason, message))


def stage(name, phase, then="", *, delay=0, immediate=False, **following):
    spec = {
        "resourceRef": {"kind": "Pod"},
        "selector": {"matchExpressions": [{"key": ".status.phase", "operator": "In", "values": [phase]}]},
        "delay": {"durationMilliseconds": delay * 1000},
        "immediateNextStage": immediate,
        "next": {"statusTemplate": f"phase: {then}"} if then else following,
    }
    document = {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": spec,
    }
    return stage_of(document)


def runner(server, clock, *stages):
    status_writer = StatusWriter(Records(), server, server, PODS, clock)
    return StageRunner(Records(), stages, status_writer, lambda _: {}, clock=clock, random=SeededRandom())


@pytest.fixture
def clock():
    return SteppedClock()


async def test_stage_waits_for_its_delay(clock):
    server = Server(phase="A")
    stages = runner(server, clock, stage("a", "A", "B", delay=5))
    assert await stages.run(KEY, server.pod) == timedelta(seconds=5)
    clock.advance(3)
    assert await stages.run(KEY, server.pod) == timedelta(seconds=2)
    assert server.done == []
    clock.advance(2)
    assert await stages.run(KEY, server.pod) is None
    assert server.done == [("strategic", "status", {"status": {"phase": "B"}})]


async def test_changed_stage_restarts_delay(clock):
    server = Server(phase="A")
    stages = runner(server, clock, stage("a", "A", "B", delay=5), stage("c", "C", "D", delay=5))
    await stages.run(KEY, server.pod)
    clock.advance(4)
    server.pod["status"] = {"phase": "C"}
    assert await stages.run(KEY, server.pod) == timedelta(seconds=5)


async def test_recreated_object_restarts_delay(clock):
    server = Server(phase="A")
    stages = runner(server, clock, stage("a", "A", "B", delay=5))
    await stages.run(KEY, server.pod)
    clock.advance(4)
    other = meta.with_metadata(server.pod, uid="v")
    assert await stages.run(KEY, other) == timedelta(seconds=5)


async def test_immediate_next_stage_runs_at_once(clock):
    server = Server(phase="A")
    stages = runner(
        server, clock, stage("a", "A", "B", immediate=True), stage("b", "B", "C"), stage("c", "C", "D")
    )
    await stages.run(KEY, server.pod)
    assert server.pod["status"]["phase"] == "C"


async def test_stage_cycle_is_interrupted(clock, caplog):
    server = Server(phase="A")
    there, back = stage("a", "A", "B", immediate=True), stage("b", "B", "A", immediate=True)
    assert await runner(server, clock, there, back).run(KEY, server.pod) is None
    assert "consecutive stages" in caplog.text


async def test_failing_template_leaves_object_unchanged(clock, caplog):
    server = Server(phase="A")
    broken = stage("a", "A", statusTemplate="a: {{ index .spec 1 2 }}: {")
    assert await runner(server, clock, broken).run(KEY, server.pod) is None
    assert server.done == []
    assert "stage a: ns/p: the rendered template is not valid YAML" in caplog.text


async def test_object_matching_no_stage_rests(clock):
    server = Server(phase="Z")
    assert await runner(server, clock, stage("a", "A", "B")).run(KEY, server.pod) is None


async def test_stage_deletion_has_uid_and_no_grace(clock):
    server = Server(phase="A")
    await runner(server, clock, stage("a", "A", delete=True, event={"reason": "R"})).run(KEY, server.pod)
    assert server.done == [("Normal", "R", ""), ("delete", "u", 0)]


# --- what the stage runner caches


async def test_written_object_is_outdated_until_observed(clock):
    server, records = Server(phase="A"), Records()
    status_writer = StatusWriter(records, server, server, PODS, clock)
    before = server.pod
    stages = StageRunner(
        records, [stage("a", "A", "B")], status_writer, lambda _: {}, clock=clock, random=SeededRandom()
    )
    assert not status_writer.is_outdated(before)
    await stages.run(KEY, before)
    assert status_writer.is_outdated(before)
    assert not status_writer.is_outdated(server.pod)
    assert status_writer.is_own(before, server.pod)
    others = meta.with_metadata(before, resourceVersion="0")
    assert not status_writer.is_own(others, server.pod), "another client wrote in between"
    assert not status_writer.is_outdated(meta.with_metadata(before, uid="another"))
    records.remove(meta.uid(before))
    assert not status_writer.is_outdated(before)


async def test_deleted_object_stays_outdated(clock):
    server = Server(phase="A")
    status_writer = StatusWriter(Records(), server, server, PODS, clock)
    before = server.pod
    stages = [stage("a", "A", delete=True)]
    await StageRunner(Records(), stages, status_writer, lambda _: {}, clock=clock, random=SeededRandom()).run(
        KEY, before
    )
    assert status_writer.is_outdated(before)


async def test_reset_server_is_followed_after_timeout(clock):
    server, records = Server(phase="A"), Records()
    status_writer = StatusWriter(records, server, server, PODS, clock)
    before = server.pod
    stages = StageRunner(
        records, [stage("a", "A", "B")], status_writer, lambda _: {}, clock=clock, random=SeededRandom()
    )
    await stages.run(KEY, before)
    clock.advance(299)
    assert status_writer.is_outdated(before)
    clock.advance(1)
    assert not status_writer.is_outdated(before)


async def test_missing_object_is_ignored(clock):
    server = Server(phase="A")
    before, server.pod = server.pod, None
    for following in ({"delete": True}, {"statusTemplate": "phase: B"}):
        assert await runner(server, clock, stage("a", "A", **following)).run(KEY, before) is None
    assert server.done == []
