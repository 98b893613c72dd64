"""The phase of a volume, and what becomes of it after its claim, as a table."""

import pytest

from mockube.client.component_helpers.volumes import PROVISIONED_BY
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS
from mockube.controller_manager.control.actions import Confirm, Delete, RecordEvent
from mockube.controller_manager.controllers.persistentvolume.volumes import reconcile
from tests.support.controllers.fake_caches import FakeCaches

CLAIM_REF = {"namespace": "default", "name": "c", "uid": "u"}
ENDING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
PROVISIONED = {"annotations": {PROVISIONED_BY: "csi.example.com"}}
TMP = {"path": "/tmp/x"}


def volume(phase="", *, ref=CLAIM_REF, policy="Delete", metadata=None, **spec):
    return {
        "metadata": {"name": "pv", "uid": "pv", **(metadata or {})},
        "spec": {"claimRef": ref, "persistentVolumeReclaimPolicy": policy, **spec},
        "status": {"phase": phase},
    }


def claim(volume_name="pv", uid="u"):
    return {
        "metadata": {"name": "c", "namespace": "default", "uid": uid},
        "spec": {"volumeName": volume_name},
    }


def planned(subject, *claims):
    """Return what is done with a volume: its new phase, or what else is written."""
    actions = reconcile(FakeCaches({PERSISTENT_VOLUME_CLAIMS: claims}), subject).actions
    words = []
    for action in actions:
        if isinstance(action, Confirm):
            words.append("confirmed")
        elif isinstance(action, Delete):
            words.append("deleted")
        elif isinstance(action, RecordEvent):
            words.append(action.reason)
        else:
            words.append((action.body.get("status") or {}).get("phase") if action.subresource else "unbound")
    return words


@pytest.mark.parametrize(
    ("subject", "claims", "expected"),
    [
        (volume(ref=None), [], ["Available"]),
        (volume("Available", ref=None), [], []),
        (volume(ref={"namespace": "default", "name": "c"}), [claim()], ["Available"]),
        (volume("Available"), [claim()], ["Bound"]),
        (volume("Bound"), [claim()], []),
        (volume("Bound"), [claim(volume_name="")], []),
        (volume("Bound"), [], ["confirmed", "Released"]),
        (volume("Bound"), [claim(uid="another")], ["confirmed", "Released"]),
        (volume("Released", hostPath=TMP), [], ["deleted"]),
        (volume("Failed", hostPath=TMP), [], ["deleted"]),
        (volume("Released", hostPath=TMP, policy="Retain"), [], []),
        (volume("Released", hostPath=TMP, policy=None), [], []),
        (volume("Released", policy="Recycle"), [], ["Failed", "VolumeFailedRecycle"]),
        (volume("Released", hostPath={"path": "/x"}), [], ["Failed", "VolumeFailedDelete"]),
        (volume("Released", nfs={}), [], ["Failed", "VolumeFailedDelete"]),
        (volume("Released", csi={}), [], []),
        (volume("Released", hostPath=TMP, metadata=PROVISIONED), [], []),
        (volume("Released", hostPath=TMP, metadata=ENDING), [], []),
        (volume("Bound", metadata=PROVISIONED), [claim("other")], ["Released"]),
    ],
)
def test_volume_follows_its_claim(subject, claims, expected):
    assert planned(subject, *claims) == expected


@pytest.mark.parametrize(
    "subject",
    [volume("Bound"), volume("Bound", metadata=PROVISIONED, policy="Retain")],
    ids=["by hand", "to be kept"],
)
def test_volume_of_a_claim_with_another_volume_is_unbound(subject):
    found = planned(subject, claim("other"))
    assert found
    assert "Released" not in found
