"""Jobs with random events: never more pods than allowed, and each pod counted once, also after crashes."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mockube.apimachinery import meta
from tests.support.controllers.jobs import Jobs, index_of

KEY = ("default", "j")
choices = st.integers(0, 1000)
indexing = st.sampled_from(["Indexed", "NonIndexed"])


class Life(RuleBasedStateMachine):
    """A Job whose pods succeed, fail and are deleted; its controller crashes after any of its plans."""

    @initialize(parallelism=st.integers(0, 5), completions=st.integers(1, 6), mode=indexing)
    def begin(self, parallelism, completions, mode):
        self.jobs = Jobs(
            parallelism=parallelism, completions=completions, completionMode=mode, backoffLimit=1000
        )
        self.ended = {}
        """The exit code of each pod that has ended by itself while it was tracked, by uid."""
        self.maximum = 0

    @rule()
    def the_controller_looks(self):
        self.jobs.sync()

    @rule(plans=st.integers(0, 4))
    def the_controller_dies(self, plans):
        plan = self.jobs.plan(KEY)
        for _ in range(plans):
            if plan is not None:
                plan = self.jobs.execute_one(plan, KEY)
        self.jobs.memories.clear()

    @rule(chosen=choices, code=st.integers(0, 1))
    def a_pod_ends(self, chosen, code):
        if self.jobs.active:
            pod = self.jobs.active[chosen % len(self.jobs.active)]
            self.ended[meta.uid(pod)] = (code, pod)
            self.jobs.end(pod, code)

    @rule(chosen=choices)
    def a_finished_pod_is_deleted(self, chosen):
        """Its finalizer keeps it until it is counted."""
        ended = [pod for pod in self.jobs.pods if meta.uid(pod) in self.ended]
        if ended:
            self.jobs.delete(ended[chosen % len(ended)])
            self.jobs.collect()

    @rule(parallelism=st.integers(0, 5))
    def the_user_changes_the_parallelism(self, parallelism):
        self.jobs.set(parallelism=parallelism)

    @rule(suspend=st.booleans())
    def the_user_suspends_or_resumes(self, suspend):
        self.jobs.set(suspend=suspend)

    @rule(seconds=st.sampled_from([1, 15, 700]))
    def time_passes(self, seconds):
        self.jobs.pass_time(seconds)

    # --- invariants

    @invariant()
    def no_more_pods_are_made_than_may_run(self):
        if hasattr(self, "jobs"):
            maximum = max(self.jobs.job["spec"]["parallelism"], self.maximum)
            self.maximum = len(self.jobs.active)
            assert len(self.jobs.active) <= maximum

    @invariant()
    def no_pod_is_counted_twice(self):
        if hasattr(self, "jobs"):
            counts = self.jobs.counts
            assert counts["succeeded"] <= len(self._succeeded_pods())
            assert counts["failed"] <= sum(code == 1 for code, _ in self.ended.values())

    def teardown(self):
        """The Job ends, and all ended pods are counted."""
        if hasattr(self, "jobs"):
            self.jobs.set(suspend=False, parallelism=5)
            for _ in range(100):
                self.jobs.settle()
                for pod in self.jobs.active:
                    self.ended[meta.uid(pod)] = (0, pod)
                    self.jobs.end(pod)
                self.jobs.pass_time(700)
                if self.jobs.conditions[-1:] and self.jobs.conditions[-1][0] == "Complete":
                    break
            assert self.jobs.conditions[-1][0] == "Complete"
            assert self.jobs.tracked == []
            assert self.jobs.counts["succeeded"] == len(self._succeeded_pods())
            assert self.jobs.counts["failed"] == sum(code == 1 for code, _ in self.ended.values())

    def _succeeded_pods(self):
        """Return the pods that succeeded, or their indexes."""
        done = [pod for code, pod in self.ended.values() if code == 0]
        if self.jobs.job["spec"]["completionMode"] == "Indexed":
            return {index_of(pod) for pod in done}
        return done


TestJobs = pytest.mark.timeout(300)(Life.TestCase)
TestJobs.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
