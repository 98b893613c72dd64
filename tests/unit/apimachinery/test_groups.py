import pytest

from mockube.apimachinery.groups import GroupKind, GroupResource, GroupVersion


@pytest.mark.parametrize(
    ("named", "text"),
    [
        pytest.param(GroupResource("", "pods"), "pods", id="core resource"),
        pytest.param(GroupResource("apps", "deployments"), "deployments.apps", id="resource"),
        pytest.param(GroupKind("", "Pod"), "Pod", id="core kind"),
        pytest.param(GroupKind("apps", "Deployment"), "Deployment.apps", id="kind"),
    ],
)
def test_group_kind_text(named, text):
    assert str(named) == text


@pytest.mark.parametrize(
    ("api_version", "parsed"),
    [
        pytest.param("v1", GroupVersion("", "v1"), id="core"),
        pytest.param("apps/v1", GroupVersion("apps", "v1"), id="group"),
        pytest.param("", GroupVersion("", ""), id="empty"),
    ],
)
def test_group_version(api_version, parsed):
    assert GroupVersion.parse(api_version) == parsed
    assert str(parsed) == api_version


def test_group_version_refuses_more_than_one_slash():
    with pytest.raises(ValueError, match="unexpected GroupVersion string: a/b/c"):
        GroupVersion.parse("a/b/c")
