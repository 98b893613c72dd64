import pytest

from mockube.apimachinery.patch.errors import UndecodablePatch
from mockube.apiserver.patch.apply import ObjectTypeError
from tests.support.server.managed_objects import EMPTY, applied, stored, thing
from tests.support.server.typed import named


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (thing() | {"kind": "Other"}, "invalid object type: /v1, Kind=Other"),
        (thing() | {"apiVersion": "apps/v2"}, "invalid object type: apps/v2, Kind=Thing"),
        ({"metadata": {}}, "invalid object type: /, Kind="),
        (thing(metadata={"managedFields": []}), "metadata.managedFields must be nil"),
        (
            thing(metadata={"managedFields": [{"apiVersion": None, "x": 1}]}),
            "metadata.managedFields must be nil",
        ),
    ],
)
def test_undecodable_configuration_is_refused(config, message):
    with pytest.raises(UndecodablePatch) as refused:
        applied(EMPTY, config)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (thing(bogus=1), "(/x; /v1, Kind=Thing): .bogus: field not declared in schema"),
        (
            thing(metadata={"namespace": "n", "name": True}),
            "(n/; /v1, Kind=Thing): .metadata.name: expected string, got &value.valueUnstructured{Value:true}",
        ),
        (
            thing({"containers": named("c", "c")}),
            '(/x; /v1, Kind=Thing): .spec.containers: duplicate entries for key [name="c"]',
        ),
    ],
)
def test_configuration_of_wrong_type_is_refused(config, message):
    with pytest.raises(ObjectTypeError) as refused:
        applied(EMPTY, config)
    assert str(refused.value) == f"failed to create typed patch object {message}"


OMITS = 'associative list with keys has an element that omits all key fields ["name"] (and doesn\'t have default values for any key fields)'


def test_live_object_of_wrong_type_is_refused():
    live = stored(thing({"containers": [{}]}))
    with pytest.raises(ObjectTypeError) as refused:
        applied(live, thing({"replicas": 1}))
    assert str(refused.value) == (
        "failed to create manager for existing fields: failed to convert new object (/x; /v1, Kind=Thing) "
        f"to smd typed: .spec.containers: element 0: {OMITS}"
    )
    managed = applied(EMPTY, thing({"replicas": 1}))
    with pytest.raises(ObjectTypeError) as refused:
        applied(live | {"metadata": managed["metadata"]}, thing({"containers": named("c")}))
    assert str(refused.value) == (
        f"failed to create typed live object (/x; /v1, Kind=Thing): .spec.containers: element 0: {OMITS}"
    )


def test_malformed_live_managers_are_refused():
    with pytest.raises(
        ObjectTypeError, match="failed to decode managed fields: operation must be `Apply` or `Update`"
    ):
        applied(stored(thing(metadata={"managedFields": [{}]})), thing())
    for fields, problem in (([], "expected an object: []"), ({"f": 1}, "key must be 2 characters long:")):
        entry = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
        with pytest.raises(ObjectTypeError) as refused:
            applied(stored(thing(metadata={"managedFields": [entry]})), thing())
        assert str(refused.value) == f"failed to decode managed fields: {problem}"
