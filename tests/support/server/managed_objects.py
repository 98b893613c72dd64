"""Objects with several field managers, and the fields that each owns."""

import orjson

from mockube.apiserver.patch.apply import FieldManager, VersionConverter
from mockube.apiserver.patch.apply.atoms import atom_of_type
from tests.support.server.typed import THING

EMPTY = {"apiVersion": "v1", "kind": "Thing", "metadata": {}, "spec": {"containers": None}, "status": {}}


def field_manager(*, subresource="", kind=THING, **versions):
    settings = {"own": "v1", "atoms": {"v1": atom_of_type(kind)}} | versions
    return FieldManager(
        kind="Thing", versions=VersionConverter(**settings), empty=EMPTY, subresource=subresource
    )


FIELDS = field_manager()


def thing(spec=None, **more):
    """Return an apply configuration of a Thing."""
    metadata = {"name": "x"} | more.pop("metadata", {})
    return {
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": metadata,
        **({"spec": spec} if spec is not None else {}),
        **more,
    }


def stored(obj):
    return obj | {"metadata": {"uid": "1"} | obj["metadata"]}


def managers(obj):
    """Return each manager with its fields; a manager that applied has a * at its name."""
    return {
        entry["manager"] + "*" * (entry["operation"] == "Apply"): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields", [])
    }


def times(obj):
    return {entry["manager"]: entry.get("time") for entry in obj["metadata"]["managedFields"]}


def applied(live, config, manager="a", *, time="T2", force=False, by=FIELDS):
    before = orjson.dumps([live, config])
    result = by.apply(live, config, manager=manager, time=time, force=force)
    assert orjson.dumps([live, config]) == before
    return stored(result)


def updated(live, new, manager="u", *, time="T2", by=FIELDS):
    before = orjson.dumps([live, new])
    result = by.update(live, new, manager=manager, time=time)
    assert orjson.dumps([live, new]) == before
    return stored(result)


def bare(obj):
    return {key: value for key, value in obj["metadata"].items() if key not in ("uid", "managedFields")}
