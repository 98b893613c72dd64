"""When a pod that preempts others may be scheduled again."""

from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.scheduler.preemption_executor import PreemptionsInProgress
from tests.support.controllers.scheduler_objects import info, pod

PREEMPTOR = Key("default", "preemptor")


class Pods(dict):
    def get(self, namespace, name):
        return super().get((namespace, name))

    def put(self, tree):
        self["default", tree["metadata"]["name"]] = PodView.of(tree)


def begun(victim):
    pods = Pods()
    pods.put(victim)
    preemptions = PreemptionsInProgress(pods)
    preemptions.begin(PREEMPTOR)
    return preemptions, pods


def test_pod_is_blocked_from_the_first_eviction_to_the_end_of_the_preemption():
    preemptions, _ = begun(pod("victim"))
    assert preemptions.is_blocked(PREEMPTOR)
    assert not preemptions.is_blocked(Key("default", "other"))
    preemptions.end(PREEMPTOR)
    preemptions.end(PREEMPTOR)
    assert not preemptions.is_blocked(PREEMPTOR)


def test_pod_is_blocked_by_the_last_victim_until_it_terminates():
    preemptions, pods = begun(pod("victim"))
    preemptions.begin_last(PREEMPTOR, info(pod("victim")))
    assert preemptions.is_blocked(PREEMPTOR)
    pods.put(pod("victim", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert not preemptions.is_blocked(PREEMPTOR)


def test_pod_is_not_blocked_by_another_pod_with_the_name_of_its_last_victim():
    preemptions, pods = begun(pod("victim"))
    preemptions.begin_last(PREEMPTOR, info(pod("victim")))
    pods.put(pod("victim", metadata={"uid": "another"}))
    assert not preemptions.is_blocked(PREEMPTOR)
    pods.clear()
    assert not preemptions.is_blocked(PREEMPTOR)
