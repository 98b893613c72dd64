import pytest


def of_spec(made, *leave_out):
    return {
        field: value
        for field, value in made["spec"].items()
        if field not in ("selector", "template", *leave_out)
    }


def test_deployment_defaults(with_defaults):
    assert of_spec(with_defaults("apps/v1", "Deployment", {})) == {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }


def test_replica_set_defaults(with_defaults):
    assert of_spec(with_defaults("apps/v1", "ReplicaSet", {})) == {"replicas": 1}


def test_daemon_set_defaults(with_defaults):
    assert of_spec(with_defaults("apps/v1", "DaemonSet", {})) == {
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        "revisionHistoryLimit": 10,
    }


def test_stateful_set_defaults(with_defaults):
    assert of_spec(with_defaults("apps/v1", "StatefulSet", {})) == {
        "replicas": 1,
        "serviceName": "",
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}},
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        pytest.param("Deployment", {"type": "Recreate"}, {"type": "Recreate"}, id="recreate"),
        pytest.param(
            "Deployment",
            {"rollingUpdate": {"maxSurge": 2}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 2}},
            id="a surge",
        ),
        pytest.param(
            "Deployment",
            {"type": "Recreate", "rollingUpdate": {"maxSurge": 0}},
            {"type": "Recreate", "rollingUpdate": {"maxSurge": 0}},
            id="parameters of another strategy",
        ),
        pytest.param("DaemonSet", {"type": "OnDelete"}, {"type": "OnDelete"}, id="on delete"),
        pytest.param(
            "DaemonSet",
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            id="a surge of daemons",
        ),
        pytest.param("StatefulSet", {"type": "OnDelete"}, {"type": "OnDelete"}, id="stateful, on delete"),
        pytest.param(
            "StatefulSet",
            {"type": "RollingUpdate"},
            {"type": "RollingUpdate"},
            id="stateful, named without more",
        ),
        pytest.param(
            "StatefulSet",
            {"type": "RollingUpdate", "rollingUpdate": {}},
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}},
            id="stateful, named with parameters",
        ),
        pytest.param(
            "StatefulSet",
            {"rollingUpdate": {"partition": 3, "maxUnavailable": 2}},
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 3, "maxUnavailable": 2}},
            id="a partition",
        ),
    ],
)
def test_update_strategy_defaults(with_defaults, kind, given, expected):
    field = "strategy" if kind == "Deployment" else "updateStrategy"
    assert with_defaults("apps/v1", kind, {"spec": {field: given}})["spec"][field] == expected


def test_claim_retention_policy_defaults_to_retain(with_defaults):
    policy = {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}
    defaulted = with_defaults("apps/v1", "StatefulSet", {"spec": policy})["spec"][
        "persistentVolumeClaimRetentionPolicy"
    ]
    assert defaulted == {"whenDeleted": "Retain", "whenScaled": "Delete"}
