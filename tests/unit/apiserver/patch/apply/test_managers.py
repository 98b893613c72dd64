import pytest

from mockube.apiserver.patch.apply import managers
from mockube.apiserver.patch.apply.atoms import atom_of_type
from mockube.apiserver.patch.apply.conflicts import Conflicts, FieldConflict, reconcile_owned_fields
from mockube.apiserver.patch.apply.elements import MalformedFields
from mockube.apiserver.patch.apply.fieldset import of_fields
from mockube.apiserver.patch.apply.managers import APPLY, UPDATE, ManagerIdentifier, OwnedFields
from tests.support.server.fields import field_paths
from tests.support.server.typed import BOX


def entry(manager="m", operation="Update", version="v1", fields=None, **more):
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:a": {}} if fields is None else fields,
        **more,
    }


def test_managed_fields_entries_are_decoded():
    managed = managers.decode([entry(time="T", subresource="status"), entry(operation="Apply")])
    updated, applied = ManagerIdentifier("m", UPDATE, "v1", "status"), ManagerIdentifier("m", APPLY)
    assert list(managed) == [updated, applied]
    assert (managed[updated].time, managed[updated].api_version, field_paths(managed[updated].fields)) == (
        "T",
        "v1",
        [".a"],
    )
    assert managed[applied].api_version == "v1"


def test_entry_without_fields_is_decoded():
    assert not managers.decode([entry() | {"fieldsV1": None}])[ManagerIdentifier("m", UPDATE, "v1")].fields


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (entry(operation="Delete"), "operation must be `Apply` or `Update`"),
        (entry(version=None), "apiVersion must not be empty"),
        (entry() | {"fieldsType": ""}, "missing fieldsType in managed fields entry 0"),
        (entry() | {"fieldsType": "V2"}, 'invalid fieldsType "V2" in managed fields entry 0'),
        (entry(fields={"a": {}}), "key must be 2 characters long:"),
    ],
)
def test_malformed_entries_are_refused(given, message):
    with pytest.raises(MalformedFields) as refused:
        managers.decode([given])
    assert str(refused.value) == message


def test_managed_fields_round_trip_is_identical():
    entries = [
        entry("a", "Apply", time="2"),
        entry("b", time="1", subresource="status"),
        entry("a", time="2"),
    ]
    assert managers.encode(managers.decode(reversed(entries))) == entries
    assert list(managers.encode(managers.decode(entries))[1]) == [
        "manager",
        "operation",
        "apiVersion",
        "time",
        "fieldsType",
        "fieldsV1",
        "subresource",
    ]


def test_managed_fields_entries_are_sorted():
    fields = of_fields("a")
    in_order = [
        (ManagerIdentifier("z", APPLY), OwnedFields(fields, "v1")),
        (ManagerIdentifier("a", APPLY), OwnedFields(fields, "v1", "2024-01-01T00:00:00Z")),
        (ManagerIdentifier("z", UPDATE, "v1"), OwnedFields(fields, "v1")),
        (ManagerIdentifier("a", UPDATE, "v1"), OwnedFields(fields, "v1", "2024-01-01T00:00:00Z")),
        (ManagerIdentifier("a", UPDATE, "v1", "status"), OwnedFields(fields, "v1", "2024-01-01T00:00:00Z")),
        (ManagerIdentifier("a", UPDATE, "v2"), OwnedFields(fields, "v2", "2024-01-01T00:00:00Z")),
        (ManagerIdentifier("b", UPDATE, "v1"), OwnedFields(fields, "v1", "2024-01-01T00:00:00Z")),
        (ManagerIdentifier("a", UPDATE, "v1", "x"), OwnedFields(fields, "v1", "2024-01-01T00:00:01Z")),
    ]
    written = managers.encode(dict(reversed(in_order)))
    assert [(each["manager"], each.get("subresource", "")) for each in written] == [
        (manager.name, manager.subresource) for manager, _ in in_order
    ]


# --- the limit of managers


def updater(number, version="v1"):
    return ManagerIdentifier(f"u{number:02}", UPDATE, version), OwnedFields(
        of_fields(f"f{number}"), version, f"T{number:02}"
    )


def test_ten_updaters_are_kept_separate():
    managed = dict(map(updater, range(10))) | {
        ManagerIdentifier("a", APPLY): OwnedFields(of_fields("a"), "v1")
    }
    assert managers.cap_managers(managed) == managed


def test_oldest_updaters_beyond_ten_are_merged():
    ancient = ManagerIdentifier("ancient-changes", UPDATE, "v1")
    capped = managers.cap_managers(dict(map(updater, range(12))))
    assert len(capped) == 10
    assert field_paths(capped[ancient].fields) == [".f0", ".f1", ".f2"]
    assert capped[ancient].time == "T02"
    again = managers.cap_managers(capped | dict([updater(12)]))
    assert field_paths(again[ancient].fields) == [".f0", ".f1", ".f2", ".f3"]


def test_updaters_of_different_versions_are_not_merged():
    managed = dict([updater(0, "v2"), *map(updater, range(1, 11))])
    capped = managers.cap_managers(managed)
    assert managed.keys() - capped.keys() == {updater(1)[0], updater(2)[0]}
    assert field_paths(capped[ManagerIdentifier("ancient-changes", UPDATE, "v1")].fields) == [".f1", ".f2"]


# --- conflicts


def test_one_conflict_is_described():
    refused = Conflicts([FieldConflict(ManagerIdentifier("m", APPLY), ("f:a", "f:b"))])
    assert str(refused) == 'Apply failed with 1 conflict: conflict with "m": .a.b'
    (conflict,) = refused.conflicts
    assert (conflict.message, conflict.field) == ('conflict with "m"', ".a.b")


def test_several_conflicts_are_described():
    applier, updater = ManagerIdentifier("b", APPLY), ManagerIdentifier('a"', UPDATE, "apps/v1", "scale")
    refused = Conflicts(
        [FieldConflict(applier, ("f:a",)), FieldConflict(updater, ("f:b",)), FieldConflict(applier, ("f:c",))]
    )
    assert str(refused) == (
        'Apply failed with 3 conflicts: conflicts with "a\\"" with subresource "scale" using apps/v1:\n- .b\n'
        'conflicts with "b":\n- .a\n- .c'
    )


# --- changed types


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param({"f:whole": {"f:a": {}}}, [".whole"], id="an object has one owner now"),
        pytest.param({"f:whole": {".": {}, "f:a": {}}}, [".whole"], id="with the object itself"),
        pytest.param({"f:plain": {"i:0": {}}}, [".plain"], id="a list"),
        pytest.param({"f:one": {"f:a": {}}}, [".one.a"], id="an object with many owners"),
        pytest.param({"f:one": {"f:bogus": {"f:a": {}}}}, [".one.bogus.a"], id="unknown field"),
        pytest.param({"f:text": {"f:a": {}}}, [".text.a"], id="below a primitive"),
        pytest.param({"f:whole": {}}, [".whole"], id="as it should be"),
        pytest.param(
            {"f:containers": {'k:{"name":"a"}': {".": {}, "f:command": {"i:0": {}}}}},
            ['.containers[name="a"]', '.containers[name="a"].command'],
            id="in a list",
        ),
    ],
)
def test_owned_fields_follow_changed_topology(tree, expected):
    (owned,) = managers.decode([entry(fields=tree)]).values()
    assert field_paths(reconcile_owned_fields(atom_of_type(BOX), owned).fields) == expected


def test_reconciled_fields_without_change_are_same_object():
    (owned,) = managers.decode([entry(fields={"f:one": {"f:a": {}}})]).values()
    fields = OwnedFields(of_fields("whole.a"), "v1")
    assert reconcile_owned_fields(atom_of_type(BOX), owned) is owned
    assert reconcile_owned_fields(atom_of_type(BOX), fields) is fields
