"""Who follows a pod is woken by its changes and its output, and by no other ones."""

from types import SimpleNamespace

import pytest

from mockube.client.cache.store import Change
from mockube.client.podview import PodView
from mockube.kubelet.pod_versions import PodWatchers


def pod(name, uid="u"):
    return {"metadata": {"name": name, "namespace": "d", "uid": uid}}


def watchers(*pods):
    found = {(each["metadata"]["namespace"], each["metadata"]["name"]): PodView.of(each) for each in pods}
    return PodWatchers(SimpleNamespace(get=lambda *key: found.get(key)))


@pytest.mark.parametrize(
    ("wake", "is_woken"),
    [
        (lambda pods: pods.wake(pod("a")), True),
        (lambda pods: pods.wake(pod("a", "later")), True),
        (lambda pods: pods.wake(pod("b")), False),
        (lambda pods: pods.on_change(Change(None, PodView.of(pod("a")))), True),
        (lambda pods: pods.on_change(Change(PodView.of(pod("a")), None)), True),
        (lambda pods: pods.on_change(Change(None, PodView.of(pod("b")))), False),
    ],
)
def test_change_or_output_of_a_pod_wakes_all_that_follow_it(wake, is_woken):
    pods = watchers()
    with pods.subscribe(pod("a")) as first, pods.subscribe(pod("a")) as second:
        wake(pods)
        assert (first.is_set(), second.is_set()) == (is_woken, is_woken)


def test_follower_that_has_left_is_not_woken():
    pods = watchers()
    with pods.subscribe(pod("a")) as first:
        with pods.subscribe(pod("a")) as second:
            pass
        pods.wake(pod("a"))
    assert (first.is_set(), second.is_set()) == (True, False)
    assert not pods._events
    pods.wake(pod("a"))


def test_latest_version_is_that_of_the_same_pod():
    latest = {**pod("a"), "status": {}}
    pods = watchers(latest)
    assert pods.latest(pod("a")) == latest
    assert pods.latest(pod("a", "other")) is None
    assert pods.latest(pod("b")) is None
