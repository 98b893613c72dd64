"""Pods that wait for programs which are not simulated are tried again when more is known."""

import asyncio
from types import SimpleNamespace

import pytest

from mockube.client import kinds
from mockube.client.podview import PodView
from mockube.kubelet.waiting_pods import WaitingPods
from tests.support.controllers.informers import fill
from tests.support.controllers.scheduler_parts import SchedulerContext
from tests.support.event_loop import yield_to_loop

KEY = "mockube.dev/unknown-programs"


def namespace(version, **annotations):
    return {"metadata": {"name": "default", "resourceVersion": version, "annotations": annotations}}


def waiting(name, reason):
    statuses = [{"name": "c", "state": {"waiting": {"reason": reason}}}]
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return PodView.of(
        {"metadata": metadata, "spec": {"containers": []}, "status": {"containerStatuses": statuses}}
    )


class Waiting:
    def __init__(self):
        self.informers, self.tried, self.table = SchedulerContext().informers, [], []
        pods = [waiting("a", "NotSimulated"), waiting("b", "ErrImagePull")]
        self.pods = WaitingPods(
            self,
            SimpleNamespace(image_table=SimpleNamespace(on_change=self.table.append)),
            SimpleNamespace(all=lambda: pods),
            lambda key: self.tried.append(key.name),
        )
        self.namespaces = self.informers.of(kinds.NAMESPACES)


@pytest.mark.parametrize(
    ("before", "after", "tried"),
    [
        ({KEY: "wait"}, {KEY: "assume"}, ["a"]),
        ({}, {KEY: "fail"}, ["a"]),
        ({KEY: "wait"}, {}, ["a"]),
        ({KEY: "wait"}, {KEY: "wait", "x": "y"}, []),
    ],
)
async def test_annotation_of_the_namespace_is_followed(before, after, tried):
    found = Waiting()
    fill(found.namespaces, [namespace("1", **before)], 1)
    found.tried.clear()
    found.namespaces.put(namespace("2", **after))
    assert found.tried == tried


async def test_images_that_are_described_later_are_noticed():
    found = Waiting()
    [on_change] = found.table
    on_change()
    assert found.tried == ["a"]


async def test_annotations_are_waited_for():
    found = Waiting()
    task = asyncio.create_task(found.pods.wait_synced())
    await yield_to_loop(5)
    assert not task.done()
    fill(found.namespaces, [], 1)
    await task
