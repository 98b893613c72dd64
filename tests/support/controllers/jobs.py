"""A test harness for one Job: a fake API server, its controllers, and a fake kubelet that ends pods on request."""

from datetime import timedelta

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.wellknown import FINALIZER_JOB_TRACKING
from mockube.client.kinds import JOBS, PODS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.job.controller import JOB
from mockube.controller_manager.controllers.job.orphans import JOB_ORPHAN_PODS
from tests.support.controllers.fake_api_server import FakeApiServer


def job(name="j", **spec):
    """With the server's defaults."""
    labels = {"job-name": name}
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    defaults = {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    job_spec = {field: value for field, value in (defaults | spec).items() if value is not None}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": job_spec, "status": {}}


def indexed(**spec):
    return job(completionMode="Indexed", **spec)


class JobHarness(FakeApiServer):
    def __init__(self, **spec):
        super().__init__(JOB, SteppedClock())
        self.add(JOBS, job(**spec))
        self.most_active = 0

    # --- the controllers

    def sync(self):
        """Reconcile once; return the writes as (verb, plural)."""
        self.controller = JOB
        writes, self.error = self.reconcile(Key("default", "j"))
        self.most_active = max(self.most_active, len(self.active))
        return [(verb, resource.plural) for verb, resource, _ in writes]

    def release_orphans(self):
        self.controller = JOB_ORPHAN_PODS
        for name in self.names(PODS):
            self.reconcile(Key("default", name))

    def settle(self):
        """Run until the controller has nothing to do and deleted objects are gone."""
        for _ in range(50):
            before = self.revision
            self.sync()
            self.collect()
            if self.revision == before:
                return
        raise AssertionError(f"did not become idle: {self.done[-5:]}")

    # --- a user

    def set(self, **spec):
        for field, value in spec.items():
            self.respecify(JOBS, "j", (field,), value)

    def pass_time(self, seconds):
        self.clock.advance(seconds)

    # --- the kubelet

    def run(self, pod, *, ready=True):
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        self.put(PODS, {**pod, "status": {"phase": "Running", "conditions": [condition]}})

    def end(self, pod, code=0, *, ago=0, conditions=()):
        ended = format_time(self.clock.now() - timedelta(seconds=ago))
        state = {"terminated": {"exitCode": code, "finishedAt": ended}}
        status = {
            "phase": "Failed" if code else "Succeeded",
            "conditions": [*conditions],
            "containerStatuses": [{"name": "c", "restartCount": 0, "state": state}],
        }
        self.put(PODS, {**pod, "status": status})

    def end_index(self, index, code=0):
        (pod,) = [pod for pod in self.active if index_of(pod) == index]
        self.end(pod, code)

    def delete(self, pod):
        self.put(PODS, meta.with_metadata(pod, deletionTimestamp=format_time(self.clock.now())))

    def collect(self):
        """Remove deleted objects that have no finalizer."""
        for pod in self.pods:
            if meta.is_deleting(pod) and not meta.finalizers(pod):
                self.remove(PODS, meta.name(pod))

    # --- state

    @property
    def job(self):
        return self.get(JOBS, "j")

    @property
    def status(self):
        return self.job.get("status") or {}

    @property
    def counts(self):
        return {field: self.status.get(field, 0) for field in ("active", "succeeded", "failed")}

    @property
    def conditions(self):
        return [
            (condition["type"], condition["status"], condition["reason"])
            for condition in self.status.get("conditions") or ()
        ]

    @property
    def pods(self):
        return sorted(self.all(PODS), key=lambda pod: int(meta.uid(pod).removeprefix("uid-")))

    @property
    def active(self):
        phases = ("Succeeded", "Failed")
        return [
            pod
            for pod in self.pods
            if not meta.is_deleting(pod) and (pod.get("status") or {}).get("phase") not in phases
        ]

    @property
    def tracked(self):
        return [pod for pod in self.pods if FINALIZER_JOB_TRACKING in meta.finalizers(pod)]


def index_of(pod):
    return int(meta.annotations(pod)["batch.kubernetes.io/job-completion-index"])
