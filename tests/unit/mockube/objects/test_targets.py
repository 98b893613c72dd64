"""How an object is named: by kind and name, by `KIND/NAME`, or by the object itself."""

import pytest

from mockube.objects.errors import InvalidType, InvalidValue
from mockube.objects.targets import ObjectName, read_pod_target, read_target, read_targets

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(("Pod", "a", "shop"), ObjectName("Pod", "a", "shop"), id="kind and name"),
        pytest.param(("pod/a", None, "shop"), ObjectName("pod", "a", "shop"), id="kind/name"),
        pytest.param((POD, None, "default"), ObjectName("Pod", "a", "shop", "v1"), id="object"),
    ],
)
def test_object_is_named(arguments, expected):
    targets = read_targets(*arguments)
    assert (targets.names, targets.is_single) == ([expected], True)


def test_path_is_read_before_kind_and_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "pod"
    folder.mkdir()
    (folder / "a.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: b}}")
    assert read_targets("pod/a", None, "x").names == [ObjectName("pod", "a", "x")]
    targets = read_targets("pod/a.yaml", None, "x")
    assert (targets.names, targets.is_single) == ([ObjectName("Pod", "b", "x", "v1")], False)


def test_pod_is_named_by_its_name_alone():
    assert read_pod_target("web-0", "shop") == ObjectName("Pod", "web-0", "shop")
    assert read_pod_target("deployment/web", "shop") == ObjectName("deployment", "web", "shop")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        pytest.param(("Pod", None, "x"), InvalidValue, '"Pod" names no object', id="no name"),
        pytest.param(("Pod", "", "x"), InvalidValue, "the name is empty", id="empty name"),
        pytest.param(("Pod", "a/b", "x"), InvalidValue, 'must not contain "/"', id="path as a name"),
        pytest.param(("Pod", "-l app=web", "x"), InvalidValue, "selected by their labels with list(", id="selector as a name"),
        pytest.param(("Pod", "..", "x"), InvalidValue, '".." is not a name', id="dots"),
        pytest.param(("Pod", 5, "x"), InvalidType, "a name is a str, not int", id="int as a name"),
        pytest.param((5, "a", "x"), InvalidType, 'a kind is a str such as "Deployment", not int', id="int as a kind"),
        pytest.param(("", "a", "x"), InvalidValue, "the kind is empty", id="empty kind"),
        pytest.param(("Pod", "a", None), InvalidType, "a namespace is a str, not NoneType", id="no namespace"),
        pytest.param(([POD, POD], None, "x"), InvalidValue, "takes one object, not 2", id="several objects"),
        pytest.param(({"apiVersion": "v1", "kind": "Pod"}, None, "x"), InvalidValue, "the Pod has no metadata.name", id="object without a name"),
    ],
)  # fmt: skip
def test_other_values_are_refused_with_sentence(arguments, error, message):
    with pytest.raises(error) as raised:
        read_target(*arguments)
    assert message in str(raised.value)
