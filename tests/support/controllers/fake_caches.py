"""Caches of given objects, as controllers read them; with minimal pods, services and nodes."""

from collections import Counter

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.schema import minors
from mockube.client.kinds import PODS


class FakeLister:
    def __init__(self, views, key_of, indexes, tallies):
        self._views = {key_of(view): view for view in views}
        self._indexes = indexes
        self._tallies = tallies

    def get(self, namespace, name):
        return self._views.get((namespace, name))

    def __len__(self):
        return len(self._views)

    def all(self):
        return [*self._views.values()]

    def in_namespace(self, namespace):
        return [view for key, view in self._views.items() if key[0] == namespace]

    def by_index(self, index, value):
        return [view for view in self._views.values() if value in self._indexes[index](view)]

    def index_counts(self, index):
        return Counter(value for view in self._views.values() for value in self._indexes[index](view))

    def class_counts(self, tally, group):
        places = [self._tallies[tally](view) for view in self._views.values()]
        return Counter(place[1] for place in places if place is not None and place[0] == group)


class FakeCaches:
    """`FakeCaches(objects)`: a mapping from resources to the objects that are in their caches."""

    def __init__(self, objects, indexes=None, tallies=None, *, minor=minors.NEWEST, gates=None):
        self.gates = gates or FeatureGates(minor)
        self._listers = {
            resource: FakeLister(
                map(resource.view, trees),
                _key_of_pod if resource is PODS else _key_of,
                (indexes or {}).get(resource, {}),
                (tallies or {}).get(resource, {}),
            )
            for resource, trees in objects.items()
        }

    def of(self, resource):
        return self._listers.get(resource) or FakeLister((), _key_of, {}, {})


def _key_of(tree):
    return tree["metadata"].get("namespace", ""), tree["metadata"]["name"]


def _key_of_pod(pod):
    return tuple(pod.key)
