"""A harness for the pod life cycle: it applies the effects of each step to the pod, and advances time."""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from mockube.apimachinery.meta import with_metadata
from mockube.apimachinery.timestamps import format_time
from mockube.client.component_helpers.pod_requests import amounts
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.simulated.image_service import SimulatedImages
from mockube.kubelet.pod_lifecycle.image_pulls import NO_PULLS, PRESENT_IMAGES, ImagesOfNode, PodPulls
from mockube.kubelet.pod_lifecycle.pod import NodeContext, step
from mockube.kubelet.pod_lifecycle.resize import NodeResources
from mockube.kubelet.step_effects import DeleteObject, EmitEvent, PatchObject
from mockube.kubelet.volumes.host_paths import path_type
from tests.support.images import IMAGES, PREDICTIONS

START = datetime(2030, 1, 1, tzinfo=UTC)
IP = "10.244.0.7"


def container(name="c", *argv, image="nginx:1.25", **fields):
    command = {"command": list(argv)} if argv else {}
    return {"name": name, "image": image, **command, **fields}


def pod(*containers, annotations=None, labels=None, init=(), policy="Always", **spec):
    metadata = {"name": "p", "namespace": "ns", "uid": "uid-1", "generation": 1}
    return {
        "metadata": {**metadata, "annotations": annotations or {}, "labels": labels or {}},
        "spec": {
            "containers": list(containers) or [container()],
            "initContainers": list(init),
            "nodeName": "node-1",
            "restartPolicy": policy,
            **spec,
        },
        "status": {"phase": "Pending", "conditions": [scheduled()]},
    }


def scheduled():
    return {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(START)}


def node_context(
    *, details=False, allocatable=None, used=None, limits_resizes=False, config_maps=None, secrets=None
):
    resources = NodeResources(
        allocatable=lambda: amounts(allocatable or {"cpu": "4"}),
        used=lambda: amounts(used),
        limits_resizes=limits_resizes,
    )
    objects = References(config_maps=config_maps or {}, secrets=secrets or {})
    return NodeContext(
        ip="172.18.0.2",
        pod_ips=[IP],
        resources=resources,
        details=details,
        objects=objects,
        predictions=PREDICTIONS,
        path_type=lambda path: path_type(path, {}, ()),
    )


def patched(value, patch):
    """Return a status after a strategic merge patch, as far as the model writes such patches."""
    merged = dict(value)
    for key, change in patch.items():
        if key == "conditions":
            merged[key] = _conditions(value.get(key) or [], change)
        elif change is None:
            merged.pop(key, None)
        elif isinstance(change, dict) and isinstance(value.get(key), dict):
            merged[key] = patched(value[key], change)
        else:
            merged[key] = change
    return merged


def _conditions(present, changes):
    """Merge conditions; the patch's come first, in the patch's order."""
    by_type = {condition["type"]: condition for condition in present}
    order = [change["type"] for change in changes]
    for change in changes:
        if change.get("$patch") == "delete":
            del by_type[change["type"]]
        else:
            merged = {**by_type.get(change["type"], {}), **change}
            by_type[change["type"]] = {field: value for field, value in merged.items() if value is not None}
    return sorted(
        by_type.values(), key=lambda one: order.index(one["type"]) if one["type"] in order else len(order)
    )


class NodeWithImages:
    """A node that pulls images, and what its kubelet remembers of the pulls of one pod."""

    def __init__(self, *, service=None, credentials=(), kubelet_minor=37):
        """`credentials` are the images for whose registries the pod has credentials."""
        self.service = service or SimulatedImages(IMAGES)
        self.credentials = credentials
        self.kubelet_minor = kubelet_minor
        self.state = NO_PULLS

    def has_credentials(self, image):
        return image in self.credentials

    def pulls(self, pod, now):
        images = ImagesOfNode(
            find=lambda image: self.service.image_status("node-1", image),
            pull=self.service.pull_image,
            has_credentials=self.has_credentials,
            kubelet_minor=self.kubelet_minor,
        )
        return PodPulls(pod, self.state, images, now)

    def note_step(self, pulls):
        if pulls is not PRESENT_IMAGES:
            self.state = pulls.state
            for image in pulls.pulled.values():
                self.service.add_image("node-1", image)


class SimulatedPod:
    """One pod and its time. Effects are applied at once; `writes` counts the patches of its status."""

    def __init__(self, subject, *, context=None, node=None):
        """`node` is a node that pulls images; on others every image is present."""
        self.pod = subject
        self.node = node
        self.unknown_images = []
        self.context = context or node_context()
        self.now = START
        self.writes = 0
        self.events = []
        self.occasions = set()
        """Those at which an event was recorded once."""
        self.removed = False
        self.due = None
        self.retry_at = None
        self.step_until_idle()

    def step_until_idle(self):
        """Step while there is something to do; this must come to an end."""
        for _ in range(5):
            if not self._step_once():
                return
        raise AssertionError("did not become idle")

    def _step_once(self):
        if self.removed:
            return False
        images = self.node.pulls(self.pod, self.now) if self.node else PRESENT_IMAGES
        context = replace(self.context, retry_at=self.retry_at, images=images)
        next_step = step(self.pod, context, self.now)
        if self.node:
            self.node.note_step(images)
        self.due = next_step.requeue_at
        self.retry_at = self.due if next_step.is_blocked else None
        assert self.due is None or self.due > self.now
        for effect in next_step.effects:
            self._do(effect)
        return any(isinstance(effect, PatchObject) for effect in next_step.effects)

    def _do(self, effect):
        match effect:
            case PatchObject(body=body):
                assert body["metadata"] == {"uid": "uid-1"}
                self.pod = {**self.pod, "status": patched(self.pod["status"], body["status"])}
                self.writes += 1
            case EmitEvent(of_owner=True):
                self.unknown_images.append(effect)
            case EmitEvent():
                occasion = (effect.reason, effect.part, effect.once)
                if not effect.once or occasion not in self.occasions:
                    self.events.append(effect)
                self.occasions.add(occasion)
            case DeleteObject():
                self.removed = True

    def pass_time(self, seconds):
        """Let time pass, with a step whenever something is due."""
        until = self.now + timedelta(seconds=seconds)
        while self.due is not None and self.due <= until:
            self.now = self.due
            self.step_until_idle()
        self.now = until
        self.step_until_idle()
        return self

    def delete(self, grace=30):
        deadline = self.now + timedelta(seconds=grace)
        metadata = {"deletionTimestamp": format_time(deadline), "deletionGracePeriodSeconds": grace}
        generation = self.pod["metadata"]["generation"] + 1
        self.pod = with_metadata(self.pod, **metadata, generation=generation)
        self.step_until_idle()
        return self

    def change(self, **spec):
        generation = self.pod["metadata"]["generation"] + 1
        self.pod = with_metadata({**self.pod, "spec": {**self.pod["spec"], **spec}}, generation=generation)
        self.step_until_idle()
        return self

    def annotate(self, **annotations):
        named = {f"mockube.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
        self.pod = with_metadata(self.pod, annotations=named)
        self.step_until_idle()
        return self

    @property
    def phase(self):
        return self.pod["status"]["phase"]

    @property
    def status(self):
        return self.pod["status"]

    def containers(self, field="containerStatuses"):
        """Return each container's state in a word: `running`, its exit code, or the reason why it waits."""
        return {status["name"]: _word(status) for status in self.pod["status"][field]}

    def conditions(self):
        return {c["type"]: c.get("reason", c["status"]) for c in self.pod["status"]["conditions"]}

    @property
    def ready(self):
        return self.condition("Ready")["status"] == "True"

    def condition(self, name):
        return next(c for c in self.pod["status"]["conditions"] if c["type"] == name)


def _word(status):
    ((name, state),) = status["state"].items()
    return {"running": "running", "terminated": state.get("exitCode"), "waiting": state.get("reason")}[name]
