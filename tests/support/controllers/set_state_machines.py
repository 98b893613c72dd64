"""Hypothesis state machines for sets of any kind: users, kubelets, time and the controller act in any order."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.support.controllers.statefulsets import WEB


class SetStateMachine(RuleBasedStateMachine):
    """The controller can run at any moment, and every plan is checked before it is executed."""

    sets = None
    """The harness with the set, which the first rule creates."""

    def check(self):
        """Check the invariants of every plan."""
        raise NotImplementedError

    def end(self):
        """Check the end state once all other actors are idle."""
        raise NotImplementedError

    @rule()
    def reconcile(self):
        self.check()
        _, error = self.sets.reconcile(WEB)
        assert error is None

    @rule(replicas=st.integers(0, 4))
    def scale(self, replicas):
        self.sets.scale(replicas)

    @rule()
    def run_all_pods(self):
        self.sets.run_all()

    @rule(rounds=st.integers(1, 12))
    def reconcile_repeatedly(self, rounds):
        for _ in range(rounds):
            self.reconcile()
            self.sets.run_all()

    @rule()
    def advance_clock(self):
        self.sets.clock.advance(5)

    def teardown(self):
        self.end()


class OrdinalSetStateMachine(SetStateMachine):
    """For sets whose pods have ordinals."""

    @rule(at=st.integers(0, 9))
    def remove_pod(self, at):
        if self.sets.pod(at) is not None:
            self.sets.remove_pod(at)

    @rule()
    def finish_terminating_pods(self):
        self.sets.finish()
