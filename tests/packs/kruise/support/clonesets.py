"""A test harness for one CloneSet: a fake API server, and a fake kubelet that runs its pods on request."""

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import CONTROLLER_REVISIONS, NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.packs.kruise.controllers.cloneset.controller import CLONE_SET
from mockube.packs.kruise.inplace.lifecycle import LABEL_STATE
from mockube.packs.kruise.kinds import CLONE_SETS
from tests.support.controllers.fake_api_server import FakeApiServer

WEB = Key("default", "web")


def template(image="a:1", *, labels=None, annotations=None, **spec):
    containers = [{"name": "c", "image": image}]
    metadata = {"labels": {"app": "web", **(labels or {})}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def cloneset(**spec):
    defaults = {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(),
        "revisionHistoryLimit": 10,
    }
    metadata = {"name": "web", "namespace": "default", "generation": 1}
    return {"metadata": metadata, "spec": {**defaults, **spec}}


def claim_template(name="data", size="1Gi"):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": spec}


IN_PLACE = {"type": "InPlaceIfPossible"}


class CloneSetHarness(FakeApiServer):
    def __init__(self, **spec):
        super().__init__(CLONE_SET, SteppedClock())
        self.add(CLONE_SETS, cloneset(**spec))

    @property
    def set(self):
        return self.get(CLONE_SETS, "web")

    @property
    def status(self):
        return self.set.get("status") or {}

    @property
    def pods(self):
        return [pod for pod in self.all(PODS) if not meta.is_deleting(pod)]

    @property
    def pod_names(self):
        return [meta.name(pod) for pod in self.pods]

    @property
    def claims(self):
        return self.names(PERSISTENT_VOLUME_CLAIMS)

    def names_of_revisions(self):
        return self.names(CONTROLLER_REVISIONS)

    @property
    def images(self):
        return sorted(pod["spec"]["containers"][0]["image"] for pod in self.pods)

    @property
    def states(self):
        return sorted(meta.labels(pod).get(LABEL_STATE, "") for pod in self.pods)

    def messages_of(self, reason):
        return [message for _, event_reason, message in self.events if event_reason == reason]

    def count(self, *names):
        return [self.status.get(name, 0) for name in names]

    def round(self):
        writes, self.error = self.reconcile(WEB)
        return [(verb, name) for verb, resource, name in writes if resource is PODS]

    def change_spec(self, *path, to):
        self.respecify(CLONE_SETS, "web", path, to)

    def scale(self, replicas):
        self.change_spec("replicas", to=replicas)

    def roll(self, image="a:2", **more):
        self.change_spec("template", to=template(image, **more))

    def strategy(self, **strategy):
        self.change_spec("updateStrategy", to=strategy)

    def label(self, name, **labels):
        changes = {key.replace("__", "/"): value for key, value in labels.items()}
        self.put(PODS, meta.with_labels(self.get(PODS, name), changes))

    def specify(self, name):
        self.put(PODS, meta.with_labels(self.get(PODS, name), {"apps.kruise.io/specified-delete": "true"}))

    def add_nodes(self, **zones):
        for name, zone in zones.items():
            self.add(NODES, {"metadata": {"name": name, "labels": {"zone": zone}}})

    def plan_web(self):
        return self.plan(WEB)

    # --- the kubelet

    def run(self, name, *, node="n1", ready=True):
        """Sync the pod: its containers run the images of its spec, and it is ready if its readiness gates are true."""
        pod = self.get(PODS, name)
        gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates", ())]
        is_ready = ready and all(conditions.is_true(pod, gate) for gate in gates)
        status = pod.get("status") or {}
        before = conditions.of(pod)
        condition = {"type": "Ready", "status": "True" if is_ready else "False"}
        statuses = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": f"id-{container['image']}",
                "ready": ready,
            }
            for container in pod["spec"]["containers"]
        ]
        seen = {
            **status,
            "phase": "Running",
            "containerStatuses": statuses,
            "conditions": conditions.set_condition(before, condition, self.clock.now()),
        }
        changed = {**pod, "spec": {"nodeName": node, **pod["spec"]}, "status": seen}
        if changed != pod:
            self.put(PODS, changed)

    def run_all(self, *, ready=True):
        for pod in self.all(PODS):
            if meta.is_deleting(pod):
                self.end(meta.name(pod))
        for pod in self.pods:
            if (pod.get("status") or {}).get("phase") != "Failed":
                self.run(meta.name(pod), ready=ready)

    def end(self, name):
        """Remove terminating pods without finalizers, and the claims that are deleted with them."""
        pod = self.get(PODS, name)
        if meta.finalizers(pod):
            return
        self.remove(PODS, name)
        for claim in self.all(PERSISTENT_VOLUME_CLAIMS):
            if any(ref["uid"] == meta.uid(pod) for ref in meta.owner_references(claim)):
                self.remove(PERSISTENT_VOLUME_CLAIMS, meta.name(claim))

    def lose(self, name):
        """Delete a pod, as another client would."""
        pod = self.get(PODS, name)
        self.put(PODS, meta.with_metadata(pod, deletionTimestamp=format_time(self.clock.now())))

    def settle(self, rounds=80):
        """Alternate controller and kubelet until neither has anything to do; return the number of rounds."""
        for number in range(rounds):
            before = self.revision
            self.round()
            self.run_all()
            if self.revision == before:
                return number
        raise AssertionError(f"did not become idle after {rounds} rounds: {self.done[-5:]}")
