import base64

import pytest

from mockube.apimachinery.patch.json_difference import patched
from mockube.apimachinery.status import ApiError
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.resources import Key
from mockube.operators.field_edits import NotEditable, edit_field, field_edits

KEY = Key("default", "a")


class FakeClient:
    """A server with one object. It has a default of a field of its spec, and refuses changes of others."""

    def __init__(self, tree, default=(), refused=()):
        self.tree = tree
        self._default, self._refused = dict(default), refused

    async def get(self, *_):
        return self.tree

    async def patch(self, _resource, _key, patch, *, kind, dry_run=False):
        assert kind == "json"
        if not dry_run and any(each["path"] in self._refused for each in patch):
            raise ApiError("it is immutable")
        tree = patched(self.tree, patch)
        tree = {**tree, "spec": {**self._default, **tree.get("spec", {})}}
        if not dry_run:
            self.tree = tree
        return tree


@pytest.mark.parametrize(
    ("tree", "path", "after"),
    [
        pytest.param({"kind": "ConfigMap", "data": {"color": "red"}}, ("data", "color"), "red-edited", id="text"),
        pytest.param({"spec": {"size": 1}}, ("spec", "size"), 2, id="number"),
        pytest.param({"spec": {"fast": True}}, ("spec", "fast"), False, id="bool"),
        pytest.param(
            {"spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}},
            ("spec", "template", "spec", "containers", 0, "image"), "b-edited", id="image",
        ),
        pytest.param(
            {"spec": {"failedJobsHistoryLimit": 1, "jobTemplate": {"spec": {"completions": 1}}}},
            ("spec", "jobTemplate", "spec", "completions"), 2, id="template of jobs",
        ),
        pytest.param({"metadata": {"labels": {"app": "web"}}}, ("metadata", "labels", "app"), "web-edited", id="label"),
    ],
)  # fmt: skip
def test_first_edit_is_of_a_field_that_operators_set(tree, path, after):
    edit = next(field_edits(tree))
    assert (edit.path, edit.after) == (path, after)


def test_value_of_a_secret_stays_base64_and_is_not_shown():
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"labels": {"a": "b"}}}
    data, label = field_edits({**secret, "data": {"password": "YQ=="}})
    assert base64.b64decode(data.after, validate=True)
    assert str(data) == "data.password is set to another value"
    assert str(label) == "metadata.labels.a is set to 'b-edited'"


async def test_default_of_the_server_is_not_edited():
    client = FakeClient({"spec": {"history": 1, "size": 1}}, default={"history": 1})
    assert (await edit_field(client, CONFIG_MAPS, KEY)).field == "spec.size"
    assert client.tree["spec"] == {"history": 1, "size": 2}


async def test_other_value_than_the_default_is_edited():
    client = FakeClient({"spec": {"history": 3}}, default={"history": 1})
    assert (await edit_field(client, CONFIG_MAPS, KEY)).field == "spec.history"


async def test_next_field_is_edited_if_a_change_is_refused():
    client = FakeClient({"spec": {"a": "x", "b": "y"}}, refused={"/spec/a"})
    assert (await edit_field(client, CONFIG_MAPS, KEY)).field == "spec.b"


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        pytest.param({"metadata": {}}, "it has no field to change", id="nothing"),
        pytest.param({"spec": {"a": "x"}}, "it is immutable", id="refused"),
        pytest.param({"spec": {"history": 1}}, "it has no field to change", id="only a default"),
    ],
)
async def test_object_without_a_field_to_change(tree, message):
    client = FakeClient(tree, default={"history": 1}, refused={"/spec/a"})
    with pytest.raises(NotEditable, match=message):
        await edit_field(client, CONFIG_MAPS, KEY)
