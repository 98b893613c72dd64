"""The files in the volumes of a simulated container, and their modes."""

import pytest
from msgspec.structs import replace

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.config.volumes import config_error
from mockube.container_runtime.images.table import behavior_of
from mockube.container_runtime.simulated.files import image_places
from mockube.container_runtime.simulated.files.mounts import files_of

REFERENCES = References(config_maps={"m": {"data": {"a": "1", "b": "2"}}}, tokens={("", 3600): "token"})


def files(source, *, security=None, **mount):
    pod = {
        "metadata": {"name": "p", "namespace": "n", "labels": {"app": "web"}},
        "spec": {
            "securityContext": security or {},
            "volumes": [{"name": "v", **source}],
            "containers": [container(**mount)],
        },
    }
    found = files_of(pod, pod["spec"]["containers"][0], REFERENCES)
    return {path: entry for path, entry in found.items() if path.split("/")[1] == "v"}


def container(env=(), **mount):
    env = [{"name": name, "value": value} for name, value in dict(env).items()]
    return {"name": "c", "env": env, "volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}


def modes(found):
    return {path: entry.mode for path, entry in found.items()}


ITEMS = [{"key": "a", "path": "x/a", "mode": 0o400}, {"key": "b", "path": "b"}]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"configMap": {"name": "m"}}, {"/v": 0o777, "/v/a": 0o644, "/v/b": 0o644}),
        ({"configMap": {"name": "m", "defaultMode": 0}}, {"/v": 0o777, "/v/a": 0, "/v/b": 0}),
        (
            {"configMap": {"name": "m", "defaultMode": 0o600, "items": ITEMS}},
            {"/v": 0o777, "/v/x/a": 0o400, "/v/b": 0o600},
        ),
        (
            {"projected": {"defaultMode": 0o640, "sources": [{"configMap": {"name": "m", "items": ITEMS}}]}},
            {"/v": 0o777, "/v/x/a": 0o400, "/v/b": 0o640},
        ),
        ({"emptyDir": {}}, {"/v": 0o777}),
        ({"emptyDir": {"mode": 0o1770}}, {"/v": 0o1770}),
        ({"hostPath": {"path": "/x"}}, {"/v": 0o755}),
    ],
)
def test_file_modes_of_volumes(source, expected):
    assert modes(files(source)) == expected


def test_fs_group_may_read_volume_files():
    found = files({"configMap": {"name": "m", "defaultMode": 0o400}}, security={"fsGroup": 1001})
    assert {entry.group for entry in found.values()} == {1001}
    assert modes(found) == {"/v": 0o2777, "/v/a": 0o440, "/v/b": 0o440}


def test_fs_group_may_write_empty_folder_with_a_mode():
    assert modes(files({"emptyDir": {"mode": 0o1700}}, security={"fsGroup": 1001})) == {"/v": 0o3770}


OWNED = [{"key": "a", "path": "a", "user": 7}, {"key": "b", "path": "b"}]
TOKEN = {"serviceAccountToken": {"path": "t"}}


@pytest.mark.parametrize(
    ("source", "users"),
    [
        ({"configMap": {"name": "m"}}, {"/v/a": 0, "/v/b": 0}),
        ({"configMap": {"name": "m", "items": OWNED, "defaultUser": 8}}, {"/v/a": 7, "/v/b": 8}),
        (
            {"projected": {"sources": [{"configMap": {"name": "m", "items": OWNED}}], "defaultUser": 9}},
            {"/v/a": 7, "/v/b": 9},
        ),
        ({"projected": {"sources": [TOKEN], "defaultUser": 9}}, {"/v/t": 9}),
    ],
)
def test_owners_of_files_of_volumes(source, users):
    found = files(source)
    assert {path: found[path].user for path in users} == users


def test_token_with_an_owner_is_private():
    assert modes(files({"projected": {"sources": [TOKEN], "defaultUser": 9}}))["/v/t"] == 0o600
    assert modes(files({"projected": {"sources": [TOKEN]}}))["/v/t"] == 0o644


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"emptyDir": {}}, ""),
        ({"emptyDir": {"medium": "Memory"}}, "tmpfs"),
        ({"configMap": {"name": "m"}}, ""),
        ({"projected": {"sources": []}}, "tmpfs"),
    ],
)
def test_file_system_of_volume(source, kind):
    assert files(source)["/v"].file_system == kind


def test_sub_path_mount():
    assert files({"configMap": {"name": "m"}}, subPath="a")["/v"].data == b"1"
    found = files({"configMap": {"name": "m"}}, subPathExpr="$(KEY)", env={"KEY": "b"})
    assert found["/v"].data == b"2"


@pytest.mark.parametrize(
    ("expression", "env", "problem"),
    [
        ("$(A)/$(B)", {"A": "x", "B": "y"}, ""),
        ("$(A)/$(B)", {"A": "x"}, "missing value for B"),
        ("$(B)/$(A)", {"A": ""}, "missing value for A, B"),
        ("$(A)", {"A": "/tmp"}, "error SubPath `/tmp` must not be an absolute path"),
        ("x/$(A)", {"A": ".."}, "unable to provision SubPath `x/..`: must not contain '..'"),
        ("$$(A)", {}, ""),
    ],
)
def test_invalid_sub_path_is_refused(expression, env, problem):
    one = container(subPathExpr=expression, env=env)
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [one]}}
    assert config_error(pod, one) == problem


@pytest.mark.parametrize(
    "unknown",
    [
        {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "a"}}}]},
        {"envFrom": [{"configMapRef": {"name": "m"}}]},
    ],
)
def test_unknown_variable_of_sub_path_expr_is_no_error(unknown):
    one = {**container(subPathExpr="$(A)"), **unknown}
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [one]}}
    assert config_error(pod, one) == ""


def test_image_has_the_folders_that_its_table_names(monkeypatch):
    redis = behavior_of({"image": "redis:7"})
    monkeypatch.setattr(image_places, "behavior_of", lambda _: replace(redis, folders=(), workdir="/work"))
    assert {"/data", "/work", "/mnt"} <= {*image_places.file_places({"image": "redis:7"}).folders}
