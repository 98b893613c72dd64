"""Field ownership of a created object equals, byte for byte, that of an update of the empty object."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockube.apimachinery.schema import builtin
from mockube.apimachinery.schema.model import Shape
from mockube.apiserver.patch.apply import FieldManager, VersionConverter
from mockube.apiserver.patch.apply.atoms import atom_of_type
from mockube.apiserver.patch.apply.fieldset import of_fields
from tests.support.server.managed_objects import EMPTY, field_manager, thing

SCHEMAS = builtin.load()
KINDS = (
    ("v1", "Pod"), ("v1", "Service"), ("v1", "ConfigMap"), ("apps/v1", "Deployment"), ("batch/v1", "CronJob"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"), ("networking.k8s.io/v1", "Ingress"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
)  # fmt: skip
RESETS = st.sampled_from(((), ("status",), ("status.conditions", "spec.template", "metadata.labels")))
PARTS = st.sampled_from(
    (
        {},
        {"spec": {"containers": None}, "status": {}},
        {"spec": {"template": {"spec": {"containers": None}}, "ports": None}, "rules": None},
    )
)
"""Fields of empty objects."""
WORDS = st.sampled_from(("", "a", "b", "é", 'q"'))
SCALARS = st.one_of(WORDS, st.integers(-2, 2), st.booleans(), st.none(), st.just(1.0))
FREE = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)


def values(of, depth=4):
    """Generate values of a type, and occasionally values of another type."""
    if of is None or of.shape is Shape.ANY or depth == 0:
        return FREE
    if of.shape is Shape.STRUCT:
        fields = (
            st.lists(st.sampled_from(sorted(of.fields)), max_size=4, unique=True)
            if of.fields
            else st.just([])
        )
        return fields.flatmap(
            lambda names: st.fixed_dictionaries(
                {name: values(of.fields[name].type, depth - 1) for name in names}
            )
        )
    if of.shape is Shape.MAP:
        return st.dictionaries(WORDS, values(of.element, depth - 1), max_size=3)
    if of.shape is Shape.LIST:
        return st.lists(values(of.items, depth - 1), max_size=3)
    return SCALARS


def assert_same(manager, new):
    quick = manager.create(new, manager="m", time="T")
    assert orjson.dumps(quick) == orjson.dumps(manager.update(manager.empty, new, manager="m", time="T"))
    return quick


@pytest.mark.thorough
@pytest.mark.parametrize(("version", "kind"), KINDS)
@settings(max_examples=50)
@given(data=st.data())
def test_creation_owns_same_fields_as_update_of_empty_object(version, kind, data):
    schema = SCHEMAS.kind(version, kind)
    bare = {"apiVersion": version, "kind": kind}
    atoms = {version: atom_of_type(schema)}
    versions = VersionConverter(
        own=version, atoms=atoms, reset_fields={version: of_fields(*data.draw(RESETS))}
    )
    part = data.draw(PARTS)
    manager = FieldManager(kind=kind, versions=versions, empty=bare | {"metadata": {}} | part)
    given_ = data.draw(values(schema))
    metadata = data.draw(values(schema.fields["metadata"].type))
    metadata.pop("uid", None)
    assert_same(manager, given_ | bare | {"metadata": metadata})


@pytest.mark.parametrize(
    "managers",
    [
        None,
        [],
        [{}],
        [{"manager": "x"}],
        [{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}],
    ],
)  # fmt: skip
def test_creation_keeps_sent_managed_fields(managers):
    assert_same(field_manager(), thing({"replicas": 1}, metadata={"managedFields": managers}))


def test_creation_of_untypable_object_has_no_managers():
    made = assert_same(field_manager(), thing({"containers": [{"image": "a"}]}))
    assert "managedFields" not in made["metadata"]


def test_duplicate_item_is_owned_as_a_whole():
    made = assert_same(field_manager(), thing({"containers": [{"name": "a", "image": "x"}, {"name": "a"}]}))
    (entry,) = made["metadata"]["managedFields"]
    assert entry["fieldsV1"]["f:spec"]["f:containers"]['k:{"name":"a"}'] == {}


def test_creation_without_fields_has_no_managers():
    assert "managedFields" not in assert_same(field_manager(), EMPTY)["metadata"]


def test_owned_fields_of_same_spec_are_cached_per_spec():
    manager = field_manager()
    for name in ("a", "b"):
        made = assert_same(manager, thing({"replicas": 1}, metadata={"labels": {name: ""}}))
        assert made["metadata"]["managedFields"][0]["fieldsV1"] == {
            "f:metadata": {"f:labels": {".": {}, f"f:{name}": {}}},
            "f:spec": {"f:replicas": {}},
        }
