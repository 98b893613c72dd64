"""CloneSets with actions of users and kubelets in any order."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from mockube.apimachinery import meta
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import Create, Delete
from mockube.packs.kruise.controllers.cloneset.diffs import PodCounts, diffs
from mockube.packs.kruise.controllers.cloneset.spec import CloneSetLimits, CloneSetView
from mockube.packs.kruise.inplace.update import is_in_service
from tests.packs.kruise.support.clonesets import WEB, CloneSetHarness, claim_template
from tests.support.controllers.set_state_machines import SetStateMachine

AMOUNTS = st.sampled_from([0, 1, 2, "30%", "50%", "100%"])
TYPES = st.sampled_from(["ReCreate", "InPlaceIfPossible"])
IMAGES = st.sampled_from(["a:1", "a:2", "a:3"])


@st.composite
def strategies(draw):
    unavailable, surge = draw(AMOUNTS), draw(st.sampled_from([0, 1, "50%"]))
    if not surge and not unavailable:
        unavailable = 1  # the server refuses a set that could never be updated
    return {
        "type": draw(TYPES),
        "maxUnavailable": unavailable,
        "maxSurge": surge,
        "partition": draw(st.sampled_from([0, 1, 3, "40%", "100%"])),
        "paused": draw(st.sampled_from([False, False, False, True])),
    }


@st.composite
def specs(draw):
    hold = {"labelsHandler": {"hold": "true"}, "markPodNotReady": draw(st.booleans())}
    hook = {"preDelete": hold} if draw(st.booleans()) else {}
    return {
        "replicas": draw(st.integers(0, 5)),
        "updateStrategy": draw(strategies()),
        "scaleStrategy": {"disablePVCReuse": draw(st.booleans())},
        "volumeClaimTemplates": [claim_template()] if draw(st.booleans()) else [],
        "minReadySeconds": draw(st.sampled_from([0, 5])),
        "lifecycle": hook,
    }


class CloneSetStateMachine(SetStateMachine):
    @initialize(spec=specs())
    def create_clone_set(self, spec):
        self.sets = self.clones = CloneSetHarness(**spec)
        self.seen = set()

    def check(self):
        check(self.clones, self.seen)

    def end(self):
        check_end_state(self.clones)

    @rule(image=IMAGES, grace=st.sampled_from([30, 31]))
    def update_template(self, image, grace):
        self.clones.roll(image, terminationGracePeriodSeconds=grace)

    @rule(strategy=strategies())
    def change_update_strategy(self, strategy):
        self.clones.strategy(**strategy)

    @rule(at=st.integers(0, 5))
    def mark_for_deletion(self, at):
        for name in self.clones.pod_names[at : at + 1]:
            self.clones.specify(name)

    @rule(at=st.integers(0, 5), hold=st.sampled_from(["true", "no"]))
    def set_hold_label(self, at, hold):
        for name in self.clones.pod_names[at : at + 1]:
            self.clones.label(name, hold=hold)

    @rule(at=st.integers(0, 5), ready=st.booleans())
    def run_pod(self, at, ready):
        for name in self.clones.pod_names[at : at + 1]:
            self.clones.run(name, ready=ready)

    @rule(at=st.integers(0, 5))
    def lose_pod(self, at):
        for name in self.clones.pod_names[at : at + 1]:
            self.clones.lose(name)

    @invariant()
    def each_pod_has_its_claims(self):
        if self.clones.set["spec"]["volumeClaimTemplates"]:
            assert {f"data-{name}" for name in self.clones.pod_names} <= {*self.clones.claims}


def check(clones, seen):
    """Invariants of every plan: names are free and, unless claims are reused, new; and there is no surplus pod."""
    view = CloneSetView.of(clones.set)
    plan = clones.plan(WEB)
    made = [meta.name(body) for it in _of(plan, Create) for body in it.bodies]
    gone = [ref.key.name for it in _of(plan, Delete) for ref in it.objects]
    assert len(made) == len({*made})
    assert len(gone) == len({*gone})
    assert not {*made} & {*clones.names(PODS)}
    assert not made or not gone, "one or the other"
    assert not any(meta.is_deleting(clones.get(PODS, name)) for name in gone)
    if not view.claim_templates:
        assert not {*made} & seen
    seen |= {*made}
    if made:
        assert len(clones.pods) + len(made) <= view.limits.replicas + view.limits.max_surge


def _of(plan, kind):
    return [it for it in plan.actions if isinstance(it, kind) and it.resource is PODS]


def check_end_state(clones):
    """Once all other actors are idle and all pods run, the set reaches its desired state and becomes idle."""
    for name in clones.pod_names:
        clones.label(name, hold="no")
    for _ in range(3):
        clones.settle()
        clones.clock.advance(60)
    clones.settle()
    view = CloneSetView.of(clones.set)
    replicas = view.limits.replicas
    assert clones.count("replicas", "availableReplicas") == [replicas, replicas]
    assert {*clones.states} <= {"Normal"}
    if not view.paused:
        assert clones.status["updatedReplicas"] >= clones.status.get("expectedUpdatedReplicas", 0)
    plan = clones.plan(WEB)
    assert (plan.actions, plan.last(None)) == ((), ())


TestCloneSet = CloneSetStateMachine.TestCase
TestCloneSet.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


@given(spec=specs(), change=st.sampled_from([{}, {"terminationGracePeriodSeconds": 5}]))
@settings(max_examples=80, deadline=None)
def test_clone_set_update_respects_limits(spec, change):
    """Available, existing and updated pods stay within the limits at every moment of an update."""
    clones = CloneSetHarness(**{**spec, "minReadySeconds": 0, "lifecycle": {}})
    clones.settle()
    clones.roll("a:2", **change)
    limits = CloneSetView.of(clones.set).limits
    for _ in range(8 * limits.replicas + 8):
        clones.round()
        assert _serving(clones) >= limits.replicas - limits.max_unavailable
        assert len(clones.pods) <= limits.replicas + limits.max_surge
        assert clones.images.count("a:2") <= limits.replicas - limits.partition + limits.max_surge
        clones.run_all()
        clones.round()
        assert _serving(clones) >= limits.replicas - limits.max_unavailable
    kept = limits.replicas if CloneSetView.of(clones.set).paused else limits.partition
    assert clones.images == ["a:1"] * kept + ["a:2"] * (limits.replicas - kept)
    assert clones.plan(WEB).actions == ()


def _serving(clones):
    return sum(is_in_service(PodView.of(pod), 0, clones.clock.now()) for pod in clones.pods)


tallies = st.builds(
    lambda preparing, active, named, unavailable: PodCounts(
        preparing_delete=preparing,
        active=active,
        to_delete=min(named, active),
        unavailable=min(unavailable, active - min(named, active)),
    ),
    *(st.integers(0, 6) for _ in range(4)),
)


@given(
    limits=st.builds(
        lambda replicas, partition, unavailable, surge, limit, excludes: CloneSetLimits(
            replicas=replicas,
            partition=min(partition, replicas),
            max_unavailable=unavailable,
            max_surge=surge,
            scale_max_unavailable=limit,
            excludes_preparing_delete=excludes,
        ),
        *(st.integers(0, 8) for _ in range(4)),
        st.none() | st.integers(0, 4),
        st.booleans(),
    ),
    new=tallies,
    old=tallies,
)
@settings(max_examples=400)
def test_clone_set_numbers_stay_within_bounds(limits, new, old):
    found = diffs(limits, new, old)
    assert 0 <= found.surge_old <= found.surge <= limits.max_surge
    assert not found.scale_up or not found.scale_down
    assert 0 <= found.scale_up_limit <= found.scale_up
    assert 0 <= found.update <= old.active
    assert found.update <= max(limits.replicas - limits.partition - new.active, 0)
    pods = new + old
    counted = pods.active if limits.excludes_preparing_delete else pods.total
    assert counted + found.scale_up <= max(limits.replicas + found.surge, counted)
    unavailable = pods.preparing_delete + pods.unavailable
    left = pods.total - unavailable - found.delete_ready_limit
    assert not found.delete_ready_limit or left >= limits.replicas - limits.max_unavailable
