"""The story of a set whose manager is disturbed: its pods are made, rolled and taken away, and the machine is the test's."""

from apimachinery import conditions, meta

NAMESPACE = "/api/v1/namespaces/default"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"


class Story:
    """`steps` are called one by one, each once all is as it should be."""

    def __init__(self, server, sets, steps):
        self.server = server
        self.sets = sets
        self.pods = set()
        """The uids of all pods that there ever were."""
        self._steps = iter(steps)

    async def go_on(self):
        """What a machine does, or the next step once all is as it should be; False at the end."""
        if await self._run_pods() or not await self._is_rolled_out():
            return True
        step = next(self._steps, None)
        if step is not None:
            await step(self)
        return step is not None

    async def create(self, body):
        assert (await self.server.post(self.sets, body)).status == 201

    async def patch(self, spec):
        assert (await self.server.patch(f"{self.sets}/web", {"spec": spec})).status == 200

    async def count(self, path):
        return len((await self.server.get(path)).body["items"])

    async def _run_pods(self):
        acted = False
        for pod in (await self.server.get(f"{NAMESPACE}/pods")).body["items"]:
            self.pods.add(meta.uid(pod))
            path = f"{NAMESPACE}/pods/{meta.name(pod)}"
            status = _run(pod)
            if meta.is_deleting(pod):
                await self.server.delete(path, {"gracePeriodSeconds": 0})
            elif status is not None:
                await self.server.patch(
                    f"{path}/status", {"status": status}, kind="strategic-merge-patch+json"
                )
            else:
                continue
            acted = True
        return acted

    async def _is_rolled_out(self):
        answer = await self.server.get(f"{self.sets}/web")
        if answer.status == 404:
            return True
        status = answer.body.get("status") or {}
        counts = {status.get(field) for field in ("replicas", "readyReplicas", "updatedReplicas")}
        seen = status.get("observedGeneration") == answer.body["metadata"]["generation"]
        return seen and counts == {answer.body["spec"]["replicas"]}


def _run(pod):
    """What a kubelet would say of the pod, if it has not said so: it runs what it names, and its gates make it ready."""
    gates = pod["spec"].get("readinessGates", ())
    ready = all(conditions.is_true(pod, gate["conditionType"]) for gate in gates)
    said = {it["name"]: it["image"] for it in pod["status"].get("containerStatuses", ())}
    wanted = {it["name"]: it["image"] for it in pod["spec"]["containers"]}
    if (conditions.is_true(pod, "Ready"), said) == (ready, wanted):
        return None
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        "containerStatuses": [
            {
                "name": name,
                "image": image,
                "imageID": f"id-{image}",
                "ready": ready,
                "restartCount": 0,
            }
            for name, image in wanted.items()
        ],
    }
