"""A test harness for one advanced StatefulSet: a fake API server, and a fake kubelet for its pods."""

from mockube.apimachinery import conditions, meta
from mockube.client.kinds import PODS
from mockube.packs.kruise.controllers.advancedstatefulset.controller import ADVANCED_STATEFUL_SET
from mockube.packs.kruise.inplace.lifecycle import LABEL_STATE
from mockube.packs.kruise.inplace.update import GATE
from mockube.packs.kruise.kinds import ADVANCED_STATEFUL_SETS
from tests.support.controllers.statefulsets import StatefulSetHarness

SPECIFIED_DELETE = "apps.kruise.io/specified-delete"


def rolling(**fields):
    return {"type": "RollingUpdate", "rollingUpdate": fields}


def in_place(policy="InPlaceIfPossible", **fields):
    return rolling(podUpdatePolicy=policy, **fields)


def template(image="a:1", **labels):
    spec = {"containers": [{"name": "c", "image": image}], "readinessGates": [{"conditionType": GATE}]}
    return {"metadata": {"labels": {"app": "web", **labels}}, "spec": spec}


class AdvancedStatefulSetHarness(StatefulSetHarness):
    OF = ADVANCED_STATEFUL_SET
    KIND = ADVANCED_STATEFUL_SETS

    def change_spec(self, *path, to):
        self.respecify(self.KIND, "web", path, to)

    def reserve(self, *ordinals):
        self.change_spec("reserveOrdinals", to=[*ordinals])

    def label(self, ordinal, **labels):
        changes = {key.replace("__", "/"): value for key, value in labels.items()}
        self.put(PODS, meta.with_labels(self.pod(ordinal), changes))

    def specify(self, ordinal):
        self.put(PODS, meta.with_labels(self.pod(ordinal), {SPECIFIED_DELETE: "true"}))

    def state(self, ordinal):
        return meta.labels(self.pod(ordinal)).get(LABEL_STATE)

    def revision_of(self, ordinal):
        return meta.labels(self.pod(ordinal))["controller-revision-hash"]

    def messages_of(self, reason):
        return [message for _, event_reason, message in self.events if event_reason == reason]

    # --- the kubelet

    def run(self, ordinal, *, ready=True, phase="Running"):
        """The pod's containers run the images of its spec, and it is ready if its readiness gates are true."""
        pod = self.pod(ordinal)
        gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates", ())]
        is_ready = ready and phase == "Running" and all(conditions.is_true(pod, gate) for gate in gates)
        condition = {"type": "Ready", "status": "True" if is_ready else "False"}
        seen = {
            "phase": phase,
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": f"id-{container['image']}",
                }
                for container in pod["spec"]["containers"]
            ],
            "conditions": conditions.set_condition(conditions.of(pod), condition, self.clock.now()),
        }
        if pod.get("status") != seen:
            self.change(PODS, f"web-{ordinal}", ("status",), seen)

    def run_all(self):
        self.finish()
        for pod in self.all(PODS):
            if (pod.get("status") or {}).get("phase") not in ("Failed", "Succeeded"):
                self.run(int(meta.name(pod).rpartition("-")[2]))

    def finish(self):
        """A finalizer keeps a pod."""
        held_pods = [pod for pod in self.all(PODS) if meta.is_deleting(pod) and meta.finalizers(pod)]
        for pod in held_pods:
            del self.objects[PODS]["default", meta.name(pod)]
        super().finish()
        for pod in held_pods:
            self.objects[PODS]["default", meta.name(pod)] = pod
