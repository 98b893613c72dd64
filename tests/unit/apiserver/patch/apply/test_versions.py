import pytest

from mockube.apiserver.patch.apply import Conflicts, FieldManager, ObjectTypeError, VersionConverter
from mockube.apiserver.patch.apply.atoms import atom_of_type
from tests.support.server.managed_objects import EMPTY, applied, field_manager, managers, thing, updated
from tests.support.server.typed import THING


def test_managers_of_removed_version_are_dropped():
    old = field_manager(own="v0", atoms={"v0": atom_of_type(THING)})
    made = updated(EMPTY | {"apiVersion": "v0"}, thing({"replicas": 1}) | {"apiVersion": "v0"}, by=old)
    assert managers(updated(made, thing({"replicas": 1, "paused": True}), "new")) == {
        "new": {"f:spec": {"f:paused": {}}}
    }


def test_managers_own_fields_in_their_own_version():
    def convert(obj, version):
        names = {"v1": ("count", "replicas"), "v2": ("replicas", "count")}[version]
        spec = {names[1] if name == names[0] else name: value for name, value in obj.get("spec", {}).items()}
        return obj | {"apiVersion": version, "spec": spec}

    atoms = {"v1": atom_of_type(None), "v2": atom_of_type(None)}
    first = field_manager(atoms=atoms, convert=convert)
    second = FieldManager(
        kind="Thing", versions=VersionConverter(own="v2", atoms=atoms, convert=convert), empty=EMPTY
    )
    made = applied(EMPTY, thing({"replicas": 1, "gone": 1}), "one", by=first)
    config = thing({"count": 2}) | {"apiVersion": "v2"}
    with pytest.raises(Conflicts, match=r'conflict with "one": \.spec\.replicas'):
        applied(convert(made, "v2"), config, "two", by=second)
    forced = applied(convert(made, "v2"), config, "two", force=True, by=second)
    assert managers(forced) == {
        "one*": {"f:spec": {".": {}, "f:gone": {}}},
        "two*": {"f:spec": {".": {}, "f:count": {}}},
    }
    pruned = applied(forced, thing({}) | {"apiVersion": "v2"}, "one", by=second)
    assert {name: value for name, value in pruned["spec"].items() if value is not None} == {"count": 2}


def test_field_lost_in_version_of_other_manager_is_pruned_by_its_applier():
    def convert(obj, version):
        fields = {"v1": ("gone", "size"), "v2": ("size",)}[version]
        spec = {name: value for name, value in obj.get("spec", {}).items() if name in fields}
        return obj | {"apiVersion": version, "spec": spec}

    atoms = {"v1": atom_of_type(None), "v2": atom_of_type(None)}
    first = field_manager(atoms=atoms, convert=convert)
    second = FieldManager(
        kind="Thing", versions=VersionConverter(own="v2", atoms=atoms, convert=convert), empty=EMPTY
    )
    config = thing({"gone": 1})
    made = applied(EMPTY, config, "one", by=first)
    both = applied(convert(made, "v2"), thing({"size": 2}) | {"apiVersion": "v2"}, "two", by=second)
    live = both | {"apiVersion": "v1", "spec": {"gone": 0, "size": 2}}
    again = applied(live, config, "one", by=first)
    assert again["spec"] == {"size": 2}
    assert managers(again)["one*"] == {"f:spec": {".": {}, "f:gone": {}}}


def test_object_untypable_in_other_version_is_refused():
    atoms = {"v1": atom_of_type(None), "v2": atom_of_type(THING)}
    second = FieldManager(
        kind="Thing", versions=VersionConverter(own="v2", atoms=atoms), empty=EMPTY | {"apiVersion": "v2"}
    )
    made = updated(second.empty, thing({"replicas": 1}) | {"apiVersion": "v2"}, by=second)
    live = made | {"apiVersion": "v1", "spec": {"containers": [{}]}}
    with pytest.raises(ObjectTypeError, match=r"^\.spec\.containers: element 0: associative list with keys"):
        applied(live, thing({"containers": [{}, {}]}), by=field_manager(atoms=atoms))
