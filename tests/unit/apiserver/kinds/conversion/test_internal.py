"""Fields that say the same agree, whichever of them a client wrote."""

import pytest

from mockube.apiserver.kinds.internal_version import settle


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        pytest.param(
            ("v1", "Secret"),
            {"data": {"a": "MQ==", "c": "Mw=="}, "stringData": {"a": "2", "b": "é"}},
            {"data": {"a": "Mg==", "b": "w6k=", "c": "Mw=="}},
            id="texts are data",
        ),
        pytest.param(("v1", "Secret"), {"data": {"a": "MQ=="}}, {"data": {"a": "MQ=="}}, id="no texts"),
        pytest.param(
            ("v1", "Node"),
            {"spec": {"podCIDR": "10.0.0.0/24"}},
            {"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}},
            id="one network",
        ),
        pytest.param(
            ("v1", "Node"),
            {"spec": {"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}},
            {"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"]}},
            id="several networks",
        ),
        pytest.param(
            ("v1", "Node"),
            {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.0.0.0/24"]}},
            {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}},
            id="they differ",
        ),
        pytest.param(
            ("v1", "Pod"),
            {"spec": {"serviceAccount": "a"}, "status": {"podIP": "10.0.0.1"}},
            {
                "spec": {"serviceAccount": "a", "serviceAccountName": "a"},
                "status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
            },
            id="a pod's account and address",
        ),
        pytest.param(
            ("v1", "Pod"),
            {"spec": {"terminationGracePeriodSeconds": -5}},
            {"spec": {"terminationGracePeriodSeconds": 1}},
            id="a pod ends in the future",
        ),
        pytest.param(
            ("v1", "PodTemplate"),
            {"template": {"spec": {"terminationGracePeriodSeconds": -5}}},
            {"template": {"spec": {"terminationGracePeriodSeconds": -5}}},
            id="a template ends whenever it likes",
        ),
        pytest.param(
            ("batch/v1", "CronJob"),
            {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"serviceAccountName": "a"}}}}}},
            {
                "spec": {
                    "jobTemplate": {
                        "spec": {"template": {"spec": {"serviceAccountName": "a", "serviceAccount": "a"}}}
                    }
                }
            },
            id="an account far inside",
        ),
        pytest.param(
            ("apps/v1", "StatefulSet"),
            {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "d"}}]}},
            {
                "spec": {
                    "volumeClaimTemplates": [
                        {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "d"}}
                    ]
                }
            },
            id="templates of claims",
        ),
        pytest.param(
            ("v1", "ConfigMap"), {"stringData": {"a": "b"}}, {"stringData": {"a": "b"}}, id="others"
        ),
    ],
)
def test_settle(kind, given, expected):
    settle(*kind, given)
    assert given == expected


def test_inner_parts_are_replaced_not_changed():
    inner = {"serviceAccountName": "a"}
    template = {"spec": inner}
    tree = {"spec": {"template": template}}
    settle("apps/v1", "Deployment", tree)
    assert tree["spec"]["template"]["spec"]["serviceAccount"] == "a"
    assert (inner, template) == ({"serviceAccountName": "a"}, {"spec": inner})
