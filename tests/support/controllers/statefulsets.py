"""A test harness for one StatefulSet: a fake API server, and a fake kubelet that runs its pods on request."""

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.wellknown import FINALIZER_FOREGROUND
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.statefulset.controller import STATEFUL_SET
from tests.support.controllers.fake_api_server import FakeApiServer

WEB = Key("default", "web")


def statefulset(**spec):
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "a:1"}]},
    }
    defaults = {
        "replicas": 3,
        "serviceName": "svc",
        "selector": {"matchLabels": {"app": "web"}},
        "template": template,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "revisionHistoryLimit": 10,
    }
    metadata = {"name": "web", "namespace": "default", "generation": 1}
    return {"metadata": metadata, "spec": {**defaults, **spec}}


def claim_template(name="data"):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": spec}


class StatefulSetHarness(FakeApiServer):
    OF = STATEFUL_SET
    KIND = STATEFUL_SETS

    def __init__(self, gates=None, **spec):
        super().__init__(self.OF, SteppedClock())
        self.gates = gates or self.gates
        self.add(self.KIND, statefulset(**spec))

    @property
    def set(self):
        return self.get(self.KIND, "web")

    @property
    def status(self):
        return self.set.get("status") or {}

    @property
    def pods(self):
        return self.names(PODS)

    @property
    def claims(self):
        return self.names(PERSISTENT_VOLUME_CLAIMS)

    def pod(self, ordinal):
        return self.get(PODS, f"web-{ordinal}")

    def image(self, ordinal):
        return self.pod(ordinal)["spec"]["containers"][0]["image"]

    def round(self):
        writes, error = self.reconcile(WEB)
        assert error is None
        return [(verb, name) for verb, resource, name in writes if resource is PODS]

    def scale(self, replicas):
        self.respecify(self.KIND, "web", ("replicas",), replicas)

    def roll(self, image):
        containers = [{"name": "c", "image": image}]
        self.respecify(self.KIND, "web", ("template", "spec", "containers"), containers)

    def remove_pod(self, ordinal):
        self.remove(PODS, f"web-{ordinal}")

    def delete_set(self):
        ending = format_time(self.clock.now())
        ending_set = meta.with_finalizer(self.set, FINALIZER_FOREGROUND)
        self.put(self.KIND, meta.with_metadata(ending_set, deletionTimestamp=ending))

    def plan_web(self):
        return self.plan(WEB)

    # --- the kubelet

    def run(self, ordinal, *, ready=True, phase="Running"):
        since = {"lastTransitionTime": format_time(self.clock.now())}
        condition = {"type": "Ready", "status": "True" if ready else "False", **since}
        self.change(PODS, f"web-{ordinal}", ("status",), {"phase": phase, "conditions": [condition]})

    def finish(self):
        """Remove terminating pods, and claims whose owners are gone."""
        for pod in self.all(PODS):
            if meta.is_deleting(pod):
                self.remove(PODS, meta.name(pod))
        alive = {meta.uid(obj) for present in self.objects.values() for obj in present.values()}
        for claim in self.all(PERSISTENT_VOLUME_CLAIMS):
            refs = meta.owner_references(claim)
            if refs and not any(ref["uid"] in alive for ref in refs):
                self.remove(PERSISTENT_VOLUME_CLAIMS, meta.name(claim))

    def run_all(self):
        self.finish()
        for pod in self.all(PODS):
            if (pod.get("status") or {}).get("phase") not in ("Running", "Failed", "Succeeded"):
                self.run(int(meta.name(pod).rpartition("-")[2]))

    def settle(self, rounds=60):
        """Alternate controller and kubelet until neither has anything to do; return the number of rounds."""
        for number in range(rounds):
            before = self.revision
            self.round()
            self.run_all()
            if self.revision == before:
                return number
        raise AssertionError(f"did not become idle after {rounds} rounds: {self.done[-5:]}")
