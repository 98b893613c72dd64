"""A test harness for one UnitedDeployment: a fake API server, and fakes of the workloads' controllers."""

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import CONTROLLER_REVISIONS, PODS, REPLICA_SETS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.packs.kruise.controllers.uniteddeployment.adapters import ADAPTERS
from mockube.packs.kruise.controllers.uniteddeployment.controller import UNITED_DEPLOYMENT
from mockube.packs.kruise.controllers.uniteddeployment.subset import (
    LABEL_REVISION,
    LABEL_SUBSET_NAME,
)
from mockube.packs.kruise.kinds import UNITED_DEPLOYMENTS
from tests.support.controllers.fake_api_server import FakeApiServer

FOO = Key("default", "foo")
ADAPTER = {adapter.type: adapter for adapter in ADAPTERS}
KINDS = [*ADAPTER]
LABELS = {"app": "foo"}


def pods_template(image="a:1", **spec):
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def workload_template(image="a:1", pods=None, **spec):
    body = {"selector": {"matchLabels": LABELS}, "template": pods or pods_template(image), **spec}
    return {"metadata": {"labels": LABELS}, "spec": body}


def template_of(kind, *args, **kwargs):
    return {ADAPTER[kind].template: workload_template(*args, **kwargs)}


def subset(name, **fields):
    return {"name": name, **fields}


def adaptive(critical=10, unschedulable=10, *, reserves=False):
    fields = {"rescheduleCriticalSeconds": critical, "unschedulableDuration": unschedulable}
    return {"type": "Adaptive", "adaptive": {**fields, "reserveUnschedulablePods": reserves}}


def united(kind="Deployment", subsets="abc", *, strategy=None, template=None, **spec):
    """`subsets` are names, or dictionaries."""
    listed = [subset(one) if isinstance(one, str) else one for one in subsets]
    topology = {"subsets": listed} | ({"scheduleStrategy": strategy} if strategy else {})
    body = {
        "replicas": 3,
        "selector": {"matchLabels": LABELS},
        "template": template or template_of(kind),
        "topology": topology,
        "updateStrategy": {"type": "Manual", "manualUpdate": {}},
        "revisionHistoryLimit": 10,
    }
    return {"metadata": {"name": "foo", "namespace": "default"}, "spec": body | spec}


class UnitedDeploymentHarness(FakeApiServer):
    def __init__(self, kind="Deployment", subsets="abc", **spec):
        super().__init__(UNITED_DEPLOYMENT, SteppedClock())
        self.kind = kind
        self.full = set()
        """Names of subsets in which new pods are unschedulable."""
        self.halted = set()
        """Names of subsets in which no pod becomes ready."""
        self.refusals = {}
        """Errors of creations, by the prefix of the generated name."""
        self.add(UNITED_DEPLOYMENTS, united(kind, subsets, **spec))

    def add(self, resource, tree):
        if (refusal := self.refusals.get(meta.generate_name(tree))) is not None:
            raise refusal
        return super().add(resource, tree)

    # --- the controller

    def reconcile_once(self):
        """Reconcile once; return the writes as (verb, plural, name)."""
        writes, self.error = self.reconcile(FOO)
        return [(verb, resource.plural, name) for verb, resource, name in writes]

    def next_plan(self):
        """Return the next plan, without executing it."""
        plan = self.plan(FOO)
        return (*plan.actions, *plan.last(None))

    # --- user actions

    def set(self, field, value):
        self.respecify(UNITED_DEPLOYMENTS, "foo", field.split("."), value)

    def scale(self, replicas):
        self.set("replicas", replicas)

    def release(self, image, **spec):
        self.set("template", template_of(self.kind, image, **spec))

    def keep(self, **partitions):
        self.set("updateStrategy", {"type": "Manual", "manualUpdate": {"partitions": partitions}})

    # --- state

    @property
    def foo(self):
        return self.get(UNITED_DEPLOYMENTS, "foo")

    @property
    def status(self):
        return self.foo.get("status") or {}

    @property
    def conditions(self):
        return {
            condition["type"]: (condition["status"], condition.get("reason", ""))
            for condition in self.status["conditions"]
        }

    def of_subset(self, name):
        """Return the status of a subset."""
        return next(subset for subset in self.status["subsetStatuses"] if subset["name"] == name)

    def schedulable(self, name):
        """Return the status and the reason of a subset's nodes condition."""
        found = self.of_subset(name).get("conditions") or [{"status": "", "reason": ""}]
        return found[0]["status"], found[0]["reason"]

    def workloads(self, kind=None):
        kinds = [kind] if kind else KINDS
        return [workload for kind in kinds for workload in self.all(ADAPTER[kind].resource)]

    def workload(self, name):
        (found,) = [
            workload
            for workload in self.workloads(self.kind)
            if meta.labels(workload)[LABEL_SUBSET_NAME] == name
        ]
        return found

    @property
    def sizes(self):
        """Return the desired replicas of the workloads, by subset."""
        return {
            meta.labels(workload)[LABEL_SUBSET_NAME]: workload["spec"]["replicas"]
            for workload in self.workloads()
        }

    @property
    def partitions(self):
        return {
            meta.labels(workload)[LABEL_SUBSET_NAME]: _partition(workload)
            for workload in self.workloads(self.kind)
        }

    @property
    def images(self):
        """Return the images of the pods, sorted, by subset."""
        found = {}
        for pod in self.pods:
            image = pod["spec"]["containers"][0]["image"]
            found.setdefault(meta.labels(pod)[LABEL_SUBSET_NAME], []).append(image)
        return {name: sorted(images) for name, images in found.items()}

    @property
    def pods(self):
        return [pod for pod in self.all(PODS) if not meta.is_deleting(pod)]

    def pods_of(self, name):
        found = [pod for pod in self.pods if meta.labels(pod)[LABEL_SUBSET_NAME] == name]
        return sorted(found, key=_ordinal)

    @property
    def revisions(self):
        return [
            revision
            for revision in self.all(CONTROLLER_REVISIONS)
            if meta.is_controlled_by(revision, self.foo)
        ]

    @property
    def messages(self):
        return [(reason, message) for _, reason, message in self.events]

    # --- the workloads' controllers and the kubelet

    def manage(self):
        """Reconcile the workloads at once: create the desired pods, with the new template as far as allowed."""
        for kind in KINDS:
            for workload in self.workloads(kind):
                self._manage(kind, workload)
        self.collect_garbage()

    def _manage(self, kind, workload):
        owner = self._replica_set(workload) if kind == "Deployment" else workload
        pods = self._pods_of(owner)
        replicas = workload["spec"]["replicas"]
        for pod in pods[replicas:]:
            self.remove(PODS, meta.name(pod))
        if not _is_on_delete(workload):
            for pod in pods[_partition(workload) : replicas]:
                if not self._is_at_revision_of(pod, workload):
                    self.remove(PODS, meta.name(pod))
        used_ordinals = {_ordinal(pod) for pod in self._pods_of(owner)}
        for ordinal in sorted({*range(replicas)} - used_ordinals):
            self._make(owner, workload, ordinal)
        self.update_status(workload)

    def _replica_set(self, workload):
        found = [
            replica_set
            for replica_set in self.all(REPLICA_SETS)
            if meta.is_controlled_by(replica_set, workload)
        ]
        if found:
            return found[0]
        metadata = {
            "name": f"{meta.name(workload)}-rs",
            "namespace": "default",
            "labels": meta.labels(workload["spec"]["template"]),
            "ownerReferences": [meta.controller_reference(workload)],
        }
        return self.add(REPLICA_SETS, {"metadata": metadata, "spec": {}})

    def _pods_of(self, owner):
        return sorted((pod for pod in self.pods if meta.is_controlled_by(pod, owner)), key=_ordinal)

    def _is_at_revision_of(self, pod, workload):
        return meta.labels(pod)[LABEL_REVISION] == meta.labels(workload)[LABEL_REVISION]

    def _make(self, owner, workload, ordinal):
        template = workload["spec"]["template"]
        metadata = {
            "name": f"{meta.name(owner)}-{ordinal}",
            "namespace": "default",
            "labels": meta.labels(template),
            "ownerReferences": [meta.controller_reference(owner)],
        }
        self.add(PODS, {"metadata": metadata, "spec": template["spec"]})

    def update_status(self, workload):
        """Write the status that the workload's controller would write."""
        workload = next(item for item in self.workloads() if meta.uid(item) == meta.uid(workload))
        resource = next(
            item.resource
            for item in ADAPTERS
            if item.resource.kind == meta.kind(workload)
            and item.resource.api_version == meta.api_version(workload)
        )
        owners = {meta.uid(workload)} | {
            meta.uid(item) for item in self.all(REPLICA_SETS) if meta.is_controlled_by(item, workload)
        }
        pods = [pod for pod in self.pods if meta.controller_of(pod)["uid"] in owners]
        status = {
            "observedGeneration": meta.generation(workload),
            "replicas": len(pods),
            "readyReplicas": sum(map(_is_ready, pods)),
        }
        if workload.get("status") != status:
            self.put(resource, {**workload, "status": status})

    def run(self, pod, *, ready=True):
        self._write_status(pod, "Running", ("Ready", ready, "", self.clock.now()), node="node-1")

    def refuse(self, pod):
        """Make the pod unschedulable."""
        self._write_status(pod, "Pending", ("PodScheduled", False, "Unschedulable", self.clock.now()))

    def _write_status(self, pod, phase, condition, **spec):
        kind, holds, reason, since = condition
        pod_condition = {
            "type": kind,
            "status": str(holds),
            "reason": reason,
            "lastTransitionTime": format_time(since),
        }
        fields = {"nodeName": spec["node"]} if spec else {}
        body = {
            **pod,
            "spec": {**pod["spec"], **fields},
            "status": {"phase": phase, "conditions": [pod_condition]},
        }
        self.put(PODS, body)

    def run_all(self):
        for pod in self.pods:
            place = meta.labels(pod)[LABEL_SUBSET_NAME]
            if place in self.full and "nodeName" not in pod["spec"]:
                if "status" not in pod:
                    self.refuse(pod)
            elif not _is_ready(pod) and place not in self.halted:
                self.run(pod)

    def collect_garbage(self):
        """Delete objects whose owner is gone, and remove terminating pods."""
        there = {meta.uid(tree) for present in self.objects.values() for tree in present.values()}
        for resource in (REPLICA_SETS, PODS, REPLICA_SETS, PODS):
            for tree in self.all(resource):
                owner = meta.controller_of(tree)
                if meta.is_deleting(tree) or (owner and owner["uid"] not in there):
                    self.remove(resource, meta.name(tree))
                    there.discard(meta.uid(tree))

    def settle(self, rounds=60):
        """Run all controllers until they are idle."""
        for _ in range(rounds):
            before = self.revision
            self.reconcile_once()
            self.manage()
            self.run_all()
            for workload in self.workloads():
                self.update_status(workload)
            if self.revision == before:
                return self
        raise AssertionError(f"did not become idle after {rounds} rounds: {self.done[-8:]}")

    def pass_(self, seconds):
        """Let time pass second by second, and run all controllers after each."""
        for _ in range(seconds):
            self.clock.advance(1)
            self.settle()
        return self


def _is_ready(pod):
    pod_conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in pod_conditions)


def _ordinal(pod):
    return int(meta.name(pod).rpartition("-")[2])


def _is_on_delete(workload):
    return (workload["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"


def _partition(workload):
    strategy = workload["spec"].get("updateStrategy") or {}
    return strategy.get("partition") or (strategy.get("rollingUpdate") or {}).get("partition") or 0
