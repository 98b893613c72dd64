"""StatefulSets with actions of users and kubelets in any order."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from mockube.apimachinery import meta
from mockube.client.kinds import PODS, STATEFUL_SETS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import EMPTY_PLAN, Create, Delete
from mockube.controller_manager.workloads.stateful.spec import SetView
from mockube.controller_manager.workloads.stateful.state import by_ordinal
from tests.support.controllers.set_state_machines import OrdinalSetStateMachine
from tests.support.controllers.statefulsets import WEB, StatefulSetHarness, claim_template

LIMITS = st.sampled_from([None, 1, 2, "50%"])


@st.composite
def specs(draw):
    rolling = {"partition": draw(st.integers(0, 3))}
    limit = draw(LIMITS)
    rolling |= {} if limit is None else {"maxUnavailable": limit}
    kept = st.sampled_from(["Delete", "Retain"])
    return {
        "replicas": draw(st.integers(0, 4)),
        "ordinals": {"start": draw(st.integers(0, 2))},
        "podManagementPolicy": draw(st.sampled_from(["OrderedReady", "Parallel"])),
        "updateStrategy": draw(
            st.sampled_from([{"type": "OnDelete"}, {"type": "RollingUpdate", "rollingUpdate": rolling}])
        ),
        "volumeClaimTemplates": [claim_template()] if draw(st.booleans()) else [],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": draw(kept), "whenScaled": draw(kept)},
        "minReadySeconds": draw(st.sampled_from([0, 5])),
    }


class StatefulSetStateMachine(OrdinalSetStateMachine):
    @initialize(spec=specs())
    def create_stateful_set(self, spec):
        self.sets = StatefulSetHarness(**spec)

    def check(self):
        check(self.sets)

    def end(self):
        check_end_state(self.sets)

    @rule(image=st.sampled_from(["a:1", "a:2", "a:3"]))
    def update_template(self, image):
        self.sets.roll(image)

    @rule(start=st.integers(0, 2))
    def change_start_ordinal(self, start):
        self.sets.respecify(STATEFUL_SETS, "web", ("ordinals",), {"start": start})

    @rule(
        at=st.integers(0, 6), ready=st.booleans(), phase=st.sampled_from(["Running", "Failed", "Succeeded"])
    )
    def run_pod(self, at, ready, phase):
        if self.sets.pod(at) is not None:
            self.sets.run(at, ready=ready and phase == "Running", phase=phase)

    @invariant()
    def each_pod_has_its_own_ordinal(self):
        view = SetView.of(STATEFUL_SETS, self.sets.set)
        slots, condemned = by_ordinal(view, map(PodView.of, self.sets.all(PODS)))
        assert len(self.sets.pods) == len([it for it in slots if it.pod]) + len(condemned)


def check(sets):
    """Invariants of every plan: names are free, and in ordered mode nothing follows a pod that is not available."""
    view = SetView.of(STATEFUL_SETS, sets.set)
    plan = sets.plan(WEB)
    made = [meta.name(body) for it in _of(plan, Create) for body in it.bodies]
    gone = [ref.key.name for it in _of(plan, Delete) for ref in it.objects]
    assert len(made) == len({*made})
    assert len(gone) == len({*gone})
    assert not {*made} & {*sets.pods}, "a second pod of an ordinal"
    assert not any(meta.is_deleting(sets.get(PODS, name)) for name in gone)
    if view.parallel:
        return
    assert len(made) <= 1
    for name in made:
        assert all(_is_available(sets, view, before) for before in range(view.start, _ordinal(name)))
    assert len(gone) <= (1 if view.max_unavailable is None else 4)
    assert sum(_ordinal(name) not in view.ordinals for name in gone) <= 1
    for name in gone:
        if _ordinal(name) not in view.ordinals:
            assert all(_is_available(sets, view, wanted) for wanted in view.ordinals)
            higher = [
                it for it in map(_ordinal, sets.pods) if it > _ordinal(name) and it not in view.ordinals
            ]
            assert not higher


def _of(plan, kind):
    return [it for it in plan.actions if isinstance(it, kind) and it.resource is PODS]


def _ordinal(name):
    return int(name.rpartition("-")[2])


def _is_available(sets, view, ordinal):
    pod = sets.pod(ordinal)
    if pod is None:
        return False
    seen = PodView.of(pod)
    return not seen.deleting and seen.is_available(view.min_ready_seconds, sets.clock.now())


def check_end_state(sets):
    """Once all other actors are idle and all pods run, the set reaches its desired state and becomes idle."""
    for name in sets.pods:
        if (sets.get(PODS, name).get("status") or {}).get("phase") == "Running":
            sets.run(_ordinal(name))
    _remove_ended_pods_that_wait(sets)
    for _ in range(10):  # no more pods than that become available one after the other
        sets.settle()
        sets.clock.advance(60)
    sets.settle()
    view = SetView.of(STATEFUL_SETS, sets.set)
    assert sets.pods == sorted(f"web-{ordinal}" for ordinal in view.ordinals)
    assert (sets.status["replicas"], sets.status["readyReplicas"]) == (view.replicas, view.replicas)
    plan = sets.plan(WEB)
    assert (plan.actions, plan.last(None)) == (EMPTY_PLAN.actions, ())


def _remove_ended_pods_that_wait(sets):
    """In order, a set deletes a condemned pod that has ended only if all before it are available, as upstream's does.

    Of two such pods the higher waits for the lower for ever, until a user deletes one.
    """
    view = SetView.of(STATEFUL_SETS, sets.set)
    if view.parallel:
        return
    for name in sets.pods:
        if _ordinal(name) not in view.ordinals and PodView.of(sets.get(PODS, name)).is_terminal:
            sets.remove_pod(_ordinal(name))


TestStatefulSet = StatefulSetStateMachine.TestCase
TestStatefulSet.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


@given(spec=specs(), image=st.sampled_from(["a:1", "a:2"]), replicas=st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_stateful_set_update_respects_max_unavailable(spec, image, replicas):
    sets = StatefulSetHarness(**{**spec, "replicas": replicas, "minReadySeconds": 0})
    sets.settle()
    sets.roll(image)
    allowed = _max_unavailable(SetView.of(STATEFUL_SETS, sets.set))
    for _ in range(4 * replicas + 2):
        sets.round()
        going = sum(meta.is_deleting(pod) for pod in sets.all(PODS))
        assert going + replicas - len(sets.pods) <= allowed
        sets.run_all()
    assert sets.plan(WEB).actions == ()


def _max_unavailable(view):
    if isinstance(view.max_unavailable, str):
        return max(view.replicas // 2, 1)
    return view.max_unavailable or 1
