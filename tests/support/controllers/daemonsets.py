"""A test harness for one DaemonSet: a fake API server, nodes, and a fake kubelet that runs pods on request."""

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.daemonset.controller import DAEMON_SET
from mockube.controller_manager.controllers.daemonset.placement import target_node
from tests.support.controllers.fake_api_server import FakeApiServer


def template(image="a:1", **spec):
    containers = [{"name": "c", "image": image}]
    return {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": containers, **spec}}


def rolling(surge=0, unavailable=1):
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


ON_DELETE = {"type": "OnDelete"}


def daemonset(**spec):
    """With the server's defaults."""
    defaults = {
        "selector": {"matchLabels": {"app": "d"}},
        "template": template(),
        "updateStrategy": rolling(),
        "revisionHistoryLimit": 10,
    }
    metadata = {
        "name": "d",
        "namespace": "default",
        "annotations": {"deprecated.daemonset.template.generation": "1"},
    }
    return {"metadata": metadata, "spec": {**defaults, **spec}}


class DaemonSetHarness(FakeApiServer):
    def __init__(self, *, nodes=3, **spec):
        super().__init__(DAEMON_SET, SteppedClock())
        self.add(DAEMON_SETS, daemonset(**spec))
        for number in range(nodes):
            self.add_node(f"n{number}")

    # --- the controller

    def sync(self):
        """Reconcile once; return the writes as (verb, plural)."""
        writes, self.error = self.reconcile(Key("default", "d"))
        return [(verb, resource.plural) for verb, resource, _ in writes]

    def settle(self, *, ready=True):
        """Run until idle; return the maximum of missing pods and of surplus pods."""
        missing = surplus = 0
        for _ in range(200):
            before = self.revision
            self.sync()
            missing = max(missing, len(self.nodes) - len(self.available_nodes))
            surplus = max(surplus, len(self.undeleted) - len(self.nodes))
            self.collect()
            if ready:
                self.run_all()
            if self.revision == before:
                return missing, surplus
        raise AssertionError(f"did not become idle: {self.done[-5:]}")

    # --- a user

    def release(self, image):
        self.respecify(DAEMON_SETS, "d", ("template",), template(image))
        generation = {"deprecated.daemonset.template.generation": str(meta.generation(self.set))}
        self.put(DAEMON_SETS, meta.with_annotations(self.set, generation))

    def set_spec(self, **spec):
        for field, value in spec.items():
            self.respecify(DAEMON_SETS, "d", (field,), value)

    def add_node(self, name, *, labels=None, taints=()):
        self.add(
            NODES,
            {
                "metadata": {"name": name, "namespace": "", "labels": labels or {}},
                "spec": {"taints": [*taints]},
            },
        )

    def taint(self, name, effect):
        taints = [{"key": "k", "value": "v", "effect": effect}]
        self.change(NODES, name, ("spec", "taints"), taints, namespace="")

    # --- the kubelet

    def run(self, pod, *, ready=True):
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": format_time(self.clock.now()),
        }
        body = {**pod, "spec": {**pod["spec"], "nodeName": node_of(pod)}}
        self.put(PODS, {**body, "status": {"phase": "Running", "conditions": [condition]}})

    def run_all(self):
        for pod in self.undeleted:
            if "status" not in pod:
                self.run(pod)

    def end(self, pod, phase):
        body = {**pod, "spec": {**pod["spec"], "nodeName": node_of(pod)}}
        self.put(PODS, {**body, "status": {"phase": phase}})

    def collect(self):
        for pod in self.all(PODS):
            if meta.is_deleting(pod):
                self.remove(PODS, meta.name(pod))

    # --- state

    @property
    def set(self):
        return self.get(DAEMON_SETS, "d")

    @property
    def status(self):
        return self.set.get("status") or {}

    @property
    def nodes(self):
        return [meta.name(node) for node in self.all(NODES)]

    @property
    def undeleted(self):
        return [pod for pod in self.all(PODS) if not meta.is_deleting(pod)]

    @property
    def revisions(self):
        return sorted(revision["revision"] for revision in self.all(CONTROLLER_REVISIONS))

    @property
    def images(self):
        """Return the pods by node."""
        return {node_of(pod): pod["spec"]["containers"][0]["image"] for pod in self.undeleted}

    @property
    def available_nodes(self):
        return {node_of(pod) for pod in self.undeleted if is_ready(pod)}


def node_of(pod):
    return target_node(PODS.view(pod))


def is_ready(pod):
    found = (pod.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in found)
