"""What every cluster has is not missing."""

import pytest

from mockube.apimachinery.groups import GroupKind
from mockube.apiserver.bootstrap import rbac
from mockube.lint.relations.existence import exists
from mockube.lint.relations.object_set import CLUSTER_ROLE, ROLE, ObjectSet

_KINDS = {"roles": ROLE, "clusterroles": CLUSTER_ROLE}
NO_OBJECTS = ObjectSet([], namespace="", release="")


@pytest.mark.parametrize(
    ("kind", "namespace", "name"),
    [
        (_KINDS[each.resource[2]], each.namespace, each.name)
        for each in rbac.policy()
        if each.resource[2] in _KINDS
    ],
)
def test_roles_that_servers_create_exist(kind, namespace, name):
    assert exists(NO_OBJECTS, kind, namespace, name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (ROLE, "extension-apiserver-authentication-reader"),
        (GroupKind("", "ConfigMap"), "extension-apiserver-authentication"),
    ],
)
def test_objects_of_kube_system_are_in_no_other_namespace(kind, name):
    assert exists(NO_OBJECTS, kind, "kube-system", name)
    assert not exists(NO_OBJECTS, kind, "shop", name)
