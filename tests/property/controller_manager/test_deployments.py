"""Deployments with random events: a rollout stays within its limits and completes.

Both controllers and the kubelet run in random order; users change the spec in between. Pods become ready
on the kubelet's decision, and in one of the state machines they fail too.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mockube.apimachinery import meta
from mockube.controller_manager.client.kinds import PODS, REPLICA_SETS
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.deployment.state import DeploymentView
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET
from tests.support.controllers.deployments import RECREATE, Cluster, is_ready, rolling

replicas = st.integers(0, 12)
images = st.sampled_from(["a:1", "a:2", "a:3"])
posts = st.one_of(st.integers(0, 5), st.sampled_from(["0%", "10%", "25%", "60%", "100%"]))
strategies = st.one_of(st.just(RECREATE), st.builds(rolling, posts, posts))
choices = st.integers(0, 1000)


class Life(RuleBasedStateMachine):
    """The rules of every state machine, for a cluster without failures."""

    @initialize(count=replicas, strategy=strategies)
    def begin(self, count, strategy):
        self.cluster = Cluster().deploy(replicas=count, strategy=strategy, progressDeadlineSeconds=60)
        self.cluster.settle()

    @property
    def view(self):
        return DeploymentView(self.cluster.web)

    # --- the controllers

    @rule()
    def the_deployment_controller_looks(self):
        sizes, ready = self.cluster.sizes, self.promised_ready()
        self.cluster.roll_on()
        if not self.view.is_paused:
            self.check_surge(sizes)
            self.check_availability(ready)

    @rule(chosen=choices)
    def a_replicaset_controller_looks(self, chosen):
        names = self.cluster.names(REPLICA_SETS)
        if names:
            self.cluster.turn(REPLICA_SET, names[chosen % len(names)])

    def promised_ready(self):
        """Ready pods that stay when all ReplicaSets have their new sizes."""
        return sum(min(it["spec"]["replicas"], self.ready_pods_of(it)) for it in self.cluster.sets)

    def ready_pods_of(self, replica_set):
        return sum(meta.is_controlled_by(pod, replica_set) for pod in self.cluster.ready_pods)

    def check_surge(self, before):
        """No ReplicaSet grows beyond the total limit; one that is beyond it already does not grow."""
        now = self.cluster.sizes
        assert sum(now.values()) <= max(self.view.max_replicas, sum(before.values()))

    def check_availability(self, before):
        """The controller's actions remove no ready pod that must stay."""
        if self.view.is_rolling_update:
            assert self.promised_ready() >= min(before, self.view.min_available)

    # --- the kubelet

    @rule()
    def pods_end_that_are_to_end(self):
        self.cluster.finish()

    @rule(chosen=choices)
    def a_pod_becomes_ready(self, chosen):
        waiting = [pod for pod in self.cluster.pods if not is_ready(pod)]
        if waiting:
            self.cluster.run(waiting[chosen % len(waiting)])

    @rule()
    def all_pods_become_ready(self):
        self.cluster.run_all()

    # --- invariants

    @invariant()
    def each_version_has_one_set_and_one_number(self):
        images_of_sets = [*self.cluster.revisions]
        assert len(images_of_sets) == len(self.cluster.sets)
        numbers = [*self.cluster.revisions.values()]
        assert len({*numbers}) == len(numbers)

    def teardown(self):
        """Without further events, the state converges to the desired pods, and then nothing is written."""
        if not hasattr(self, "cluster"):
            return
        if self.view.is_paused:
            self.cluster.resume()
        self.cluster.settle(rounds=200)
        image = self.cluster.web["spec"]["template"]["spec"]["containers"][0]["image"]
        sizes = self.cluster.sizes
        assert sizes.pop(image) == self.view.replicas == len(self.cluster.ready_pods)
        assert not any(sizes.values())
        assert self.cluster.conditions["Progressing"] == ("True", "NewReplicaSetAvailable")
        for controller in (DEPLOYMENT, REPLICA_SET):
            assert not self.cluster.plan_of(controller, self.name_of_object(controller)).actions

    def name_of_object(self, controller):
        return "web" if controller is DEPLOYMENT else meta.name(self.cluster.sets[-1])


class Well(Life):
    """Without failures and scaling: no ready pod is missing at any time."""

    @invariant()
    def enough_pods_are_ready(self):
        if self.view.is_rolling_update:
            assert len(self.cluster.ready_pods) >= self.view.min_available


class Steady(Well):
    """Versions come one after the other: there are never more pods than maxSurge allows."""

    @precondition(lambda self: self.is_at_rest())
    @rule(image=images)
    def a_version_is_released(self, image):
        self.cluster.release(image)

    def is_at_rest(self):
        status = self.cluster.status
        wanted = (self.view.replicas,) * 2
        return wanted == (status.get("updatedReplicas", 0), status.get("replicas", 0))

    @invariant()
    def there_are_no_more_pods_than_the_surge_lets_be(self):
        assert len(self.cluster.pods) <= self.view.max_replicas


class Hasty(Well):
    """Versions change in the middle of rollouts."""

    @rule(image=images)
    def a_version_is_released(self, image):
        self.cluster.release(image)


class Troubled(Life):
    """Pods fail, end and are deleted, and users scale, pause, and change the strategy."""

    @rule(seconds=st.integers(1, 100))
    def time_passes(self, seconds):
        self.cluster.clock.advance(seconds)

    @rule()
    def it_is_paused_or_resumed(self):
        if self.view.is_paused:
            self.cluster.resume()
        else:
            self.cluster.pause()

    @rule(image=images)
    def a_version_is_released(self, image):
        self.cluster.release(image)

    @rule(chosen=choices, phase=st.sampled_from(["Running", "Failed"]))
    def a_pod_fails(self, chosen, phase):
        if self.cluster.pods:
            self.cluster.run(self.cluster.pods[chosen % len(self.cluster.pods)], ready=False, phase=phase)

    @rule(chosen=choices)
    def somebody_takes_a_pod_away(self, chosen):
        if self.cluster.pods:
            self.cluster.remove(PODS, meta.name(self.cluster.pods[chosen % len(self.cluster.pods)]))

    @rule(count=replicas)
    def it_is_scaled(self, count):
        self.cluster.scale(count)

    @rule(strategy=strategies)
    def it_is_to_roll_in_another_way(self, strategy):
        self.cluster.set("strategy", strategy)

    @rule(limit=st.integers(0, 2))
    def fewer_versions_are_to_be_remembered(self, limit):
        self.cluster.set("revisionHistoryLimit", limit)

    @precondition(lambda self: len(self.cluster.sets) > 1)
    @rule(chosen=choices, size=st.integers(0, 5))
    def somebody_meddles_with_a_set(self, chosen, size):
        names = self.cluster.names(REPLICA_SETS)
        self.cluster.respecify(REPLICA_SETS, names[chosen % len(names)], ("replicas",), size)

    def teardown(self):
        for pod in [*self.cluster.pods] if hasattr(self, "cluster") else ():
            if not is_ready(pod) and (pod.get("status") or {}).get("phase") != "Failed":
                self.cluster.run(pod)
        super().teardown()


for machine in (Steady, Hasty, Troubled):
    machine.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)

TestHasty = pytest.mark.timeout(300)(Hasty.TestCase)
TestSteady = pytest.mark.timeout(300)(Steady.TestCase)
TestTroubled = pytest.mark.timeout(300)(Troubled.TestCase)
