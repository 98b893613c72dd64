"""Random walks: users, kubelets and other controllers change a small cluster, and one controller reconciles after each change.

A walk is the same on every machine. Its record has, for each step, a digest of the change, of the keys that the controller's watches
map it to, and of all that the controller did: writes, Events, errors, the time until the next run, and the objects afterwards.

python -m tests.support.controllers.random_walks                       # write the record
python -m tests.support.controllers.random_walks deployment-controller # print the steps, to compare them before and after a change
"""

import hashlib
import sys
from pathlib import Path

import orjson

from mockube.apimachinery import meta, status
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.schema import minors
from mockube.apimachinery.timestamps import format_time
from mockube.client.cache.store import Change
from mockube.client.kinds import PODS
from mockube.client.queue.reconcile_loop import RequeueWithBackoff
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.catalog import CONTROLLERS
from mockube.controller_manager.control.actions import Adopt, Confirm, Release, RemoveFinalizer
from mockube.controller_manager.controllers.devicetainteviction.controller import device_taint_eviction
from mockube.controller_manager.controllers.resourceclaim.controller import resource_claims
from mockube.controller_manager.controllers.rootca.controller import root_ca
from mockube.controller_manager.controllers.rootca.trust_bundle import trust_bundle
from tests.support.controllers.fake_api_server import FakeApiServer
from tests.support.controllers.random_objects import FIELDS, NODES, PRESENT, new_object, running_status

TIMES = (1, 20, 90, 400, 4000, 90000)
WALKED = (
    *CONTROLLERS,
    device_taint_eviction(FeatureGates()),
    resource_claims(),
    root_ca("certificates"),
    trust_bundle("certificates"),
)
MINORS = (minors.NEWEST, minors.NEWEST, "1.36", "1.33")
"""The releases of Kubernetes whose rules apply, in turn."""
STEPS = 60
LONG = frozenset(
    f"{name}-controller"
    for name in ("job", "cronjob", "statefulset", "deployment", "endpointslice", "persistentvolume-binder")
)
"""The controllers with the most rules, which take more walks than others."""
RECORD = Path(__file__).parents[2] / "unit/controller_manager/random_walks.json"
ROUNDS = 4
"""How often a key is reconciled at most after a change."""


class Walk(FakeApiServer):
    def __init__(self, controller, seed):
        super().__init__(controller, SteppedClock())
        self.gates = FeatureGates(MINORS[seed % len(MINORS)])
        self.random = SeededRandom(seed).stream(controller.name)
        self.resources = [*dict.fromkeys(watch.resource for watch in controller.watches)]
        self.primary = self.resources[0]
        self.lines = []
        self._has_errors = False
        for resource in self.resources:
            for _ in range(PRESENT.get(resource, 2)):
                self._add(resource)
        self._has_errors = seed % 2 == 1

    def choose(self, values):
        return values[int.from_bytes(self.random.bytes(4)) % len(values)]

    def step(self):
        """Make one change, reconcile, and note all that happened."""
        change = self.choose(_CHANGES) if self.all(self.primary) else Walk._add_primary
        what, resource, old, new = change(self)
        keys = self._mapped_keys(resource, old, new) if resource else set()
        self.events.clear()
        done = self._reconcile(keys | {Key.of(tree) for tree in self.all(self.primary)})
        mapped = ",".join(sorted(f"{key.namespace}/{key.name}" for key in keys))
        self.lines.append(" | ".join([what, mapped, *done, *(": ".join(event) for event in self.events)]))

    def _mapped_keys(self, resource, old, new):
        if old == new:
            return set()
        change = Change(old and resource.view(old), new and resource.view(new))
        watches = [watch for watch in self.controller.watches if watch.resource is resource and watch.keys]
        caches = self.caches()
        return {key for watch in watches for key in watch.keys(caches, change)}

    def _reconcile(self, keys):
        for key in sorted(keys):
            for _ in range(ROUNDS):
                try:
                    requeue = self.plan(key).requeue_after
                    writes, error = self.reconcile(key)
                except RequeueWithBackoff as problem:
                    yield str(problem)
                    break
                yield from (f"{verb} {resource.plural} {name}" for verb, resource, name in writes)
                if error is not None:
                    yield str(error)
                if requeue is not None:
                    yield f"again in {requeue.total_seconds():g}"
                if not writes or error is not None:
                    break
        yield self._digest()

    def _digest(self):
        state = [
            (str(resource.plural), self.all(resource))
            for resource in sorted(self.objects, key=lambda it: it.plural)
        ]
        return hashlib.sha256(orjson.dumps(state, option=orjson.OPT_SORT_KEYS)).hexdigest()[:8]

    # --- errors of the server

    def _may_refuse(self):
        return self._has_errors and self.choose(range(12)) == 0

    def _execute(self, actions, key=None):
        for action in actions:
            if isinstance(action, _REFUSED) and self._may_refuse():
                raise status.conflict(self.primary.group_resource, "x", "it was changed")
            super()._execute((action,), key)

    def _effect(self, action, verb, body, effect):
        def refuse(resource, body):
            raise status.conflict(resource.group_resource, meta.name(body), "it was changed")

        super()._effect(action, verb, body, refuse if self._may_refuse() else effect)

    # --- changes

    def _add(self, resource):
        tree = new_object(resource, self)
        if self.objects.get(resource, {}).get((meta.namespace(tree), meta.name(tree))) is None:
            return f"add {resource.plural}", resource, None, self.add(resource, tree)
        return "", None, None, None

    def _add_any(self):
        return self._add(self.choose(self.resources))

    def _add_primary(self):
        return self._add(self.primary)

    def _run_pods(self):
        """Run all pods, as the kubelets do, and remove those that are deleted."""
        for pod in self.all(PODS):
            if meta.is_deleting(pod):
                self.remove(PODS, meta.name(pod), meta.namespace(pod))
            elif (pod.get("status") or {}).get("phase", "Pending") == "Pending":
                spec = {**pod["spec"], "nodeName": pod["spec"].get("nodeName") or self.choose(NODES)}
                self.put(PODS, {**pod, "spec": spec, "status": running_status(self, pod)})
        return "pods run", None, None, None

    def _pass_time(self):
        seconds = self.choose(TIMES)
        self.clock.advance(seconds)
        return f"{seconds} s pass", None, None, None

    def _any(self):
        resources = [resource for resource in self.resources if self.objects.get(resource)]
        resource = self.choose(resources) if resources else None
        return resource, self.choose(self.all(resource)) if resource else None

    def _change(self):
        resource, old = self._any()
        if old is None or not FIELDS.get(resource):
            return self._pass_time()
        path, values = self.choose(FIELDS[resource])
        value = self.choose(values)
        if callable(value):
            value = value(self, old)
        new = self.put(resource, _with_value(old, path, value))
        if path[0] == "spec":
            new = self.put(resource, meta.with_metadata(new, generation=meta.generation(new) + 1))
        return f"{resource.plural} {meta.name(old)} {'.'.join(path)}", resource, old, new

    def _remove(self):
        resource, old = self._any()
        return self._pass_time() if old is None else self._removal(resource, old)

    def _removal(self, resource, old):
        self.remove(resource, meta.name(old), meta.namespace(old))
        return f"remove {resource.plural} {meta.name(old)}", resource, old, None

    def _delete(self):
        resource, old = self._any()
        if old is None or meta.is_deleting(old):
            return self._pass_time()
        if resource is not PODS and not meta.finalizers(old):
            return self._removal(resource, old)
        new = self.put(resource, meta.with_metadata(old, deletionTimestamp=format_time(self.clock.now())))
        return f"delete {resource.plural} {meta.name(old)}", resource, old, new


_REFUSED = (Adopt, Confirm, Release, RemoveFinalizer)
"""The actions that the server refuses at times in every other walk, besides those with an `EventTemplate`."""

_CHANGES = (
    *[Walk._change] * 14,
    *[Walk._run_pods] * 3,
    *[Walk._pass_time] * 3,
    *[Walk._add_any] * 2,
    Walk._remove,
    Walk._delete,
)


def _with_value(tree, path, value):
    """Return the object with a value at the path, or without the field for None."""
    first, *rest = path
    below = tree.get(first)
    changed = _with_value(below or {}, rest, value) if rest else value
    if changed is None:
        return {field: each for field, each in tree.items() if field != first}
    return {**tree, first: changed}


def walk(controller, seed):
    """Return the lines of a walk."""
    taken = Walk(controller, seed)
    for _ in range(STEPS):
        taken.step()
    return taken.lines


def walks(controller):
    """Return the lines of each walk of a controller."""
    return [walk(controller, seed) for seed in range(14 if controller.name in LONG else 6)]


def digests(lines):
    return [hashlib.sha256(line.encode()).hexdigest()[:6] for line in lines]


def main():
    names = sys.argv[1:]
    if names:
        chosen = [controller for controller in WALKED if controller.name in names]
        lines = [line for controller in chosen for lines in walks(controller) for line in lines]
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return
    record = {
        controller.name: [" ".join(digests(lines)) for lines in walks(controller)] for controller in WALKED
    }
    RECORD.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
