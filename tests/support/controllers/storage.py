"""A test harness for volumes and claims: the binder, the protection controllers and the provisioner take turns."""

from mockube.apimachinery import meta
from mockube.apimachinery.wellknown import FINALIZER_PV_PROTECTION, FINALIZER_PVC_PROTECTION
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.csi.provisioner import PROVISIONER
from mockube.controller_manager.controllers.persistentvolume.controller import PERSISTENT_VOLUME_BINDER
from mockube.controller_manager.controllers.storageprotection.controller import (
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
)
from tests.support.controllers.fake_api_server import FakeApiServer

ALL = (PERSISTENT_VOLUME_BINDER, CLAIM_PROTECTION, VOLUME_PROTECTION, PROVISIONER)


class Storage(FakeApiServer):
    def __init__(self, controllers=ALL):
        super().__init__(controllers[0], SteppedClock())
        self.controllers = controllers

    def claim(self, name="data", *, size="1Gi", modes=("ReadWriteOnce",), annotations=None, **spec):
        claim_spec = {"accessModes": [*modes], "resources": {"requests": {"storage": size}}, **spec}
        metadata = {"name": name, "namespace": "default", "finalizers": [FINALIZER_PVC_PROTECTION]}
        metadata |= {"annotations": annotations} if annotations else {}
        return self.add(
            PERSISTENT_VOLUME_CLAIMS,
            {"metadata": metadata, "spec": claim_spec, "status": {"phase": "Pending"}},
        )

    def volume(
        self, name="vol", *, size="1Gi", modes=("ReadWriteOnce",), phase="Available", labels=None, **spec
    ):
        has = {"accessModes": [*modes], "capacity": {"storage": size}, "hostPath": {"path": "/tmp/x"}, **spec}
        metadata = {"name": name, "labels": labels or {}, "finalizers": [FINALIZER_PV_PROTECTION]}
        return self.add(PERSISTENT_VOLUMES, {"metadata": metadata, "spec": has, "status": {"phase": phase}})

    def storage_class(
        self, name="fast", *, waits=False, provisioner="ebs.csi.aws.com", default=False, **fields
    ):
        mark = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
        mode = "WaitForFirstConsumer" if waits else "Immediate"
        fields = {"provisioner": provisioner, "volumeBindingMode": mode, "reclaimPolicy": "Delete", **fields}
        self.add(STORAGE_CLASSES, {"metadata": {"name": name, "annotations": mark}, **fields})

    def pod(self, name="app", claim="data", node=""):
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
        spec = {"volumes": volumes} | ({"nodeName": node} if node else {})
        self.add(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    def get_claim(self, name="data"):
        return self.get(PERSISTENT_VOLUME_CLAIMS, name)

    def get_volume(self, name="vol"):
        return self.get(PERSISTENT_VOLUMES, name, namespace="")

    def phase(self, name):
        found = self.get_claim(name) or self.get_volume(name)
        return None if found is None else found["status"]["phase"]

    def put_claim(self, tree):
        self.put(PERSISTENT_VOLUME_CLAIMS, tree)

    def add_storage_class(self, storage_class):
        self.add(STORAGE_CLASSES, storage_class)

    def delete(self, resource, tree):
        self._end(resource, tree)

    def delete_claim(self, name="data"):
        self.delete(PERSISTENT_VOLUME_CLAIMS, self.get_claim(name))

    def settle(self):
        """All controllers reconcile everything until there are no more changes."""
        for _ in range(30):
            before = self.revision
            for controller in self.controllers:
                self.controller = controller
                self._look_at_everything()
            if self.revision == before:
                return
        raise AssertionError(f"did not become idle: {self.done[-5:]}")

    def _look_at_everything(self):
        for resource in (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES):
            for tree in self.all(resource):
                _, error = self.reconcile(Key(meta.namespace(tree), meta.name(tree)))
                assert error is None

    def reasons(self):
        return [reason for _, reason, _ in self.events]
