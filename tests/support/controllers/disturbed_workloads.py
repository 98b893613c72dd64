"""The steps of disturbed scenarios for workloads of each kind, and the expected end states."""

from mockube.apimachinery import meta
from mockube.controller_manager.controllers.daemonset.controller import DAEMON_SET
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.job.controller import JOB
from mockube.controller_manager.controllers.job.orphans import JOB_ORPHAN_PODS
from mockube.controller_manager.controllers.kruise.advancedstatefulset.controller import ADVANCED_STATEFUL_SET
from mockube.controller_manager.controllers.kruise.cloneset.controller import CLONE_SET
from mockube.controller_manager.controllers.kruise.uniteddeployment.controller import UNITED_DEPLOYMENT
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET
from mockube.controller_manager.controllers.statefulset.controller import STATEFUL_SET
from tests.support.controllers import (
    advancedsets,
    clonesets,
    daemonsets,
    deployments,
    jobs,
    uniteddeployments,
)
from tests.support.controllers.disturbed_scenarios import APPS, CLAIMS, PODS, REVISIONS, Scenario
from tests.support.controllers.statefulsets import claim_template, statefulset
from tests.support.controllers.uniteddeployments import ADAPTER, subset, united

KRUISE = ("--packs=kruise",)
CUSTOM = "/apis/apps.kruise.io/{}/namespaces/default"


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


class AdvancedStatefulSet(Scenario):
    """Three pods are updated in place, then two of their ordinals are reserved, and one of two pods is deleted."""

    path = f"{CUSTOM.format('v1beta1')}/statefulsets/web"
    controllers = (ADVANCED_STATEFUL_SET,)
    flags = KRUISE
    watched = ("statefulsets", "pods", "persistentvolumeclaims", "controllerrevisions")

    def steps(self):
        yield self._begin
        yield self.change(template=advancedsets.template("a:2"))
        yield self.change(reserveOrdinals=["1-2"], replicas=2)
        yield self.change(replicas=1)

    async def _begin(self):
        body = statefulset(
            replicas=3,
            podManagementPolicy="Parallel",
            template=advancedsets.template(),
            updateStrategy=advancedsets.in_place(maxUnavailable=2),
            volumeClaimTemplates=[claim_template()],
        )
        await self.create(body)

    async def check_end(self):
        (pod,) = await self.items(PODS)
        assert (meta.name(pod), pod["spec"]["containers"][0]["image"]) == ("web-0", "a:2")
        assert len(await self.items(CLAIMS)) == 4
        assert len(await self.items(REVISIONS)) == 2
        assert len(self.pods) == 4, "three were created and updated in place; one replaced a deleted one"


class CloneSet(Scenario):
    """Three pods with storage are updated in place, then recreated, and two are deleted."""

    path = f"{CUSTOM.format('v1alpha1')}/clonesets/web"
    controllers = (CLONE_SET,)
    flags = KRUISE
    counts = ("replicas", "availableReplicas", "updatedAvailableReplicas")
    watched = ("clonesets", "pods", "persistentvolumeclaims", "controllerrevisions")

    def steps(self):
        self.in_place = set()
        yield self._begin
        yield self.change(template=_on_a_node("a:2"))
        yield self._replace
        yield self.change(replicas=1)

    async def _begin(self):
        strategy = {"type": "InPlaceIfPossible", "maxUnavailable": 1}
        claims = [clonesets.claim_template()]
        template = _on_a_node("a:1")
        await self.create(
            clonesets.cloneset(
                replicas=3, updateStrategy=strategy, template=template, volumeClaimTemplates=claims
            )
        )

    async def _replace(self):
        self.in_place = {*self.pods}
        await self.change(template=_on_a_node("a:2", terminationGracePeriodSeconds=3))()

    async def check_end(self):
        (pod,) = await self.items(PODS)
        assert meta.labels(pod)["lifecycle.apps.kruise.io/state"] == "Normal"
        assert f"data-{meta.name(pod)}" in map(meta.name, await self.undeleted(CLAIMS))
        assert len(await self.items(REVISIONS)) == 3
        assert len(self.in_place) == 3, "three pods were created, and updated in place"
        assert len(self.pods) == 6, "and each was recreated once"
        assert self.maximum <= 3


def _on_a_node(image, **spec):
    return clonesets.template(image, nodeName="n1", **spec)


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


class UnitedScenario(Scenario):
    """Two subsets are made and rolled to another version, then one makes room for a third."""

    path = f"{CUSTOM.format('v1alpha1')}/uniteddeployments/foo"
    flags = KRUISE
    counts = ("replicas", "updatedReplicas", "updatedReadyReplicas")
    kind = ""

    def __init__(self, server):
        super().__init__(server)
        self.workloads = ADAPTER[self.kind].resource.path("default")
        self.created_uids = {}
        """The uids of all workloads that ever existed, by subset."""

    def steps(self):
        yield self._begin
        yield self.change(template=self._template("a:2"))
        yield self.change(topology={"subsets": [subset("a"), subset("c")]})

    def _template(self, image):
        pods = uniteddeployments.pods_template(image, nodeName="n1")
        return uniteddeployments.template_of(self.kind, pods=pods)

    async def _begin(self):
        await self.create(united(self.kind, "ab", replicas=2, template=self._template("a:1")))

    async def run_pods(self):
        for workload in await self.items(self.workloads):
            name = meta.labels(workload)["apps.kruise.io/subset-name"]
            self.created_uids.setdefault(name, set()).add(meta.uid(workload))
        return await self._collect_garbage() or await super().run_pods()

    async def _collect_garbage(self):
        """Also delete objects whose owner is gone."""
        paths = (f"{APPS}/replicasets", PODS)
        owned = [(path, dependent) for path in paths for dependent in await self.items(path)]
        there = {
            meta.uid(dependent)
            for dependent in (*await self.items(self.workloads), *(dependent for _, dependent in owned))
        }
        orphaned = [
            (path, dependent)
            for path, dependent in owned
            if meta.owner_references(dependent)[0]["uid"] not in there
        ]
        for path, dependent in orphaned:
            await self.server.delete(f"{path}/{meta.name(dependent)}", {"gracePeriodSeconds": 0})
        return bool(orphaned)

    async def is_settled(self):
        """Its status may still describe a deleted workload."""
        return len(await self.items(PODS)) in (0, 2) and await super().is_settled()

    async def check_end(self):
        assert {name: len(uids) for name, uids in self.created_uids.items()} == {"a": 1, "b": 1, "c": 1}
        assert len(self.pods) == 5, "two of each version, and one that moved"
        items = await self.items(self.workloads)
        assert {meta.labels(workload)["apps.kruise.io/subset-name"] for workload in items} == {"a", "c"}
        status = (await self.server.get(self.path)).body["status"]
        assert status["currentRevision"] == status["updateStatus"]["updatedRevision"]
        # OpenKruise's conversion derives this from the statuses of subsets, which may still describe the deleted one.
        assert {name: status["subsetReplicas"][name] for name in ("a", "c")} == {"a": 1, "c": 1}


class UnitedDeployments(UnitedScenario):
    kind = "Deployment"
    controllers = (UNITED_DEPLOYMENT, DEPLOYMENT, REPLICA_SET)
    watched = ("uniteddeployments", "deployments", "replicasets", "pods", "controllerrevisions")


class UnitedStatefulSets(UnitedScenario):
    kind = "StatefulSet"
    controllers = (UNITED_DEPLOYMENT, STATEFUL_SET)
    watched = ("uniteddeployments", "statefulsets", "pods", "controllerrevisions")


class UnitedAdvancedStatefulSets(UnitedScenario):
    kind = "AdvancedStatefulSet"
    controllers = (UNITED_DEPLOYMENT, ADVANCED_STATEFUL_SET)
    watched = ("uniteddeployments", "statefulsets", "pods", "controllerrevisions")


class UnitedCloneSets(UnitedScenario):
    kind = "CloneSet"
    controllers = (UNITED_DEPLOYMENT, CLONE_SET)
    watched = ("uniteddeployments", "clonesets", "pods", "controllerrevisions")


KINDS = (
    Deployment,
    RecreatedDeployment,
    StatefulSet,
    Job,
    DaemonSet,
    AdvancedStatefulSet,
    CloneSet,
    UnitedDeployments,
    UnitedStatefulSets,
    UnitedAdvancedStatefulSets,
    UnitedCloneSets,
)
