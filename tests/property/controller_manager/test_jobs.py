"""Jobs with random events: never more pods than allowed, and each pod counted once, also after crashes."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mockube.apimachinery import meta
from tests.support.controllers.jobs import JobHarness, index_of

KEY = ("default", "j")
choices = st.integers(0, 1000)
indexing = st.sampled_from(["Indexed", "NonIndexed"])


class JobStateMachine(RuleBasedStateMachine):
    """A Job whose pods succeed, fail and are deleted; its controller crashes after any of its plans."""

    @initialize(parallelism=st.integers(0, 5), completions=st.integers(1, 6), mode=indexing)
    def create_job(self, parallelism, completions, mode):
        self.jobs = JobHarness(
            parallelism=parallelism, completions=completions, completionMode=mode, backoffLimit=1000
        )
        self.ended = {}
        """The exit code of each pod that has ended by itself while it was tracked, by uid."""
        self.maximum = 0

    @rule()
    def reconcile(self):
        self.jobs.sync()

    @rule(plans=st.integers(0, 4))
    def crash_controller(self, plans):
        plan = self.jobs.plan(KEY)
        for _ in range(plans):
            if plan is not None:
                plan = self.jobs.execute_one(plan, KEY)
        self.jobs.memories.clear()

    @rule(chosen=choices, code=st.integers(0, 1))
    def finish_pod(self, chosen, code):
        if self.jobs.active:
            pod = self.jobs.active[chosen % len(self.jobs.active)]
            self.ended[meta.uid(pod)] = (code, pod)
            self.jobs.end(pod, code)

    @rule(chosen=choices)
    def delete_finished_pod(self, chosen):
        """Its finalizer keeps it until it is counted."""
        ended = [pod for pod in self.jobs.pods if meta.uid(pod) in self.ended]
        if ended:
            self.jobs.delete(ended[chosen % len(ended)])
            self.jobs.collect()

    @rule(parallelism=st.integers(0, 5))
    def change_parallelism(self, parallelism):
        self.jobs.set(parallelism=parallelism)

    @rule(suspend=st.booleans())
    def suspend_or_resume(self, suspend):
        self.jobs.set(suspend=suspend)

    @rule(seconds=st.sampled_from([1, 15, 700]))
    def advance_clock(self, seconds):
        self.jobs.pass_time(seconds)

    # --- invariants

    @invariant()
    def active_pods_do_not_exceed_parallelism(self):
        if hasattr(self, "jobs"):
            maximum = max(self.jobs.job["spec"]["parallelism"], self.maximum)
            self.maximum = len(self.jobs.active)
            assert len(self.jobs.active) <= maximum

    @invariant()
    def each_pod_is_counted_once(self):
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


TestJobs = pytest.mark.timeout(300)(JobStateMachine.TestCase)
TestJobs.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
