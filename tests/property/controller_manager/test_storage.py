"""Claims and volumes with actions of users, provisioners and garbage collection in any order."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mockube.apimachinery import meta
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mockube.client.resources import Key
from mockube.controller_manager.controllers.persistentvolume.controller import PERSISTENT_VOLUME_BINDER
from tests.support.controllers.storage import ALL, Storage

CLAIMS = st.sampled_from(["a", "b", "c"])
VOLUMES = st.sampled_from(["x", "y", "z"])
SIZES = st.sampled_from(["1Gi", "2Gi"])
CLASSES = st.sampled_from([{}, {"storageClassName": "fast"}, {"storageClassName": "late"}])


class StorageStateMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.storage = Storage()
        self.storage.storage_class("fast")
        self.storage.storage_class("late", waits=True)
        self.held = {}
        """By the uid of a bound claim, the volume that it was bound to."""
        self.used = {}
        """By the name of a pod, the uid of the claim that it uses."""

    @rule(name=CLAIMS, size=SIZES, spec=CLASSES)
    def create_claim(self, name, size, spec):
        if self.storage.get_claim(name) is None:
            self.storage.claim(name, size=size, **spec)

    @rule(name=VOLUMES, size=SIZES, spec=CLASSES, policy=st.sampled_from(["Delete", "Retain"]), wish=CLAIMS)
    def create_volume(self, name, size, spec, policy, wish):
        if self.storage.get_volume(name) is None:
            named = {"claimRef": {"namespace": "default", "name": wish}} if wish == "c" else {}
            self.storage.volume(name, size=size, persistentVolumeReclaimPolicy=policy, **spec, **named)

    @rule(name=CLAIMS)
    def select_node(self, name):
        claim = self.storage.get_claim(name)
        if claim is not None:
            mark = {"volume.kubernetes.io/selected-node": "node-1"}
            self.storage.put_claim(meta.with_annotations(claim, mark))

    @rule(name=CLAIMS)
    def create_pod(self, name):
        claim = self.storage.get_claim(name)
        if claim is not None and name not in self.used:
            self.storage.pod(name, name, node="node-1")
            self.used[name] = meta.uid(claim)

    @rule(name=CLAIMS)
    def delete_pod(self, name):
        if self.used.pop(name, None) is not None:
            self.storage.remove(PODS, name)

    @rule(name=CLAIMS)
    def delete_claim(self, name):
        if self.storage.get_claim(name) is not None:
            self.storage.delete_claim(name)

    @rule(name=VOLUMES)
    def delete_volume(self, name):
        volume = self.storage.get_volume(name)
        if volume is not None:
            self.storage.delete(PERSISTENT_VOLUMES, volume)

    @rule(controller=st.sampled_from(ALL), name=st.one_of(CLAIMS, VOLUMES))
    def reconcile(self, controller, name):
        self.storage.controller = controller
        found = self.storage.get_claim(name) or self.storage.get_volume(name)
        if found is not None:
            _, error = self.storage.reconcile(Key(meta.namespace(found), name))
            assert error is None

    @rule()
    def settle(self):
        self.storage.settle()

    @invariant()
    def each_bound_claim_has_its_own_volume(self):
        bound = [claim for claim in self._claims() if claim["status"]["phase"] == "Bound"]
        names = [claim["spec"]["volumeName"] for claim in bound]
        assert len(names) == len({*names})
        for claim in bound:
            volume = self.storage.get_volume(claim["spec"]["volumeName"])
            assert volume["spec"]["claimRef"]["uid"] == meta.uid(claim)
            held = self.held.setdefault(meta.uid(claim), claim["spec"]["volumeName"])
            assert held == claim["spec"]["volumeName"], "a claim changed its volume"

    @invariant()
    def claims_in_use_exist(self):
        assert {*self.used.values()} <= {meta.uid(claim) for claim in self._claims()}
        assert all(claim["status"]["phase"] in ("Pending", "Bound") for claim in self._claims())

    def _claims(self):
        return self.storage.all(PERSISTENT_VOLUME_CLAIMS)

    def teardown(self):
        self.storage.settle()
        for tree in (*self._claims(), *self.storage.all(PERSISTENT_VOLUMES)):
            self.storage.controller = PERSISTENT_VOLUME_BINDER
            plan = self.storage.plan(Key(meta.namespace(tree), meta.name(tree)))
            assert not [action for action in plan.actions if hasattr(action, "body")]


TestStorage = StorageStateMachine.TestCase
TestStorage.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
