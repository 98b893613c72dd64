"""The resources that controllers of all kinds watch, after definitions come, change and go."""

import pytest

from mockube.client.discovery import DiscoveredResource, Discovery
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.resources import Resource, whole_tree
from mockube.controller_manager.control.watched_kinds import WatchedKinds

VERBS = frozenset({"list", "watch"})


def resource(plural="widgets", version="v1", group="example.com"):
    return Resource(
        group=group,
        version=version,
        plural=plural,
        kind=plural.title(),
        namespaced=True,
        view=whole_tree,
        metadata_only=True,
    )


MAPS = resource("configmaps", group="")
WIDGETS = resource().group_resource


def discovery(*resources, failures=(), verbs=VERBS):
    found = (
        DiscoveredResource(resource=one, verbs=verbs, subresources=frozenset()) for one in (MAPS, *resources)
    )
    return Discovery(resources=tuple(found), failures=failures)


class FakeInformers:
    """Rows as `Informers` keeps them, without watches."""

    def __init__(self):
        self.rows = {CONFIG_MAPS.group_resource: CONFIG_MAPS}

    def row(self, one):
        return self.rows.setdefault(one.group_resource, one)

    def stop(self, row):
        if row is not CONFIG_MAPS and self.rows.get(row.group_resource) is row:
            del self.rows[row.group_resource]


@pytest.fixture
def informers():
    return FakeInformers()


def watched_kinds(informers):
    return WatchedKinds(informers, verbs=VERBS, ignored=())


def test_discovered_resource_is_new_once(informers):
    watched = watched_kinds(informers)
    widgets = resource()
    assert watched.update(discovery(widgets)) == [CONFIG_MAPS, widgets]
    assert watched.update(discovery(resource())) == []


def test_resource_that_is_no_longer_served_is_stopped(informers):
    watched = watched_kinds(informers)
    watched.update(discovery(resource()))
    assert watched.update(discovery()) == []
    assert WIDGETS not in watched
    assert WIDGETS not in informers.rows


def test_resource_that_is_served_again_is_new_for_each_controller(informers):
    """One controller may not have noticed that the resource was absent: another one stopped the informer."""
    first, second = watched_kinds(informers), watched_kinds(informers)
    for watched in (first, second):
        watched.update(discovery(resource()))
    first.update(discovery())
    again = resource()
    assert [row is again for row in first.update(discovery(again))] == [True]
    assert [row is again for row in second.update(discovery(resource()))] == [True]
    assert informers.rows[WIDGETS] is again


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(discovery(failures=("example.com/v1",)), id="its server is unavailable"),
        pytest.param(Discovery(resources=()), id="nothing was discovered"),
    ],
)
def test_resource_is_kept_when_discovery_is_incomplete(informers, found):
    watched = watched_kinds(informers)
    watched.update(discovery(resource()))
    watched.update(found)
    assert WIDGETS in watched
    assert WIDGETS in informers.rows
