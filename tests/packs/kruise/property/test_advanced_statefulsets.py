"""Advanced StatefulSets with actions of users and kubelets in any order."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from mockube.apimachinery import meta
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import Create, Delete, Patch
from mockube.packs.kruise.controllers.advancedstatefulset.controller import advanced_set_view
from mockube.packs.kruise.controllers.advancedstatefulset.strategy import UpdateStrategy
from mockube.packs.kruise.inplace import lifecycle, update
from tests.packs.kruise.support.advancedsets import AdvancedStatefulSetHarness, template
from tests.support.controllers.set_state_machines import OrdinalSetStateMachine
from tests.support.controllers.statefulsets import WEB, claim_template

RESERVED = st.lists(st.sampled_from([0, 1, 2, 4, "1-2", "3-4", "0-0"]), max_size=2)
IMAGES = st.sampled_from(["a:1", "a:2", "a:3"])
ORDINALS = st.integers(0, 9)
PRIORITY = {"orderPriority": [{"orderedKey": "statefulset.kubernetes.io/pod-name"}]}


@st.composite
def strategies(draw, *, parallel):
    if draw(st.integers(0, 7)) == 0:
        return {"type": "OnDelete"}
    rolling = {
        "partition": draw(st.integers(0, 3)),
        "podUpdatePolicy": draw(st.sampled_from(["ReCreate", "InPlaceIfPossible", "InPlaceOnly"])),
        "minReadySeconds": draw(st.sampled_from([0, 0, 5])),
        "inPlaceUpdateStrategy": {"gracePeriodSeconds": draw(st.sampled_from([0, 0, 3]))},
    }
    if parallel:
        rolling["maxUnavailable"] = draw(st.sampled_from([1, 2, "50%"]))
        if draw(st.booleans()):
            rolling["unorderedUpdate"] = {"priorityStrategy": draw(st.sampled_from([PRIORITY, {}]))}
    return {"type": "RollingUpdate", "rollingUpdate": rolling}


@st.composite
def specs(draw):
    parallel = draw(st.booleans())
    scaling = {"scaleStrategy": {"maxUnavailable": draw(st.sampled_from([1, 2]))}} if parallel else {}
    return {
        "replicas": draw(st.integers(0, 4)),
        "ordinals": {"start": draw(st.integers(0, 2))},
        "reserveOrdinals": draw(RESERVED),
        "template": template(),
        "podManagementPolicy": "Parallel" if parallel else "OrderedReady",
        "updateStrategy": draw(strategies(parallel=parallel)),
        "volumeClaimTemplates": [claim_template()] if draw(st.booleans()) else [],
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": draw(st.sampled_from(["Delete", "Retain"]))},
        **(scaling if draw(st.booleans()) else {}),
    }


class AdvancedStatefulSetStateMachine(OrdinalSetStateMachine):
    @initialize(spec=specs())
    def create_stateful_set(self, spec):
        self.sets = AdvancedStatefulSetHarness(**spec)

    def check(self):
        check(self.sets)

    def end(self):
        check_end_state(self.sets)

    @rule(reserved=RESERVED)
    def reserve_ordinals(self, reserved):
        self.sets.reserve(*reserved)

    @rule(image=IMAGES)
    def update_template(self, image):
        self.sets.change_spec("template", to=template(image))

    @rule(at=ORDINALS, ready=st.booleans(), phase=st.sampled_from(["Running", "Running", "Failed"]))
    def run_pod(self, at, ready, phase):
        if self.sets.pod(at) is not None:
            self.sets.run(at, ready=ready, phase=phase)

    @rule(at=ORDINALS)
    def mark_for_deletion(self, at):
        if self.sets.pod(at) is not None:
            self.sets.specify(at)


def check(sets):
    """Invariants of every plan."""
    owner = advanced_set_view(sets.set)
    plan = sets.plan(WEB)
    made = [meta.name(body) for it in _of(plan, Create) for body in it.bodies]
    gone = [ref.key.name for it in _of(plan, Delete) for ref in it.objects]
    assert len(made) == len({*made})
    assert len(gone) == len({*gone})
    assert not {*made} & {*sets.pods}, "a second pod of an ordinal"
    assert {*map(_ordinal, made)} <= {*owner.ordinals}, "an ordinal that is reserved, or not wanted"
    assert not any(meta.is_deleting(sets.get(PODS, name)) for name in gone)
    if not owner.parallel:
        assert len(made) + len([name for name in gone if _ordinal(name) not in owner.ordinals]) <= 1
    if owner.scale_limit is not None:
        assert len(made) <= owner.scale_limit
    check_limit(sets, owner, plan, gone)


def check_limit(sets, owner, plan, gone):
    """Of available pods, no more are taken down than maxUnavailable allows."""
    down = {_ordinal(name) for name in gone if PodView.of(sets.get(PODS, name)).phase != "Failed"}
    down |= {_ordinal(it.key.name) for it in _of(plan, Patch) if "spec" in it.body or it.subresource}
    before = {ordinal for ordinal in owner.ordinals if not _is_up(sets, owner, ordinal)}
    newly = (down & {*owner.ordinals}) - before
    limit = UpdateStrategy.of(sets.set["spec"]).max_unavailable
    assert len(newly) <= max(limit - len(before), 0)


def _is_up(sets, owner, ordinal):
    pod = sets.pod(ordinal)
    if pod is None:
        return False
    seen = PodView.of(pod)
    is_ready = seen.phase == "Running" and seen.is_available(owner.min_ready_seconds, sets.clock.now())
    return not seen.deleting and is_ready and lifecycle.is_settled(seen) and update.is_finished(seen)


def _of(plan, kind):
    return [it for it in plan.actions if isinstance(it, kind) and it.resource is PODS]


def _ordinal(name):
    return int(name.rpartition("-")[2])


def check_end_state(sets):
    """Once all other actors are idle and all pods run, the set reaches its desired state and becomes idle."""
    for name in sets.pods:
        if (sets.get(PODS, name).get("status") or {}).get("phase") == "Running":
            sets.run(_ordinal(name))
    settle_until_idle(sets)
    owner = advanced_set_view(sets.set)
    assert [*map(_ordinal, sorted(sets.pods))] == [*owner.ordinals]
    counted = (sets.status["replicas"], sets.status["readyReplicas"], sets.status["availableReplicas"])
    assert counted == (owner.replicas,) * 3
    check_partition(sets, owner)
    plan = sets.plan(WEB)
    assert (plan.actions, plan.last(None), plan.requeue_after) == ((), (), None)


def settle_until_idle(sets):
    """Nothing is left to do, also after time passes."""
    for _ in range(40):
        settle_checked(sets)
        if sets.plan(WEB).requeue_after is None:
            return
        sets.clock.advance(5)
    raise AssertionError("did not become idle")


def settle_checked(sets):
    for _ in range(80):
        before = sets.revision
        check(sets)
        sets.round()
        sets.run_all()
        if sets.revision == before:
            return
    raise AssertionError(f"did not become idle: {sets.done[-5:]}")


def check_partition(sets, owner):
    """The desired number of pods has the newest revision; more only if no older pod was left to keep."""
    if owner.on_delete:
        return
    kept = UpdateStrategy.of(sets.set["spec"]).partition
    assert sets.status["updatedReplicas"] >= owner.replicas - kept


TestAdvancedStatefulSet = AdvancedStatefulSetStateMachine.TestCase
TestAdvancedStatefulSet.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@given(spec=specs(), image=IMAGES)
@settings(max_examples=40, deadline=None)
def test_advanced_statefulset_update_respects_partition_and_max_unavailable(spec, image):
    sets = AdvancedStatefulSetHarness(**spec)
    settle_until_idle(sets)
    before = {name: sets.image(_ordinal(name)) for name in sets.pods}
    sets.change_spec("template", to=template(image))
    settle_until_idle(sets)
    owner, strategy = advanced_set_view(sets.set), UpdateStrategy.of(sets.set["spec"])
    updated = [name for name in sets.pods if sets.image(_ordinal(name)) == image != before[name]]
    wanted = 0 if image == "a:1" or owner.on_delete else owner.replicas - strategy.partition
    assert len(updated) == wanted
    if not strategy.unordered:
        assert sorted(map(_ordinal, updated)) == [*owner.ordinals][len(owner.ordinals) - wanted :]
