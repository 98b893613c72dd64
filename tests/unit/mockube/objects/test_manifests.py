"""What users pass as objects: dicts, models, texts, files, folders and kustomizations."""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kubernetes import client as official
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

from mockube.clients import NotInstalled
from mockube.objects.errors import InvalidType, InvalidValue, NoSuchFile
from mockube.objects.manifests import read_objects
from tests.support.processes import kubectl_binaries

TEXT = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}"


def tree(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def names(manifests):
    return [read["metadata"]["name"] for read in read_objects(manifests)]


@pytest.mark.parametrize(
    ("manifests", "expected"),
    [
        pytest.param(tree("a"), ["a"], id="dict"),
        pytest.param([tree("a"), TEXT % "b"], ["a", "b"], id="list of a dict and a text"),
        pytest.param((tree(name) for name in "ab"), ["a", "b"], id="generator"),
        pytest.param({"kind": "List", "items": [tree("a"), tree("b")]}, ["a", "b"], id="List"),
        pytest.param(TEXT % "a", ["a"], id="text"),
        pytest.param((TEXT % "a").encode(), ["a"], id="bytes"),
        pytest.param(
            f"---\n{TEXT % 'a'}\n---\n---\n{TEXT % 'b'}\n", ["a", "b"], id="documents, some of them empty"
        ),
        pytest.param(
            '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "\\ta"}}', ["\ta"], id="JSON"
        ),
        pytest.param("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n", ["a"], id="YAML in lines"),
        pytest.param([], [], id="empty list"),
        pytest.param(
            f'[{{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {{"name": "a"}}}}, {TEXT % "b"}]',
            ["a", "b"],
            id="list in a text",
        ),
        pytest.param(
            f"- {TEXT % 'a'}\n- {TEXT % 'b'}\n---\n{TEXT % 'c'}", ["a", "b", "c"], id="YAML list in a text"
        ),
        pytest.param(
            "[{}]".format('{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}'),
            ["a"],
            id="JSON list in a text",
        ),
        pytest.param({"kind": "ConfigMapList", "items": None}, [], id="empty List"),
        pytest.param(
            {"apiVersion": "example.com/v1", "kind": "AllowList", "metadata": {"name": "a"}, "items": ["b"]},
            ["a"],
            id="custom resource with items",
        ),
    ],
)
def test_objects_are_read(manifests, expected):
    assert names(manifests) == expected


def test_models_of_clients_are_read_with_names_of_api():
    config_map = official.V1ConfigMap(
        api_version="v1",
        kind="ConfigMap",
        metadata=official.V1ObjectMeta(name="a", creation_timestamp=datetime(2026, 1, 2, tzinfo=UTC)),
        data={"some_key": "x"},
    )
    metadata = {"name": "a", "creationTimestamp": "2026-01-02T00:00:00Z"}
    assert read_objects(config_map) == [{**tree("a"), "metadata": metadata, "data": {"some_key": "x"}}]
    model = ConfigMap(metadata=ObjectMeta(name="b"), data={"key": "x"})
    assert read_objects([model]) == [{**tree("b"), "data": {"key": "x"}}]
    config_maps = official.V1ConfigMapList(
        api_version="v1", kind="ConfigMapList", items=[official.V1ConfigMap(metadata={"name": "a"})]
    )
    assert read_objects(config_maps) == [tree("a")]
    container = official.V1Container(name="c", image_pull_policy="Never")
    (pod,) = read_objects({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}})
    assert pod["spec"]["containers"] == [{"name": "c", "imagePullPolicy": "Never"}]


def test_files_and_folders_are_read(tmp_path, monkeypatch):
    (tmp_path / "b.yaml").write_text(TEXT % "b")
    (tmp_path / "a.json").write_text(TEXT % "a")
    (tmp_path / "notes.txt").write_text("not read")
    (tmp_path / "below.yaml").mkdir()
    assert names(tmp_path) == ["a", "b"]
    assert names(str(tmp_path)) == ["a", "b"]
    monkeypatch.chdir(tmp_path)
    assert names("b.yaml") == ["b"]
    with Path("b.yaml").open() as file:
        assert names(file) == ["b"]


@pytest.mark.thorough
def test_kustomization_is_built_by_kubectl(tmp_path):
    kubectl_binaries.require_kubectl(shutil.which("kubectl"))
    (tmp_path / "map.yaml").write_text(TEXT % "a")
    file = tmp_path / "kustomization.yaml"
    file.write_text("{namePrefix: blue-, resources: [map.yaml]}")
    assert names(tmp_path) == names(file) == ["blue-a"]
    file.write_text("{resources: [other.yaml]}")
    with pytest.raises(InvalidValue, match=r"`kubectl kustomize .*` failed: .*other\.yaml"):
        read_objects(tmp_path)


def test_kustomization_without_kubectl_is_refused(tmp_path, monkeypatch):
    (tmp_path / "kustomization.yaml").write_text("{}")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalled, match="which kubectl builds, and kubectl is not installed: https"):
        read_objects(tmp_path)


ENDLESS = {"apiVersion": "v1", "kind": "A"}
ENDLESS["spec"] = ENDLESS
ENDLESS_LIST = []
ENDLESS_LIST.append(ENDLESS_LIST)


@pytest.mark.parametrize(
    ("manifests", "error", "message"),
    [
        pytest.param(None, InvalidType, "objects must be a dict, a list of dicts, YAML or JSON as a str, or a path, not NoneType", id="None"),
        pytest.param("", InvalidValue, "the text is empty", id="empty text"),
        pytest.param("shop.yaml", NoSuchFile, 'there is no file or folder "shop.yaml" in ', id="missing file"),
        pytest.param("a" * 5000, InvalidValue, "is not a path: File name too long", id="long path"),
        pytest.param("https://example.com/a.yaml", InvalidValue, "is a URL: download it", id="URL"),
        pytest.param("a: b\n c: d", InvalidValue, "the text is not YAML: line 2: mapping values", id="no YAML"),
        pytest.param("# nothing\n", InvalidValue, "the text contains no objects", id="comment"),
        pytest.param("- 5\n- 6\n", InvalidValue, "item 1 of the text is not an object: it is a number", id="list of numbers"),
        pytest.param('[{"a": [1]}, null]', InvalidValue, 'item 1 of the text has no apiVersion: {"a":[1]}', id="list of others"),
        pytest.param("- {}\n- null", InvalidValue, "item 1 of the text has no apiVersion", id="empty item"),
        pytest.param(f"[{TEXT % 'a'}, null]", InvalidValue, "item 2 of the text is not an object: it is null", id="null in a list"),
        pytest.param({"kind": "List", "items": [None]}, InvalidValue, "item 1 of the dict is not an object: it is null", id="null in a List"),
        pytest.param({"kind": "\x1b[31m", "spec": b""}, InvalidType, "\\x1b[31m: spec is of type bytes", id="control character"),
        pytest.param("{kind: Pod}", InvalidValue, 'the text has no apiVersion: {"kind":"Pod"}', id="no version"),
        pytest.param(
            f"{TEXT % 'a'}\n---\n{{apiVersion: v1}}", InvalidValue, "document 2 of the text has no kind", id="no kind"
        ),
        pytest.param(
            {**tree("a"), "data": {"x": b"y"}},
            InvalidType,
            "ConfigMap a: data.x is of type bytes, which JSON does not have: encode it with base64",
            id="bytes",
        ),
        pytest.param({**tree("a"), "data": {5: "y"}}, InvalidType, "data has a key of type int", id="key"),
        pytest.param({**tree("a"), "data": [1e400]}, InvalidValue, "data[0] is inf", id="infinite number"),
        pytest.param({**tree("a"), "data": 1 << 70}, InvalidValue, "data does not fit into 64 bits", id="long int"),
        pytest.param(ENDLESS, InvalidValue, "is nested more than 200 times", id="object that contains itself"),
        pytest.param(5, InvalidType, "not int", id="int"),
        pytest.param(ENDLESS_LIST, InvalidValue, "the list is nested more than 50 times", id="list that contains itself"),
        pytest.param("~nobody-of-this-name/a.yaml", InvalidValue, "is not a path: Could not determine home", id="unknown user"),
        pytest.param({**tree("a"), "data": {"x": "\ud800"}}, InvalidValue, "ConfigMap a: data.x has the character '\\ud800' at position 0", id="surrogate"),
        pytest.param({**tree("a"), "\ud800": 1}, InvalidValue, "ConfigMap a: a key of the object has the character", id="surrogate in a key"),
        pytest.param("a: \ud800", InvalidValue, "the text has the character '\\ud800' at position 3", id="surrogate in a text"),
        pytest.param({"kind": "List", "items": "x"}, InvalidValue, "items of the dict must be a list", id="text as items"),
        pytest.param(["deploy/web"], NoSuchFile, 'a method takes "deploy/web" alone as the kind and the name', id="name in a list"),
    ],
)  # fmt: skip
def test_other_values_are_refused_with_sentence(manifests, error, message):
    with pytest.raises(error) as raised:
        read_objects(manifests)
    assert message in str(raised.value)


def test_pipe_device_or_link_to_nothing_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(InvalidValue, match=r"pipe\.yaml: this is a named pipe, and not a file"):
        read_objects(tmp_path)
    (tmp_path / "pipe.yaml").unlink()
    (tmp_path / "link.yaml").symlink_to("nothing")
    with pytest.raises(NoSuchFile, match=r"link\.yaml is a link to a file that does not exist"):
        read_objects(tmp_path)
    with pytest.raises(InvalidValue, match="/dev/zero: this is a device, and not a file"):
        read_objects(Path("/dev/zero"))


def test_empty_folder_is_refused(tmp_path):
    with pytest.raises(InvalidValue, match=r"has no files that end with \.yaml, \.yml, \.json"):
        read_objects(tmp_path)
