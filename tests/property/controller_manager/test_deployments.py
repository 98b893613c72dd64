"""Deployments with random events: a rollout stays within its limits and completes.

Both controllers and the kubelet run in random order; users change the spec in between. Pods become ready
on the kubelet's decision, and in one of the state machines they fail too.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mockube.apimachinery import meta
from mockube.client.kinds import PODS, REPLICA_SETS
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.deployment.state import DeploymentView
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET
from tests.support.controllers.deployments import RECREATE, DeploymentHarness, is_ready, rolling

replicas = st.integers(0, 12)
images = st.sampled_from(["a:1", "a:2", "a:3"])
posts = st.one_of(st.integers(0, 5), st.sampled_from(["0%", "10%", "25%", "60%", "100%"]))
strategies = st.one_of(st.just(RECREATE), st.builds(rolling, posts, posts))
choices = st.integers(0, 1000)


class DeploymentStateMachine(RuleBasedStateMachine):
    """The rules of every state machine, for a cluster without failures."""

    @initialize(count=replicas, strategy=strategies)
    def create_deployment(self, count, strategy):
        self.cluster = DeploymentHarness().deploy(
            replicas=count, strategy=strategy, progressDeadlineSeconds=60
        )
        self.cluster.settle()

    @property
    def view(self):
        return DeploymentView(self.cluster.web)

    # --- the controllers

    @rule()
    def reconcile_deployment(self):
        sizes, ready = self.cluster.sizes, self.ready_pods_after_scaling()
        self.cluster.roll_on()
        if not self.view.is_paused:
            self.check_surge(sizes)
            self.check_availability(ready)

    @rule(chosen=choices)
    def reconcile_replica_set(self, chosen):
        names = self.cluster.names(REPLICA_SETS)
        if names:
            self.cluster.reconcile_once(REPLICA_SET, names[chosen % len(names)])

    def ready_pods_after_scaling(self):
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
            assert self.ready_pods_after_scaling() >= min(before, self.view.min_available)

    # --- the kubelet

    @rule()
    def finish_terminating_pods(self):
        self.cluster.finish()

    @rule(chosen=choices)
    def make_pod_ready(self, chosen):
        waiting = [pod for pod in self.cluster.pods if not is_ready(pod)]
        if waiting:
            self.cluster.run(waiting[chosen % len(waiting)])

    @rule()
    def make_all_pods_ready(self):
        self.cluster.run_all()

    # --- invariants

    @invariant()
    def each_template_has_one_replica_set_and_one_revision(self):
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


class DeploymentWithoutFailures(DeploymentStateMachine):
    """Without failures and scaling: no ready pod is missing at any time."""

    @invariant()
    def ready_pods_are_at_least_min_available(self):
        if self.view.is_rolling_update:
            assert len(self.cluster.ready_pods) >= self.view.min_available


class SequentialRollouts(DeploymentWithoutFailures):
    """Versions come one after the other: there are never more pods than maxSurge allows."""

    @precondition(lambda self: self.is_rollout_complete())
    @rule(image=images)
    def update_image(self, image):
        self.cluster.release(image)

    def is_rollout_complete(self):
        status = self.cluster.status
        wanted = (self.view.replicas,) * 2
        return wanted == (status.get("updatedReplicas", 0), status.get("replicas", 0))

    @invariant()
    def pods_do_not_exceed_max_surge(self):
        assert len(self.cluster.pods) <= self.view.max_replicas


class OverlappingRollouts(DeploymentWithoutFailures):
    """Versions change in the middle of rollouts."""

    @rule(image=images)
    def update_image(self, image):
        self.cluster.release(image)


class DeploymentWithFailures(DeploymentStateMachine):
    """Pods fail, end and are deleted, and users scale, pause, and change the strategy."""

    @rule(seconds=st.integers(1, 100))
    def advance_clock(self, seconds):
        self.cluster.clock.advance(seconds)

    @rule()
    def pause_or_resume(self):
        if self.view.is_paused:
            self.cluster.resume()
        else:
            self.cluster.pause()

    @rule(image=images)
    def update_image(self, image):
        self.cluster.release(image)

    @rule(chosen=choices, phase=st.sampled_from(["Running", "Failed"]))
    def fail_pod(self, chosen, phase):
        if self.cluster.pods:
            self.cluster.run(self.cluster.pods[chosen % len(self.cluster.pods)], ready=False, phase=phase)

    @rule(chosen=choices)
    def delete_pod(self, chosen):
        if self.cluster.pods:
            self.cluster.remove(PODS, meta.name(self.cluster.pods[chosen % len(self.cluster.pods)]))

    @rule(count=replicas)
    def scale(self, count):
        self.cluster.scale(count)

    @rule(strategy=strategies)
    def change_strategy(self, strategy):
        self.cluster.set("strategy", strategy)

    @rule(limit=st.integers(0, 2))
    def reduce_revision_history_limit(self, limit):
        self.cluster.set("revisionHistoryLimit", limit)

    @precondition(lambda self: len(self.cluster.sets) > 1)
    @rule(chosen=choices, size=st.integers(0, 5))
    def scale_replica_set_directly(self, chosen, size):
        names = self.cluster.names(REPLICA_SETS)
        self.cluster.respecify(REPLICA_SETS, names[chosen % len(names)], ("replicas",), size)

    def teardown(self):
        for pod in [*self.cluster.pods] if hasattr(self, "cluster") else ():
            if not is_ready(pod) and (pod.get("status") or {}).get("phase") != "Failed":
                self.cluster.run(pod)
        super().teardown()


for machine in (SequentialRollouts, OverlappingRollouts, DeploymentWithFailures):
    machine.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)

TestOverlappingRollouts = pytest.mark.timeout(300)(OverlappingRollouts.TestCase)
TestSequentialRollouts = pytest.mark.timeout(300)(SequentialRollouts.TestCase)
TestDeploymentWithFailures = pytest.mark.timeout(300)(DeploymentWithFailures.TestCase)
