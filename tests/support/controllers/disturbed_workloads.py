"""The steps of disturbed scenarios for workloads of each kind, and the expected end states."""

from mockube.apimachinery import meta
from mockube.controller_manager.controllers.daemonset.controller import DAEMON_SET
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.job.controller import JOB
from mockube.controller_manager.controllers.job.orphans import JOB_ORPHAN_PODS
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET
from mockube.controller_manager.controllers.statefulset.controller import STATEFUL_SET
from tests.support.controllers import (
    daemonsets,
    deployments,
    jobs,
)
from tests.support.controllers.disturbed_scenarios import APPS, CLAIMS, PODS, REVISIONS, Scenario
from tests.support.controllers.statefulsets import claim_template, statefulset


class Deployment(Scenario):
    """Two pods are created, updated to another version and rolled back."""

    path = f"{APPS}/deployments/web"
    controllers = (DEPLOYMENT, REPLICA_SET)
    counts = ("replicas", "availableReplicas", "updatedReplicas")
    strategy = deployments.rolling(1, 0)
    watched = ("deployments", "replicasets", "pods")

    def steps(self):
        yield self._begin
        yield self.change(template=deployments.template("a:2"))
        yield self.change(template=deployments.template())

    async def _begin(self):
        await self.create(deployments.deployment(replicas=2, strategy=self.strategy))

    def is_rolled_out(self, found):
        return super().is_rolled_out(found) and found["status"]["terminatingReplicas"] == 0

    async def check_end(self):
        sets = await self.items(f"{APPS}/replicasets")
        sizes = {
            deployments.image_of(replica_set["spec"]["template"]): replica_set["spec"]["replicas"]
            for replica_set in sets
        }
        assert sizes == {"a:1": 2, "a:2": 0}
        assert len(self.pods) == 6, "two pods of each version, and two more of the first"
        assert self.maximum <= 3


class RecreatedDeployment(Deployment):
    strategy = deployments.RECREATE


class StatefulSet(Scenario):
    """Two pods with storage are created and updated, and one is removed by a scale-down."""

    path = f"{APPS}/statefulsets/web"
    controllers = (STATEFUL_SET,)
    watched = ("statefulsets", "pods", "persistentvolumeclaims", "controllerrevisions")

    def steps(self):
        yield self._begin
        yield self.change(template={"spec": {"containers": [{"name": "c", "image": "a:2"}]}})
        yield self.change(replicas=1)

    async def _begin(self):
        await self.create(statefulset(replicas=2, volumeClaimTemplates=[claim_template()]))

    async def check_end(self):
        assert len(await self.items(PODS)) == 1
        assert len(await self.items(CLAIMS)) == 2
        assert len(await self.items(REVISIONS)) == 2
        assert len(self.pods) == 4, "two pods were created, and recreated"
        assert self.maximum <= 2


class Job(Scenario):
    """Of three indexes one fails at first, and all succeed, two at a time."""

    path = "/apis/batch/v1/namespaces/default/jobs/j"
    controllers = (JOB, JOB_ORPHAN_PODS)
    watched = ("jobs", "pods")

    def steps(self):
        self.failed = ""
        """The uid of the pod that fails."""
        yield self._begin

    async def _begin(self):
        body = jobs.job(completionMode="Indexed", parallelism=2, completions=3)
        unset = ("selector", "template")
        spec = {field: value for field, value in body["spec"].items() if field not in unset}
        spec["template"] = {"spec": body["spec"]["template"]["spec"]}
        await self.create({**body, "spec": spec})

    async def _update_pod_status(self, pod):
        if pod["status"].get("phase") in ("Succeeded", "Failed"):
            return False
        if not self.failed and jobs.index_of(pod) == 1:
            self.failed = meta.uid(pod)
        code = int(meta.uid(pod) == self.failed)
        body = {"status": {"phase": "Failed" if code else "Succeeded"}}
        path = f"{PODS}/{meta.name(pod)}/status"
        answer = await self.server.patch(path, body, kind="strategic-merge-patch+json")
        assert answer.status == 200, answer.body
        return True

    def is_rolled_out(self, found):
        return any(condition["type"] == "Complete" for condition in found["status"].get("conditions", ()))

    async def check_end(self):
        status = (await self.server.get(self.path)).body["status"]
        assert (status["succeeded"], status["failed"], status["completedIndexes"]) == (3, 1, "0-2")
        assert status["uncountedTerminatedPods"] == {}
        items = await self.items(PODS)
        assert len(items) == len(self.pods) == 4, "three and one that failed"
        assert not any(meta.finalizers(pod) for pod in items)


class DaemonSet(Scenario):
    """A pod on each of two nodes, updated to another version."""

    path = f"{APPS}/daemonsets/d"
    controllers = (DAEMON_SET,)
    watched = ("daemonsets", "pods", "controllerrevisions", "nodes")

    def steps(self):
        yield self._begin
        yield self.change(template=daemonsets.template("a:2"))

    async def _begin(self):
        for name in ("n1", "n2"):
            answer = await self.server.post("/api/v1/nodes", {"metadata": {"name": name}})
            assert answer.status == 201, answer.body
            answer = await self.server.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
            assert answer.status == 200, answer.body
        await self.create(daemonsets.daemonset())

    def is_rolled_out(self, found):
        status = found["status"]
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return seen and (status.get("updatedNumberScheduled"), status.get("numberAvailable")) == (2, 2)

    async def check_end(self):
        assert {pod["spec"]["containers"][0]["image"] for pod in await self.items(PODS)} == {"a:2"}
        assert len(await self.items(REVISIONS)) == 2
        assert len(self.pods) == 4, "two of each version"
        assert self.maximum <= 2


KINDS = (
    Deployment,
    RecreatedDeployment,
    StatefulSet,
    Job,
    DaemonSet,
)
