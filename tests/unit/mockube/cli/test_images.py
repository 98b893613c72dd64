"""`mockube images` lists and explains what is known of images, and says what a reference resolves to."""

import asyncio
import re
from types import SimpleNamespace

import pytest

from mockube.cli.main import main
from mockube.cli.run import check_images
from mockube.container_runtime.images.table import ImageTableError, built_in_images
from mockube.failure import UsageError
from mockube.simulated_images import add_images


@pytest.fixture
def images(monkeypatch, tmp_path, capsys):
    """Run the command where no cluster runs; return its exit code, stdout and stderr."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run(*arguments):
        code = main(["images", *map(str, arguments)])
        return (code, *capsys.readouterr())

    return run


def test_list_has_each_image_with_its_ports(images):
    code, out, _ = images()
    rows = {line.split()[0]: line.split()[1] for line in out.splitlines()[1:]}
    assert code == 0
    assert (rows["nginx"], rows["redis"], rows["busybox"]) == ("80", "6379", "-")
    assert images("list")[1] == out


def test_list_shows_the_beginning_of_a_long_command(images):
    out = images("list")[1]
    assert " sh -c while true; do curl -sS...\n" in out
    assert "Kafka connection attempt" not in out


def test_missing_cluster_that_is_named_is_reported(images):
    assert images("list", "--name=nope")[0] == 3


def test_show_explains_what_an_image_requires(images):
    code, out, _ = images("show", "postgres:17")
    assert (code, out.splitlines()[0]) == (0, "Image:         docker.io/library/postgres:17")
    assert "\nRequires:      the file that one of POSTGRES_PASSWORD_FILE, POSTGRES_USER_FILE, " in out
    assert "\n               one of POSTGRES_PASSWORD, " in out
    assert "\nListens:       5432 postgres\n" in out


@pytest.mark.parametrize(
    ("name", "requirement"),
    [
        (
            "postgres:18",
            "no volume at /var/lib/postgresql/data, unless the pod sets PGDATA; or else it exits with code 1",
        ),
        ("mysql", "no MYSQL_USER=root, unless /var/lib/mysql/mysql exists; or else it exits with code 1"),
    ],
)
def test_show_explains_what_an_image_refuses(images, name, requirement):
    code, out, _ = images("show", name)
    assert (code, f" {requirement}\n" in out) == (0, True)
    assert "no volume" not in images("show", "postgres:17")[1]


@pytest.mark.thorough
def test_each_image_is_explained(images):
    names = {":".join((image.names[0], *image.tags[:1])) for image in built_in_images()}
    assert {name for name in names if images("show", name)[0] != 0} == set()


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("ngnix", 3, "mockube: failed to pull and unpack image "),
        ("team/app", 3, 'mockube: "team/app" is not known: it runs, and nothing is known of it'),
        ("erlang", 3, 'mockube: "erlang" is an official image of Docker Hub, of which nothing else is known'),
        ("curlimage/curl", 3, 'did you mean "curlimages/curl"?'),
        ("Nginx", 2, 'mockube: couldn\'t parse image name "Nginx": invalid reference format'),
    ],
)
def test_show_of_other_image_says_why(images, name, code, message):
    result, out, err = images("show", name)
    assert (result, out, err.count("\n")) == (code, "", 1)
    assert message in err


def test_resolve_fails_if_a_node_cannot_pull_one_of_the_images(images):
    code, out, _ = images("resolve", "nginx:1.29", "nginx:nope", "team/app:1")
    lines = out.splitlines()
    assert (code, len(lines)) == (1, 3)
    assert lines[0].startswith("nginx:1.29: docker.io/library/nginx:1.29, sha256:")
    assert lines[1].endswith("docker.io/library/nginx:nope: not found")
    assert lines[2].endswith("Mi, of which nothing is known")
    assert images("resolve", "nginx")[0] == 0


def test_file_of_images_is_read_before_a_cluster_has_it(images, tmp_path):
    path = tmp_path / "images.yaml"
    path.write_text("shop: {names: [registry.test/described], user: 7, private: true}")
    assert "\nUser:          7\n" in images("show", "registry.test/described", "--images", path)[1]
    path.write_text("shop: {names: [registry.test/described], usr: 7}")
    code, _, err = images("show", "shop", "--images", path)
    assert (code, "unknown field `usr`" in err) == (2, True)
    assert "No such file" in images("show", "shop", "--images", tmp_path / "none")[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["load", "Nginx"], "invalid reference format: repository name (library/Nginx) must be lowercase"),
        (["load", "nginx"], "no cluster"),
        (["add", "none.yaml"], "none.yaml: No such file or directory"),
    ],
)
def test_invalid_name_or_file_is_not_added(images, arguments, message):
    code, out, err = images(*arguments)
    assert (code > 0, out, err.count("\n")) == (True, "", 1)
    assert message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "has no images", id="empty"),
        pytest.param("a: {names: [x/a]}\n---\nb: {names: [x/b]}", "more than one document", id="documents"),
        pytest.param("a: {names: [x/a]}\na: {names: [x/b]}", 'key "a" already set in map', id="a key twice"),
        pytest.param("a: {names: [X/A]}", "a: names: X/A: invalid reference format", id="upper case"),
        pytest.param("a: {names: [x/a], exitCode: -1}", "a: exitCode: -1 is not between", id="exit code"),
        pytest.param("a: {names: [x/a]}\nb: {names: [x/a]}", "b: names: x/a is in a, too", id="a name twice"),
    ],
)
def test_invalid_description_is_refused_before_anything_starts(images, text, message, tmp_path):
    path = tmp_path / "images.yaml"
    path.write_text(text)
    assert message in images("add", path)[2]
    with pytest.raises(UsageError, match=re.escape(message)):
        check_images(path, has_processes=False)


def test_processes_without_a_map_of_images_are_refused_before_anything_starts(monkeypatch):
    with pytest.raises(UsageError, match="--container-runtime=process needs --images"):
        check_images(None, has_processes=True)
    check_images(None, has_processes=False)
    monkeypatch.setenv("MOCKUBE_CONTROLLER_MANAGER_IMAGES", "images.yaml")
    check_images(None, has_processes=True)


def test_broken_table_of_cluster_is_reported():
    async def get(*_):
        return {"data": {"images.yaml": "a: ["}}

    client = SimpleNamespace(get=get, update=None)
    with pytest.raises(ImageTableError, match=r"^ConfigMap kube-system/mockube-images: images.yaml: "):
        asyncio.run(add_images(client, {"b": {"names": ["x/b"]}}))
