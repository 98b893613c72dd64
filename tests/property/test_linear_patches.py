"""Patches with many operations, directives or field managers take time in proportion to their length."""

import pytest

from mockube.apimachinery.patch import strategic
from mockube.apimachinery.patch.errors import PatchError
from mockube.apimachinery.schema.builtin import load
from mockube.apimachinery.status import ApiError
from mockube.apiserver.patch import json_patch
from mockube.apiserver.patch.apply import FieldManager, VersionConverter
from mockube.apiserver.patch.apply.atoms import atom_of_type
from tests.support.hostile.doubling import check_linear, size_of_run

pytestmark = pytest.mark.slow

POD = load().kind("v1", "Pod")
BASE = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x", "uid": "u"}}
MANAGER = FieldManager(
    kind="Pod",
    versions=VersionConverter(own="v1", atoms={"v1": atom_of_type(POD)}),
    empty={"kind": "Pod", "apiVersion": "v1", "metadata": {}},
)
LENIENT = {"negligible": 0.01, "too_long": 2.0}


def refused_or_not(run):
    def attempt(value):
        try:
            run(value)
        except (ValueError, PatchError, ApiError) as error:
            str(error)

    return attempt


def parametrize_make(of):
    return pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in of.items()])


# --- patches

FIRST = {
    "add": lambda size: ({"a": [1] * 10}, [{"op": "add", "path": "/a/0", "value": {"b": 1}}] * size),
    "add and remove": lambda size: (
        {"a": [1] * 300_000},
        [{"op": "add", "path": "/a/0", "value": 1}, {"op": "remove", "path": "/a/0"}] * (size // 2),
    ),
    "replace": lambda size: ({"a": [1] * size}, [{"op": "replace", "path": "/a/0", "value": [1]}] * size),
    "move": lambda size: (
        {"a": [1] * size, "b": []},
        [{"op": "move", "from": "/a/0", "path": "/b/0"}] * size,
    ),
    "copy": lambda size: ({"a": [1] * 10}, [{"op": "copy", "from": "/a/1", "path": "/a/0"}] * size),
    "test": lambda size: ({"a": [1] * size}, [{"op": "test", "path": "/a/0", "value": 1}] * size),
    "remove the last": lambda size: ({"a": [1] * size}, [{"op": "remove", "path": "/a/-1"}] * size),
}


@parametrize_make(FIRST)
def test_json_patch_of_long_list_takes_linear_time(make):
    check_linear(make, refused_or_not(lambda given: json_patch.apply(*given)), 5_000, **LENIENT)


def ordered_patch(names, order, live):
    original = {**BASE, "spec": {"containers": [{"name": name} for name in live]}}
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": name} for name in order],
            "containers": [{"name": name, "image": "i"} for name in names],
        }
    }
    return original, patch


def finalizers(order, live, deleted):
    patch = {
        "metadata": {"$setElementOrder/finalizers": order, "$deleteFromPrimitiveList/finalizers": deleted}
    }
    return {**BASE, "metadata": {"finalizers": live}}, patch


def container_names(size):
    return [f"c{at}" for at in range(size)]


ORDERS = {
    "the same": lambda size: ordered_patch(
        container_names(size), container_names(size), container_names(size)
    ),
    "turned around": lambda size: ordered_patch(
        container_names(size)[::-1], container_names(size)[::-1], container_names(size)
    ),
    "all new": lambda size: ordered_patch(container_names(size), container_names(size), ()),
    "none of them": lambda size: ordered_patch((), ["other"] * size, container_names(size)),
    "alternating": lambda size: ordered_patch(
        container_names(size)[::2], container_names(size)[::2], container_names(size)[1::2]
    ),
    "equal": lambda size: ordered_patch(["c"] * size, ["c"] * size, ["c"] * size),
    "in the wrong order": lambda size: ordered_patch(
        container_names(size), container_names(size)[::-1], container_names(size)
    ),
    "finalizers": lambda size: finalizers(
        container_names(size), container_names(size)[::-1], container_names(size)[::2]
    ),
    "directives": lambda size: (
        {**BASE, "spec": {"containers": [{"name": name} for name in container_names(size)]}},
        {
            "spec": {
                "$setElementOrder/containers": [{"name": name} for name in container_names(size)[::2]],
                "containers": [{"name": name, "$patch": "delete"} for name in container_names(size)[1::2]],
            }
        },
    ),
}


@parametrize_make(ORDERS)
def test_set_element_order_takes_linear_time(make):
    check_linear(
        make,
        refused_or_not(lambda given: strategic.apply(*given, POD)),
        size_of_run(5_000, 30_000),
        **LENIENT,
    )


# --- field managers


def managed_fields(count, fields):
    return [
        {
            "manager": f"m{at}",
            "operation": "Apply" if at % 2 else "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields(at),
        }
        for at in range(count)
    ]


def object_with_labels(names):
    return {**BASE, "metadata": {**BASE["metadata"], "labels": dict.fromkeys(names, "v")}}


def fields_of_labels(names):
    return {"f:metadata": {"f:labels": {f"f:{name}": {} for name in names}}}


MANAGERS = {
    "one label each": lambda size: (
        managed_fields(size, lambda at: fields_of_labels([f"k{at}"])),
        object_with_labels(container_names(size)),
    ),
    "the same label": lambda size: (
        managed_fields(size, lambda _: fields_of_labels(["c0"])),
        object_with_labels(["c0"]),
    ),
    "two with all": lambda size: (
        managed_fields(2, lambda _: fields_of_labels(container_names(size))),
        object_with_labels(container_names(size)),
    ),
    "other versions": lambda size: (
        [
            one | {"apiVersion": f"v{at}"}
            for at, one in enumerate(managed_fields(size, lambda _: fields_of_labels(["c0"])))
        ],
        object_with_labels(["c0"]),
    ),
    "subresources": lambda size: (
        [
            one | {"subresource": f"s{at}"}
            for at, one in enumerate(managed_fields(size, lambda _: fields_of_labels(["c0"])))
        ],
        object_with_labels(["c0"]),
    ),
}
WRITE = {"manager": "m", "time": "2026-01-02T00:00:00Z"}
MANAGER_WAYS = {
    "apply": lambda live: MANAGER.apply(live, object_with_labels(["c0", "new"]), force=False, **WRITE),
    "apply with force": lambda live: MANAGER.apply(
        live, object_with_labels(["c0", "new"]), force=True, **WRITE
    ),
    "apply others": lambda live: MANAGER.apply(live, object_with_labels(["new"]), force=False, **WRITE),
    "update": lambda live: MANAGER.update(
        live, {**live, "metadata": {**live["metadata"], "labels": {"c0": "w"}}}, **WRITE
    ),
}


@parametrize_make(MANAGERS)
@pytest.mark.parametrize("way", [pytest.param(way, id=name) for name, way in MANAGER_WAYS.items()])
def test_many_field_managers_take_linear_time(make, way):
    def live(size):
        entries, tree = make(size)
        return {**tree, "metadata": {**tree["metadata"], "managedFields": entries}}

    check_linear(
        live, refused_or_not(way), size_of_run(2_000, 8_000), negligible=0.05, too_long=2.0, rounds=6
    )
