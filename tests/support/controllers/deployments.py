"""A test harness for one Deployment: a fake API server, both controllers, and a fake kubelet."""

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.wellknown import ANNOTATION_REVISION
from mockube.client.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET
from tests.support.controllers.fake_api_server import FakeApiServer

WEB = Key("default", "web")


def template(image="a:1", **labels):
    return {
        "metadata": {"labels": {"app": "web", **labels}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def deployment(**spec):
    defaults = {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(),
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": {**defaults, **spec}}


def rolling(surge, unavailable):
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


RECREATE = {"type": "Recreate"}


def replicaset(name="web", **spec):
    defaults = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template()}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {**defaults, **spec}}


class DeploymentHarness(FakeApiServer):
    def __init__(self):
        super().__init__(DEPLOYMENT, SteppedClock())

    # --- the controllers

    def reconcile_once(self, controller, name="web"):
        """Reconcile once; return the writes as (verb, plural, name)."""
        self.controller = controller
        writes, self.error = self.reconcile(Key("default", name))
        return [(verb, resource.plural, object_name) for verb, resource, object_name in writes]

    def plan_of(self, controller, name="web"):
        self.controller = controller
        return self.plan(Key("default", name))

    def roll_on(self):
        """Reconcile the Deployment once."""
        return self.reconcile_once(DEPLOYMENT)

    def manage(self):
        """Reconcile each ReplicaSet once."""
        return [
            write for name in self.names(REPLICA_SETS) for write in self.reconcile_once(REPLICA_SET, name)
        ]

    # --- user actions

    def deploy(self, **spec):
        self.add(DEPLOYMENTS, deployment(**spec))
        return self

    def set(self, field, value):
        self.respecify(DEPLOYMENTS, "web", (field,), value)

    def scale(self, replicas):
        self.set("replicas", replicas)

    def release(self, image):
        self.set("template", template(image))

    def pause(self):
        self.respecify(DEPLOYMENTS, "web", ("paused",), value=True)

    def resume(self):
        self.respecify(DEPLOYMENTS, "web", ("paused",), value=False)

    # --- state

    @property
    def web(self):
        return self.get(DEPLOYMENTS, "web")

    @property
    def status(self):
        return self.web.get("status") or {}

    @property
    def conditions(self):
        """Return the conditions by type, status and reason."""
        return {
            condition["type"]: (condition["status"], condition["reason"])
            for condition in self.status.get("conditions") or ()
        }

    @property
    def sets(self):
        return sorted(
            self.all(REPLICA_SETS), key=lambda replica_set: int(meta.uid(replica_set).removeprefix("uid-"))
        )

    @property
    def sizes(self):
        """Return the desired sizes of the ReplicaSets by image."""
        return {
            image_of(replica_set["spec"]["template"]): replica_set["spec"]["replicas"]
            for replica_set in self.sets
        }

    @property
    def revisions(self):
        return {
            image_of(replica_set["spec"]["template"]): meta.annotations(replica_set)[ANNOTATION_REVISION]
            for replica_set in self.sets
        }

    def set_of(self, image):
        return next(
            replica_set for replica_set in self.sets if image_of(replica_set["spec"]["template"]) == image
        )

    @property
    def pods(self):
        """Return the pods that count as replicas."""
        return [pod for pod in self.all(PODS) if not meta.is_deleting(pod)]

    @property
    def ready_pods(self):
        return [pod for pod in self.pods if is_ready(pod)]

    # --- the kubelet

    def run(self, pod, *, ready=True, phase="Running"):
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": format_time(self.clock.now()),
        }
        body = {**pod, "spec": {**pod["spec"], "nodeName": "node-1"}}
        self.put(PODS, {**body, "status": {"phase": phase, "conditions": [condition]}})

    def run_all(self):
        for pod in self.pods:
            if "status" not in pod:
                self.run(pod)

    def finish(self):
        """Remove the terminating pods."""
        for pod in self.all(PODS):
            if meta.is_deleting(pod):
                self.remove(PODS, meta.name(pod))

    def settle(self, rounds=100, *, machine=True):
        """Alternate controllers and kubelet until all are idle; return the number of rounds."""
        for number in range(rounds):
            before = self.revision
            self.roll_on()
            self.manage()
            if machine:
                self.finish()
                self.run_all()
            if self.revision == before:
                return number
        raise AssertionError(f"did not become idle after {rounds} rounds: {self.done[-5:]}")

    def writes_of(self, *resources):
        return [write for write in self.done if write[1] in resources]


def image_of(pod_template):
    return pod_template["spec"]["containers"][0]["image"]


def is_ready(pod):
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in (pod.get("status") or {}).get("conditions") or ()
    )
