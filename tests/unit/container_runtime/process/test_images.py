"""The image map selects the local command for an image."""

from pathlib import Path

import pytest

from mockube.container_runtime.process.images import ImageMapError, image_map, load_images
from mockube.container_runtime.process.local_ports import local_ports

HERE = Path("/maps")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("example.org/app:1", "exact"),
        ("example.org/app:2", "tag"),
        ("example.org/app", None),
        ("registry:5000/x[1]:3", "odd"),
        ("registry:5000/x1:3", None),
    ],
)
def test_exact_image_precedes_pattern(name, found):
    images = image_map(
        {
            "example.org/*:*": {"command": ["tag"]},
            "example.org/app:1": {"command": ["exact"]},
            "registry:5000/x[1]:*": {"command": ["odd"]},
        },
        HERE,
    )
    image = images.find(name)
    assert (image.command[0] if image else None) == found


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        ({"command": "run me"}, "app: command must be a list of arguments, not a shell command"),
        ({"env": ["A=b"]}, "app: env must be a map of names to values"),
        (
            {"ports": {"http": 0}},
            "app: ports must map container ports to ports of this machine; 0 chooses a free one",
        ),
        (
            {"ports": [8080]},
            "app: ports must map container ports to ports of this machine; 0 chooses a free one",
        ),
        ({"ready": {"path": "/"}}, "app: ready must be a probe with one of exec, grpc, httpGet, tcpSocket"),
        ({"directory": 3}, "app: directory must be the path of a folder"),
        ([], "app: must be a map of command, entrypoint, args, env, ports, ready, directory, files and user"),
        *(
            (
                {"files": files},
                "app: files must map absolute paths in the container to files or folders of this machine",
            )
            for files in (
                ["a"],
                {"a": "b"},
                {"/": "b"},
                {"/a/": "b"},
                {"/a/../b": "b"},
                {"/a": 5},
                {"/a": ""},
                {5: "b"},
            )
        ),
    ],
)
def test_invalid_image_entry_is_refused(image, problem):
    with pytest.raises(ImageMapError) as refused:
        image_map({"app": image}, HERE)
    assert str(refused.value) == problem


def test_image_map_file_is_relative_to_its_folder(tmp_path):
    path = tmp_path / "images.yaml"
    path.write_text(
        "images: {app: {directory: src, files: {/x: bin/x, /y: /z}, ports: {8080: 18080, 9090: 0}}}"
    )
    image = load_images(path).find("app")
    assert image.directory == tmp_path / "src"
    assert image.files == {"/x": tmp_path / "bin/x", "/y": Path("/z")}
    assert local_ports({"ports": [{"containerPort": 80}, {"containerPort": 8080}]}, image) == {
        80: 80,
        8080: 18080,
        9090: 0,
    }


def test_image_map_file_may_be_plain_map(tmp_path):
    path = tmp_path / "images.yaml"
    path.write_text("example.org/app:*: {command: [run], directory: src}")
    image = load_images(path).find("example.org/app:1")
    assert (image.command, image.directory) == (("run",), tmp_path / "src")


NO_MAP = "the file must be a map of image names, or have one below `images:`"
NONE = "no images: add at least one, with its command"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", NO_MAP),
        ("[]", NO_MAP),
        ("{}", NONE),
        ("images: {}", NONE),
        ("folder: src", NONE),
        ("{images: {a: }, folder: 1}", "folder must be the path of a folder"),
        ("images: [", ""),
        ("{images: {a: }, other: 1}", "other must be below `images:`; only `folder:` may be beside it"),
        ("{folder: src, app: {}}", "app must be below `images:`; only `folder:` may be beside it"),
        (
            "app: run",
            "app: must be a map of command, entrypoint, args, env, ports, ready, directory, files and user",
        ),
    ],
)
def test_invalid_image_map_file_is_refused(tmp_path, text, problem):
    path = tmp_path / "images.yaml"
    path.write_text(text)
    with pytest.raises(ImageMapError) as refused:
        load_images(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert problem in str(refused.value)


def test_missing_image_map_file_is_refused(tmp_path):
    with pytest.raises(ImageMapError, match="No such file"):
        load_images(tmp_path / "images.yaml")
