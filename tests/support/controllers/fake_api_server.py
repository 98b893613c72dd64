"""A fake API server for controllers that return plans: it stores objects, provides caches, and executes plans.

Caches are current and no request is lost; the runtime's handling of such faults has tests of its own.
Nothing has a head start either: what may be written of an object as soon as it is made is left to the next round.
"""

from functools import cache

from mockube.apimachinery import meta, status
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.patch import json_merge, strategic
from mockube.apimachinery.schema import builtin
from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import PODS
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    Adopt,
    CompletedWrite,
    Confirm,
    Create,
    Delete,
    Patch,
    PlanResult,
    RecordEvent,
    Release,
    Remember,
    RemoveFinalizer,
    SlowStart,
    Update,
)
from tests.support.controllers.fake_caches import FakeCaches

_GRACEFUL = (PODS,)
"""Objects that disappear only when the test calls `FakeApiServer.remove`."""


class FakeApiServer:
    def __init__(self, controller, clock):
        self.controller = controller
        self.clock = clock
        self.gates = FeatureGates()
        """The minor release and the feature gates of the controller."""
        self.objects = {}
        self.pending_writes = {}
        """Objects that the server has and no cache has yet, as in `objects`."""
        self.events = []
        """(type, reason, message) of all events."""
        self.done = []
        """(verb, resource, name) of every write of the controller."""
        self.revision = 0
        self.memories = {}
        """The controller's memory, by key."""
        self._writes = []
        """The writes of the current plan, as `Write`."""
        self._first_error = None

    # --- actions of users and kubelets

    def add(self, resource, tree):
        self.revision += 1
        present = self.objects.setdefault(resource, {})
        if not meta.name(tree):
            tree = meta.with_metadata(tree, name=f"{meta.generate_name(tree)}{self.revision}")
        if _key(tree) in present:
            raise status.already_exists(resource.group_resource, meta.name(tree))
        defaults = {
            "uid": f"uid-{self.revision}",
            "resourceVersion": str(self.revision),
            "creationTimestamp": format_time(self.clock.now()),
            "generation": 1,
        }
        whole = {"kind": resource.kind, "apiVersion": resource.api_version, **tree}
        present[_key(tree)] = {**whole, "metadata": {**defaults, **tree["metadata"]}}
        return present[_key(tree)]

    def get(self, resource, name, namespace="default"):
        return self.objects.get(resource, {}).get((namespace, name))

    def all(self, resource):
        return [*self.objects.get(resource, {}).values()]

    def names(self, resource):
        return sorted(map(meta.name, self.all(resource)))

    def put(self, resource, tree):
        self.revision += 1
        changed = {**tree, "metadata": {**tree["metadata"], "resourceVersion": str(self.revision)}}
        self.objects[resource][_key(tree)] = changed
        return changed

    def change(self, resource, name, path, value, namespace="default"):
        return self.put(resource, meta.with_value(self.get(resource, name, namespace), path, value))

    def respecify(self, resource, name, path, value, namespace="default"):
        """Change a spec, which increments the generation."""
        changed = self.change(resource, name, ("spec", *path), value, namespace)
        return self.put(resource, meta.with_metadata(changed, generation=meta.generation(changed) + 1))

    def remove(self, resource, name, namespace="default"):
        self.revision += 1
        del self.objects[resource][(namespace, name)]

    # --- actions of the runtime

    def plan(self, key):
        remembered = (self.memories.get(key),) if self.controller.has_memory else ()
        return self.controller.reconcile(self.caches(), key, self.clock.now(), *remembered)

    def reconcile(self, key):
        """Execute one plan; return its writes, and the error that ended it."""
        plan, before, self._first_error = self.plan(key), len(self.done), None
        while plan is not None:
            plan = self.execute_one(plan, key)
        return self.done[before:], self._first_error

    def execute_one(self, plan, key=None):
        """Execute a plan; return the next one."""
        self._writes = []
        error = self._error_of(plan.actions, key)
        last_error = self._error_of(plan.last(error), key)
        self._first_error = self._first_error or error or last_error
        return plan.then(PlanResult(error=error, writes=tuple(self._writes)))

    def _error_of(self, actions, key):
        try:
            self._execute(actions, key)
        except status.ApiError as problem:
            return problem
        return None

    def begin(self, key, actions):
        """Execute only the first actions of a plan, like a manager that is refused the next one or is killed."""
        self._execute(self.plan(key).actions[:actions])

    def caches(self):
        trees = {resource: [*present.values()] for resource, present in self.objects.items()}
        return FakeCaches(trees, self.controller.indexes, self.controller.tallies, gates=self.gates)

    def _execute(self, actions, key=None):
        for action in actions:
            if isinstance(action, Remember):
                self.memories[key] = action.memory
            else:
                _EFFECTS[type(action)](self, action)

    def _create(self, action):
        for body in action.bodies:
            self._effect(action, "create", body, self.add)

    def _delete(self, action):
        for ref in action.objects:
            present = self.objects.get(action.resource, {}).get(tuple(ref.key))
            if present is not None and meta.uid(present) == ref.uid:
                self._effect(action, "delete", present, self._end)

    def _end(self, resource, tree):
        if resource in _GRACEFUL or meta.finalizers(tree):
            ending = meta.metadata(tree).get("deletionTimestamp") or format_time(self.clock.now())
            self.put(resource, meta.with_metadata(tree, deletionTimestamp=ending))
        else:
            self.remove(resource, meta.name(tree), meta.namespace(tree))

    def _update(self, action):
        self._effect(action, "update", action.body, self._replace(action))

    def _replace(self, action):
        def replace(resource, body):
            present = self.objects[resource].get(_key(body))
            if present is None:
                raise status.not_found(resource.group_resource, meta.name(body))
            if meta.resource_version(body) != meta.resource_version(present):
                raise status.conflict(resource.group_resource, meta.name(body), "it was changed")
            if action.subresource == "status":
                body = {**body, "spec": present["spec"]}
            elif "status" in present:
                body = {**body, "status": present["status"]}
            if body.get("spec") != present.get("spec"):
                body = meta.with_metadata(body, generation=meta.generation(present) + 1)
            changed = self.put(resource, body)
            if meta.is_deleting(changed) and not meta.finalizers(changed) and resource not in _GRACEFUL:
                self.remove(resource, meta.name(changed), meta.namespace(changed))
            return changed

        return replace

    def _adopt(self, action):
        for orphan in action.orphans:
            present = self.objects[action.resource][tuple(orphan.key)]
            refs = [*meta.owner_references(present), meta.controller_reference(action.owner)]
            finalizers = [*meta.finalizers(present), *action.finalizers]
            changes = {"ownerReferences": refs} | ({"finalizers": finalizers} if finalizers else {})
            self.put(action.resource, meta.with_metadata(present, **changes))
            self.done.append(("adopt", action.resource, orphan.key.name))

    def _release(self, action):
        for object_ref in action.objects:
            present = self.objects[action.resource][tuple(object_ref.key)]
            refs = [ref for ref in meta.owner_references(present) if ref["uid"] != meta.uid(action.owner)]
            self.put(action.resource, meta.with_metadata(present, ownerReferences=refs))
            self.done.append(("release", action.resource, object_ref.key.name))

    def _record_action_event(self, action):
        self.events.append((action.type, action.reason, action.message))

    def _confirm(self, action):
        found = [
            action.resource.view(tree)
            for (namespace, name), tree in (self.objects | self.pending_writes)
            .get(action.resource, {})
            .items()
            if namespace == action.namespace and action.name in ("", name)
        ]
        if not action.holds(found):
            raise status.Conflict("the server has other objects than the cache")

    def _slow_start(self, action):
        self._execute(action.effects)

    def _patch(self, action):
        named = {"metadata": {"namespace": action.key.namespace, "name": action.key.name}}
        self._effect(action, "patch", named, self._patched(action))

    def _patched(self, action):
        def patched(resource, _):
            present = self.objects.get(resource, {}).get(tuple(action.key))
            if present is None:
                raise status.not_found(resource.group_resource, action.key.name)
            patch_metadata = meta.metadata(action.body)
            expected = {
                field: patch_metadata[field]
                for field in ("uid", "resourceVersion")
                if field in patch_metadata
            }
            if any(present["metadata"][field] != value for field, value in expected.items()):
                raise status.conflict(resource.group_resource, action.key.name, "it was changed")
            changed = _apply_patch(resource, present, action)
            return present if changed == present else self.put(resource, changed)

        return patched

    def _remove_finalizer(self, action):
        for object_ref in action.objects:
            present = self.objects[action.resource].get(tuple(object_ref.key))
            if present is not None and meta.uid(present) == object_ref.uid:
                self.put(action.resource, meta.without_finalizer(present, action.finalizer))
            self.done.append(("finalize", action.resource, object_ref.key.name))
            self._writes.append(CompletedWrite(action, object_ref.key, present))

    def _effect(self, action, verb, body, effect):
        resource, event, name = action.resource, action.event, meta.name(body)
        try:
            changed = effect(resource, body)
        except status.ApiError as problem:
            self._record_write_event("Warning", event and event.on_failure, name=name, error=problem)
            raise
        name = meta.name(changed or body)
        self.done.append((verb, resource, name))
        self._writes.append(CompletedWrite(action, Key.of(changed or body), changed))
        self._record_write_event("Normal", event and event.on_success, name=name)

    def _record_write_event(self, kind, texts, **values):
        if texts and texts[0]:
            self.events.append((kind, texts[0], texts[1].format(**values)))


_EFFECTS = {
    Create: FakeApiServer._create,
    Delete: FakeApiServer._delete,
    Update: FakeApiServer._update,
    Adopt: FakeApiServer._adopt,
    Release: FakeApiServer._release,
    RecordEvent: FakeApiServer._record_action_event,
    Confirm: FakeApiServer._confirm,
    Patch: FakeApiServer._patch,
    SlowStart: FakeApiServer._slow_start,
    RemoveFinalizer: FakeApiServer._remove_finalizer,
}


def _apply_patch(resource, present, action):
    if action.kind == "merge":
        return json_merge.apply(present, action.body)
    kind = _types().kind(resource.api_version, resource.kind)
    return strategic.apply(present, action.body, kind)


@cache
def _types():
    return builtin.load()


def _key(tree):
    return meta.namespace(tree), meta.name(tree)
