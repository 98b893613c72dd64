"""How the command of a container ends that has a limit of memory."""

from mockube.apimachinery.quantity import from_json
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated import predictions
from tests.support.images import IMAGES
from tests.support.running_containers import Cluster


async def end_of(container, *, memory="64Mi"):
    cluster = Cluster({**container, "resources": {"limits": {"memory": memory}}}, restartPolicy="Never")
    if "c" not in cluster.runtime.states(cluster.pod):  # It is computed in advance.
        behavior = predictions.program_of_run(IMAGES, cluster.pod, container, script_of({}))()
        return (
            None if behavior.load.exceeds_at(float(from_json(memory).number)) is None else (137, "OOMKilled")
        )
    cluster.runtime.start_container(cluster.pod, "c", 0)
    for _ in range(20):
        await cluster.advance(1)
        if cluster.end() is not None:
            return cluster.end().code, cluster.end().reason
    return None
