"""The objects of a server, and their creations and deletions, read without a request to its API."""

import re
from collections import Counter

import orjson

from mockube.apiserver.storage.recent_changes import ChangeKind

UNCOUNTED = {"events", "leases"}
"""Resources whose number may differ if things take longer."""
OFTEN_ANEW = {"volumeattachments"}
"""Resources whose creations and deletions depend on where pods are placed, which is random."""
_RANDOM = re.compile(
    rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
    rb"|\d+\.\d+\.\d+\.\d+(?:/\d+)?"
    rb"|(?<=[-\"])[bcdfghjklmnpqrstvwxz2456789]{5}(?=[-\"])"
    rb"|(?<=node-)\d+"
    rb"|(?<=mockube://)[0-9a-f]{64}"  # of a container, by the uid of its pod
)
_OWN = ("uid", "resourceVersion", "generation", "managedFields")
"""Fields of metadata that count writes, or are random."""
_TRIGGERED = "endpoints.kubernetes.io/last-change-trigger-time"
"""Only present where the change was observed."""

_GATEWAY = ("ConfigMap", "mockube-kubelets")
"""Its value contains the port and the certificate of each manager."""


class Census:
    """Counts changes of a running `ApiServer`, from now on."""

    def __init__(self, server):
        backend = server.registry
        self._resource_caches = {
            f"{name.resource}.{name.group}".rstrip("."): backend.watch_cache.resource_cache(
                backend.layout.prefix(row)
            )
            for name, row in backend.rows.items()
            if name.resource not in UNCOUNTED
        }
        self.came = Counter()
        self.went = Counter()
        for name, resource_cache in self._resource_caches.items():
            resource_cache.watchers.add(_Watcher(name, resource_cache.prefix, self))

    def all(self, resource):
        return [orjson.loads(stored.value) for stored in self._resource_caches[resource]]

    def one(self, resource, name):
        return next((tree for tree in self.all(resource) if tree["metadata"]["name"] == name), None)

    def state(self):
        """Return all objects, without values that depend on chance and time."""
        return {
            name: sorted(_comparable_tree(stored.value) for stored in resource_cache)
            for name, resource_cache in self._resource_caches.items()
            if len(resource_cache)
        }


class _Watcher:
    def __init__(self, name, prefix, census):
        self.prefix = prefix
        self._name = name
        self._census = census

    def handle_change(self, change):
        if self._name.partition(".")[0] in OFTEN_ANEW:
            return
        if change.kind is ChangeKind.ADDED:
            self._census.came[self._name] += 1
        elif change.kind is ChangeKind.DELETED:
            self._census.went[self._name] += 1


def _comparable_tree(value):
    tree = orjson.loads(value)
    for field in _OWN:
        tree["metadata"].pop(field, None)
    annotations = tree["metadata"].pop("annotations", {})
    tree["annotations"] = {name: value for name, value in annotations.items() if name != _TRIGGERED}
    if (tree["kind"], tree["metadata"]["name"]) == _GATEWAY:
        tree["data"] = sorted(tree["data"])
    status = tree.get("status") or {}
    status.pop("observedGeneration", None)
    if tree["kind"] == "Node":
        status.pop("images", None)  # a kubelet reports them some time after the pulls
    if "conditions" in status:
        status["conditions"].sort(
            key=lambda condition: condition["type"]
        )  # they are in the order of their last change
    return _RANDOM.sub(b"?", orjson.dumps(tree, option=orjson.OPT_SORT_KEYS)).decode()
