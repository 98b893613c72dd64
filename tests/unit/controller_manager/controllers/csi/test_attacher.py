"""The simulated attacher: attachments of simulated drivers."""

import pytest

from mockube.apimachinery import meta
from mockube.client.component_helpers.volumes import SIMULATED_PROVISIONER
from mockube.client.kinds import VOLUME_ATTACHMENTS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.csi.attacher import ATTACHER, finalizer
from tests.support.controllers.fake_api_server import FakeApiServer


def cluster_with_attachment(driver, **metadata):
    server = FakeApiServer(ATTACHER, SteppedClock())
    spec = {"attacher": driver, "nodeName": "n", "source": {"persistentVolumeName": "pv"}}
    server.add(VOLUME_ATTACHMENTS, {"metadata": {"name": "a", **metadata}, "spec": spec})
    return server


def test_simulated_driver_attaches_at_once():
    volumes = cluster_with_attachment(SIMULATED_PROVISIONER)
    volumes.reconcile(Key("", "a"))
    found = volumes.get(VOLUME_ATTACHMENTS, "a", "")
    assert found["status"] == {"attached": True}
    assert meta.finalizers(found) == ["external-attacher/simulated-mockube-dev"]
    assert volumes.reconcile(Key("", "a")) == ([], None)


def test_simulated_driver_releases_deleted_attachment():
    mine = finalizer(SIMULATED_PROVISIONER)
    volumes = cluster_with_attachment(
        SIMULATED_PROVISIONER, deletionTimestamp="2030-01-01T00:00:00Z", finalizers=[mine]
    )
    volumes.reconcile(Key("", "a"))
    assert not meta.finalizers(volumes.get(VOLUME_ATTACHMENTS, "a", ""))
    assert volumes.reconcile(Key("", "a")) == ([], None)


def test_other_drivers_are_ignored():
    assert cluster_with_attachment("csi.example.com").reconcile(Key("", "a")) == ([], None)


@pytest.mark.parametrize(("driver", "name"), [("a.b", "a-b"), ("a.", "a-X")])
def test_finalizers_are_named_after_drivers(driver, name):
    assert finalizer(driver) == f"external-attacher/{name}"
