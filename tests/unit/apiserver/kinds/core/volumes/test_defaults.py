import pytest

FIELD_REF = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param({}, {"emptyDir": {}}, id="no source"),
        pytest.param({"emptyDir": {"medium": "Memory"}}, {"emptyDir": {"medium": "Memory"}}, id="emptyDir"),
        pytest.param({"secret": {}}, {"secret": {"defaultMode": 420}}, id="secret"),
        pytest.param({"secret": {"defaultMode": 0}}, {"secret": {"defaultMode": 0}}, id="secret with mode 0"),
        pytest.param(
            {"configMap": {"name": "m"}}, {"configMap": {"name": "m", "defaultMode": 420}}, id="map"
        ),
        pytest.param(
            {"configMap": {}}, {"configMap": {"defaultMode": 420}}, id="a declared zero is no default"
        ),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"downwardAPI": {"items": [{"path": "p"} | FIELD_REF], "defaultMode": 420}},
            id="downwardAPI",
        ),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"secret": {"name": "s"}}]}},
            {
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3600, "path": "t"}},
                        {"secret": {"name": "s"}},
                    ],
                    "defaultMode": 420,
                }
            },
            id="projected",
        ),
        pytest.param({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}, id="hostPath"),
        pytest.param(
            {"iscsi": {"targetPortal": "a", "iqn": "b", "lun": 0}},
            {"iscsi": {"targetPortal": "a", "iqn": "b", "lun": 0, "iscsiInterface": "default"}},
            id="iscsi",
        ),
        pytest.param(
            {"rbd": {"monitors": ["m"], "image": "i"}},
            {
                "rbd": {
                    "monitors": ["m"],
                    "image": "i",
                    "pool": "rbd",
                    "user": "admin",
                    "keyring": "/etc/ceph/keyring",
                }
            },
            id="rbd",
        ),
        pytest.param(
            {"azureDisk": {"diskName": "d", "diskURI": "u", "readOnly": True}},
            {
                "azureDisk": {
                    "diskName": "d",
                    "diskURI": "u",
                    "cachingMode": "ReadWrite",
                    "fsType": "ext4",
                    "readOnly": True,
                    "kind": "Shared",
                }
            },
            id="azureDisk",
        ),
        pytest.param(
            {"image": {"reference": "a/b"}},
            {"image": {"reference": "a/b", "pullPolicy": "Always"}},
            id="image",
        ),
        pytest.param({"image": {}}, {"image": {"pullPolicy": "IfNotPresent"}}, id="image of no name"),
        pytest.param(
            {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "metadata": {},
                        "spec": {"resources": {}, "volumeMode": "Filesystem"},
                    }
                }
            },
            id="ephemeral",
        ),
    ],
)
def test_pod_volume_defaults(with_defaults, source, expected):
    defaulted = with_defaults("v1", "Pod", {"spec": {"containers": [], "volumes": [{"name": "v"} | source]}})
    assert defaulted["spec"]["volumes"] == [{"name": "v"} | expected]


def test_claim_defaults(with_defaults):
    defaulted = with_defaults("v1", "PersistentVolumeClaim", {"spec": {}})
    assert (defaulted["spec"]["volumeMode"], defaulted["status"]) == ("Filesystem", {"phase": "Pending"})


def test_stateful_set_claim_defaults(with_defaults):
    defaulted = with_defaults(
        "apps/v1", "StatefulSet", {"spec": {"volumeClaimTemplates": [{"spec": {"volumeMode": "Block"}}]}}
    )
    claim = defaulted["spec"]["volumeClaimTemplates"][0]
    assert (claim["spec"]["volumeMode"], claim["status"]) == ("Block", {"phase": "Pending"})


def test_persistent_volume_defaults(with_defaults):
    defaulted = with_defaults("v1", "PersistentVolume", {"spec": {"hostPath": {"path": "/x"}}})
    assert defaulted["spec"] == {
        "hostPath": {"path": "/x", "type": ""},
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem",
    }
    assert defaulted["status"] == {"phase": "Pending"}


def test_inline_volume_of_attachment_defaults(with_defaults):
    """The volume sources have defaults, the volume itself has none."""
    source = {"inlineVolumeSpec": {"hostPath": {"path": "/x"}}}
    defaulted = with_defaults("storage.k8s.io/v1", "VolumeAttachment", {"spec": {"source": source}})
    assert defaulted["spec"]["source"]["inlineVolumeSpec"] == {"hostPath": {"path": "/x", "type": ""}}
