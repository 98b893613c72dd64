import base64

import pytest

from mockube.apimachinery.patch.json_difference import patched
from mockube.apimachinery.status import ApiError
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.resources import Key
from mockube.operators import field_edits as field_edits_module
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


def edits(tree):
    return [(edit.field, edit.after) for edit in field_edits(tree)]


def test_every_field_is_edited_once_in_the_order_of_worth():
    tree = {
        "spec": {
            "replicas": 1,
            "zone": "a",
            "image": "b",
            "port": 1,
            "none": None,
            "list": ["x", True],
            "empty": {},
        },
        "data": {"k": "v"},
        "stringData": {"s": "t"},
        "rules": [{"verbs": ["get"]}],
        "subjects": [{"name": "u"}],
        "webhooks": [{"name": "w"}],
        "metadata": {"name": "n", "labels": {"l": "m"}, "annotations": {"a": "b"}},
        "status": {"phase": "p"},
    }
    assert edits(tree) == [
        ("spec.image", "b-edited"),
        ("spec.port", 2),
        ("spec.list.0", "x-edited"),
        ("spec.list.1", False),
        ("spec.zone", "a-edited"),
        ("spec.replicas", 2),
        ("data.k", "v-edited"),
        ("stringData.s", "t-edited"),
        ("rules.0.verbs.0", "get-edited"),
        ("subjects.0.name", "u-edited"),
        ("webhooks.0.name", "w-edited"),
        ("metadata.labels.l", "m-edited"),
    ]


def test_only_data_of_secrets_are_encoded():
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"k": "YQ=="}, "stringData": {"s": "t"}}
    data, text = field_edits(secret)
    assert base64.b64decode(data.after) == b"YQ==-edited"
    assert (text.after, text.is_confidential) == ("t-edited", True)
    for other in ({"kind": "Secret", "apiVersion": "example.com/v1"}, {"kind": "ConfigMap"}):
        (edit,) = field_edits({**secret, **other, "stringData": {}})
        assert (edit.after, edit.is_confidential, str(edit)) == (
            "YQ==-edited",
            False,
            "data.k is set to 'YQ==-edited'",
        )


async def test_value_that_a_server_keeps_is_no_edit():
    class Stubborn(FakeClient):
        async def patch(self, resource, key, patch, *, kind, dry_run=False):
            if not dry_run and patch[0]["path"] == "/spec/a":
                return self.tree
            return await super().patch(resource, key, patch, kind=kind, dry_run=dry_run)

    client = Stubborn({"spec": {"a": "x", "b": "y"}})
    assert (await edit_field(client, CONFIG_MAPS, KEY)).field == "spec.b"


async def test_few_fields_are_tried():
    spec = {f"k{number:02}": "x" for number in range(20)}
    client = FakeClient({"spec": spec}, refused={f"/spec/k{number:02}" for number in range(10)})
    with pytest.raises(NotEditable, match="it is immutable"):
        await edit_field(client, CONFIG_MAPS, KEY)
    client = FakeClient({"spec": spec}, refused={f"/spec/k{number:02}" for number in range(9)})
    assert (await edit_field(client, CONFIG_MAPS, KEY)).field == "spec.k09"


async def test_field_that_may_not_be_removed_is_no_default():
    class Required(FakeClient):
        async def patch(self, resource, key, patch, *, kind, dry_run=False):
            if dry_run:
                raise ApiError("it is required")
            return await super().patch(resource, key, patch, kind=kind)

    assert (await edit_field(Required({"spec": {"a": "x"}}), CONFIG_MAPS, KEY)).field == "spec.a"


async def test_names_with_slashes_and_members_of_lists_are_edited():
    for tree, field in (
        ({"data": {"a/b~c": "x"}}, "data.a/b~c"),
        ({"spec": {"list": ["x"]}}, "spec.list.0"),
    ):
        client = FakeClient(tree)
        assert (await edit_field(client, CONFIG_MAPS, KEY)).field == field


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("a", "b"), 1),
        (("a", "c"), None),
        (("l", 1), "y"),
        (("l", 2), None),
        (("l", "0"), None),
        (("a", "b", "c"), None),
        (("none", "x"), None),
        (("a", "t", 0), None),
    ],
)
def test_value_at_a_path(path, value):
    assert field_edits_module._value_at({"a": {"b": 1, "t": "text"}, "l": ["x", "y"]}, path) == value


def test_fields_that_operators_set_are_first():
    names = ["jobTemplate", "template", "image", "schedule", "ports", "port"]
    spec = dict.fromkeys(["alpha", *sorted(names), "zone", "replicas"], 1)
    assert [edit.path[1] for edit in field_edits({"spec": spec})] == [*names, "alpha", "zone", "replicas"]
