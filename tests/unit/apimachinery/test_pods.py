import pytest

from mockube.apimachinery.pods import dotted_sysctl, every_container, secret_names


@pytest.mark.parametrize(
    "volume",
    [
        {"secret": {"secretName": "t"}},
        {"azureFile": {"secretName": "t"}},
        {"csi": {"nodePublishSecretRef": {"name": "t"}}},
        {"projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "t"}}]}},
        *({one: {"secretRef": {"name": "t"}}} for one in ("cephfs", "cinder", "flexVolume", "rbd", "iscsi")),
    ],
    ids=lambda volume: next(iter(volume)),
)
def test_secret_names_of_volumes(volume):
    assert "t" in secret_names({"volumes": [volume]})


def test_secret_names_of_containers_and_image_pulls():
    variable = {"valueFrom": {"secretKeyRef": {"name": "b", "key": "k"}}}
    spec = {"imagePullSecrets": [{"name": "a"}], "ephemeralContainers": [{"env": [variable, {"value": "x"}]}]}
    assert {name for name in secret_names(spec) if name} == {"a", "b"}


def test_containers_are_listed_in_starting_order():
    spec = {"containers": ["b"], "ephemeralContainers": ["c"], "initContainers": ["a"]}
    assert [*every_container(spec)] == ["a", "b", "c"]
    assert [*every_container({"initContainers": None})] == []


@pytest.mark.parametrize(
    ("name", "dotted"),
    [
        ("a.b/c", "a.b/c"),
        ("a/b.c", "a.b/c"),
        ("a", "a"),
        ("net/ipv4/conf/eth0.1/x", "net.ipv4.conf.eth0/1.x"),
    ],
)
def test_slashes_in_sysctl_names_are_dots(name, dotted):
    assert dotted_sysctl(name) == dotted
