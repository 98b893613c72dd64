"""The steps of disturbed scenarios for OpenKruise's workloads, and the expected end states."""

from mockube.apimachinery import meta
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET
from mockube.controller_manager.controllers.statefulset.controller import STATEFUL_SET
from mockube.packs.kruise.controllers.advancedstatefulset.controller import ADVANCED_STATEFUL_SET
from mockube.packs.kruise.controllers.cloneset.controller import CLONE_SET
from mockube.packs.kruise.controllers.uniteddeployment.controller import UNITED_DEPLOYMENT
from tests.packs.kruise.support import advancedsets, clonesets, uniteddeployments
from tests.packs.kruise.support.uniteddeployments import ADAPTER, subset, united
from tests.support.controllers.disturbed_scenarios import APPS, CLAIMS, PODS, REVISIONS, Scenario
from tests.support.controllers.statefulsets import claim_template, statefulset

KRUISE = ("--packs=kruise",)
CUSTOM = "/apis/apps.kruise.io/{}/namespaces/default"


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
    AdvancedStatefulSet,
    CloneSet,
    UnitedDeployments,
    UnitedStatefulSets,
    UnitedAdvancedStatefulSets,
    UnitedCloneSets,
)
