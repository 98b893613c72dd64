"""Clusters of one process that contradict each other in images and files, by flags or by ConfigMaps, never see each other."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.images.live import live_images
from mockube.container_runtime.images.resolution import resolve
from mockube.container_runtime.images.table import ImageTable, read_table
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated.predictions import SimulatedPredictions
from mockube.container_runtime.simulated.servers.listeners import listeners_of
from tests.support.container_runtimes import simulated_runtime
from tests.support.controllers.pods import container, pod
from tests.support.images import IMAGES

NAMES = ("registry.test/app:1", "nginx", "busybox")
CLUSTERS = range(3)
clusters, images, numbers = st.sampled_from(CLUSTERS), st.sampled_from(NAMES), st.integers(1, 200)
changes = st.one_of(
    st.tuples(st.just("describe"), clusters, images, numbers),
    st.tuples(st.just("clear"), clusters),
    st.tuples(st.just("load"), clusters),
    st.tuples(st.just("write"), clusters, numbers),
)


def description(image, number):
    """Return an entry whose every fact has the number."""
    name = image.partition(":")[0]
    return f'i: {{names: [{name}], exitCode: {number}, user: {number}, ports: {{{number}: {{}}}}, programs: ["p{number}"]}}\n'


class ClusterOfProcess:
    """What a cluster knows of images, and the files of a pod that each cluster has; beside them, what a test has told it."""

    def __init__(self, added):
        described = {} if added is None else {NAMES[0]: added}
        self.images = ImageTable(read_table(description(*each).encode()) for each in described.items())
        self.predictions = SimulatedPredictions(self.images)
        self.runtime = simulated_runtime(SteppedClock(), images=self.images)
        self.added, self.live, self.is_loaded, self.text = described, {}, False, None

    def describe(self, image, number):
        self.live, self.is_loaded = {image: number}, False
        self.images.set_live(live_images({"data": {"images.yaml": description(image, number)}}))

    def clear(self):
        self.live, self.is_loaded = {}, False
        self.images.set_live(live_images(None))

    def load(self):
        self.live, self.is_loaded = {}, True
        self.images.set_live(live_images({"data": {"loaded": NAMES[0]}}))

    async def write(self, number):
        self.text = f"{number}".encode()
        (await self.files()).write("/data/f", self.text)

    async def files(self):
        main = container(
            "c", "sleep", "inf", image="busybox", volumeMounts=[{"name": "v", "mountPath": "/data"}]
        )
        tree = pod(main, volumes=[{"name": "v", "emptyDir": {}}])
        return await self.runtime.files.file_system(tree, main)

    async def check(self):
        for image in NAMES:
            number = {**self.added, **self.live}.get(image)
            main = container("c", image=image)
            found = self.images.behavior_of_image(image)
            listeners = listeners_of(self.images, pod(main), main)
            run = self.predictions.program_of_run(pod(main), main, script_of({}))
            if number is not None:
                assert (found.exit_code, found.programs) == (number, (f"p{number}",))
                assert (run().exit_code, self.predictions.image_user(main)) == (number, number)
                assert [*listeners.ports] == [number]
            else:
                assert found is IMAGES.behavior_of_image(image)
                assert listeners == listeners_of(IMAGES, pod(main), main)
        is_there = self.is_loaded or NAMES[0] in {**self.added, **self.live}
        assert (not resolve(self.images, NAMES[0]).error) is is_there
        files = await self.files()
        assert (files.read("/data/f") if files.exists("/data/f") else None) == self.text


@given(added=st.lists(st.none() | numbers, min_size=3, max_size=3), steps=st.lists(changes, max_size=8))
def test_cluster_sees_its_own_images_and_files_only(added, steps):
    async def run():
        present = [ClusterOfProcess(each) for each in added]
        for change, number, *values in steps:
            outcome = getattr(present[number], change)(*values)
            if outcome is not None:
                await outcome
            for cluster in present:
                await cluster.check()

    asyncio.run(run())
