"""The files in the volumes of a simulated container, and their modes."""

import re

import pytest
from msgspec.structs import replace

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.config.volumes import config_error
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.simulated.files import image_places
from mockube.container_runtime.simulated.files.mounts import files_of
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.images import IMAGES

REFERENCES = References(config_maps={"m": {"data": {"a": "1", "b": "2"}}}, tokens={("", 3600): "token"})


def files(source, *, security=None, references=REFERENCES, **mount):
    pod = {
        "metadata": {"name": "p", "namespace": "n", "labels": {"app": "web"}},
        "spec": {
            "securityContext": security or {},
            "volumes": [{"name": "v", **source}],
            "containers": [container(**mount)],
        },
    }
    found = files_of(IMAGES, pod, pod["spec"]["containers"][0], references)
    return {path: entry for path, entry in found.items() if path.split("/")[1] == "v"}


def container(env=(), **mount):
    env = [{"name": name, "value": value} for name, value in dict(env).items()]
    return {"name": "c", "env": env, "volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}


def as_seen(found):
    """Return the folder of a volume and its files by the paths at which programs find them, through its links."""
    file_system = FileSystem(found)
    paths = {
        f"/v/{path.split('/', 3)[3]}" for path in found if path.startswith("/v/..") and path.count("/") > 2
    }
    seen = {path: file_system.entry(path) for path in ("/v", *paths)}
    return {path: entry for path, entry in seen.items() if path == "/v" or not entry.is_directory}


def modes(found):
    return {path: entry.mode for path, entry in as_seen(found).items()}


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
            {"/v": 0o1777, "/v/x/a": 0o400, "/v/b": 0o640},
        ),
        ({"secret": {"secretName": "none", "optional": True}}, {"/v": 0o1777}),
        ({"emptyDir": {}}, {"/v": 0o777}),
        ({"emptyDir": {"medium": "Memory"}}, {"/v": 0o1777}),
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
    found = as_seen(files(source))
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


UPDATED = [
    {"time": "2030-01-02T03:04:05Z"},
    {"time": "2030-01-02T03:04:06Z", "subresource": "status"},
]


def test_names_in_a_volume_are_links_to_a_folder_with_the_time():
    """As a kubelet's atomic writer makes them: upstream's pkg/volume/util/atomic_writer.go."""
    config_map = {"metadata": {"managedFields": UPDATED}, "data": {"a": "1", "b": "2"}}
    source = {"configMap": {"name": "m", "items": ITEMS}}
    found = files(source, security={"fsGroup": 5}, references=References(config_maps={"m": config_map}))
    links = {path: entry.target for path, entry in found.items() if entry.target}
    folder = links.pop("/v/..data")
    assert re.fullmatch(r"\.\.2030_01_02_03_04_05\.\d+", folder)
    assert links == {"/v/x": "..data/x", "/v/b": "..data/b"}
    assert found[f"/v/{folder}/x/a"].data == b"1"
    assert {found[f"/v/{each}"].mode for each in (folder, f"{folder}/x")} == {0o2755}
    assert all(entry.read_only for entry in found.values())
    file_system = FileSystem(found)
    assert [*file_system.children("/v")] == [folder, "..data", "b", "x"]
    assert file_system.read("/v/x/a") == b"1"


def test_other_contents_are_in_another_folder():
    def folder(text):
        references = References(config_maps={"m": {"data": {"a": text}}})
        return files({"configMap": {"name": "m"}}, references=references)["/v/..data"].target

    assert folder("1") == folder("1") != folder("2")


def test_volume_of_a_missing_object_has_no_links():
    """A program that is not simulated may have created the object."""
    assert [*files({"configMap": {"name": "none"}})] == ["/v"]
    assert "/v/..data" in files({"configMap": {"name": "none", "optional": True}})


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


def test_image_has_the_folders_that_its_table_names():
    redis = IMAGES.behavior_of({"image": "redis:7"})
    images = ImageTable([{"redis": [replace(redis, folders=(), workdir="/work")]}])
    assert {"/data", "/work", "/mnt"} <= {*image_places.file_places(images, {"image": "redis:7"}).folders}
