"""Nodes that are rejected because they do not declare the features that a pod needs."""

import pytest

from mockube.scheduler.filters.declared_features import declared_features
from mockube.scheduler.filters.filter import Rejection
from tests.support.controllers.scheduler_objects import info, node, pod, rejections, snapshot

RESTART = "RestartAllContainersOnContainerExits"
HOST_USERS = "UserNamespacesHostNetwork"
MISSING = Rejection(("node(s) didn't match Pod's required features",), is_unresolvable=True)


def restarting(action="RestartAllContainers"):
    return {"name": "c", "restartPolicyRules": [{"action": "Restart"}, {"action": action}]}


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        pytest.param({}, set(), id="none"),
        pytest.param({"containers": [restarting()]}, {RESTART}, id="a container restarts all"),
        pytest.param({"initContainers": [restarting()]}, {RESTART}, id="an init container does"),
        pytest.param({"containers": [restarting("Restart")]}, set(), id="only itself"),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False}, {HOST_USERS}, id="users in the host's network"
        ),
        pytest.param({"hostNetwork": True, "hostUsers": True}, set(), id="the host's users"),
        pytest.param({"hostNetwork": True}, set(), id="the host's users by default"),
        pytest.param({"hostUsers": False}, set(), id="users in its own network"),
        pytest.param(
            {"containers": [restarting()], "hostNetwork": True, "hostUsers": False},
            {RESTART, HOST_USERS},
            id="both",
        ),
    ],
)
def test_node_that_does_not_declare_all_features_of_pod_is_rejected(spec, needed):
    declared = {"none": [], "restart": [RESTART], "users": [HOST_USERS], "both": [HOST_USERS, RESTART]}
    state = snapshot([node(name, status={"declaredFeatures": has}) for name, has in declared.items()])
    rejected = [name for name, has in declared.items() if not needed <= {*has}]
    assert rejections(declared_features, pod(**spec), state) == dict.fromkeys(rejected, MISSING)


def test_declared_features_need_no_check_without_need_or_gate():
    older = snapshot([node()], minor="1.34")
    assert declared_features(info(pod(containers=[restarting()]), older.gates), older) is None
    assert declared_features(info(pod()), snapshot([node()])) is None
