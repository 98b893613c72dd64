"""What happens to sets of any kind in any order, for hypothesis: users, machines and time take turns with the controller."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.support.controllers.statefulsets import WEB


class SetStateMachine(RuleBasedStateMachine):
    """The controller is asked at any moment, and every plan is checked before it is carried out."""

    sets = None
    """The world with the set, which the first rule makes."""

    def check(self):
        """What holds of every plan."""
        raise NotImplementedError

    def end(self):
        """What holds once everybody else rests."""
        raise NotImplementedError

    @rule()
    def decide(self):
        self.check()
        _, error = self.sets.reconcile(WEB)
        assert error is None

    @rule(replicas=st.integers(0, 4))
    def scale(self, replicas):
        self.sets.scale(replicas)

    @rule()
    def run_all(self):
        self.sets.run_all()

    @rule(rounds=st.integers(1, 12))
    def run_rounds(self, rounds):
        for _ in range(rounds):
            self.decide()
            self.sets.run_all()

    @rule()
    def wait(self):
        self.sets.clock.advance(5)

    def teardown(self):
        self.end()


class OrdinalSetStateMachine(SetStateMachine):
    """Of sets whose pods have numbers."""

    @rule(at=st.integers(0, 9))
    def lose(self, at):
        if self.sets.pod(at) is not None:
            self.sets.remove_pod(at)

    @rule()
    def finish(self):
        self.sets.finish()
