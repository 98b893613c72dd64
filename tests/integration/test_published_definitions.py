"""CustomResourceDefinitions that projects publish are installed, and their sample objects are accepted.

`make definitions` fetches it; without that, each project is fetched here if the Go command gets it soon.
"""

from collections.abc import Iterator

import pytest

from mockube.apimachinery.yaml_decode import load_all
from mockube.apimachinery.yaml_scalars import YamlError
from tests.support.server import apiserver
from tools.definitions import FOLDER, PROJECTS, FetchError, fetch

SECONDS = 5
"""A module that is not there by then is downloaded for the first time, or not reachable."""
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GOOD = {"NamesAccepted": "True", "Established": "True"}


def trees(folder, part) -> Iterator[dict]:
    for file in sorted((folder / part).glob("*.yaml")):
        try:
            loaded = [*load_all(file.read_bytes())]
        except YamlError:
            assert part == "samples", file  # templates, which are not YAML before they are rendered
            continue
        for one in loaded:
            if isinstance(one.tree, dict) and one.tree.get("kind"):
                yield one.tree


def definitions(folder):
    return [tree for tree in trees(folder, "definitions") if tree["kind"] == "CustomResourceDefinition"]


def project_folder(project, folder):
    """Return the folder of a project's files, or skip the test and name what is missing."""
    if (FOLDER / project).is_dir():
        return FOLDER / project
    try:
        fetch(project, PROJECTS[project], folder, seconds=SECONDS)
    except FetchError as error:
        pytest.skip(f"{project}, which `make definitions` fetches: {error}")
    return folder / project


async def final_conditions(client, name):
    """Return the conditions of a definition once it is established or cannot be."""
    path = f"{DEFINITIONS}?watch=1&fieldSelector=metadata.name%3D{name}"
    async with client.watch(path) as events:
        async for event in events:
            listed = event["object"].get("status", {}).get("conditions") or ()
            found = {one["type"]: one["status"] for one in listed}
            if found.get("Established") == "True" or found.get("NamesAccepted") == "False":
                return found
    raise AssertionError("the watch ended")


@pytest.mark.parametrize("project", PROJECTS)
async def test_published_definitions_and_samples_are_accepted(project, tmp_path):
    folder = project_folder(project, tmp_path)
    wanted = definitions(folder)
    assert wanted
    async with apiserver.running() as client:
        for tree in wanted:
            answer = await client.post(DEFINITIONS, tree)
            assert answer.status == 201, (tree["metadata"]["name"], answer.body["message"])
        for tree in wanted:
            conditions = await final_conditions(client, tree["metadata"]["name"])
            assert conditions | GOOD == conditions, tree["metadata"]["name"]
        kinds = {
            (f"{tree['spec']['group']}/{version['name']}", tree["spec"]["names"]["kind"]): tree["spec"]
            for tree in wanted
            for version in tree["spec"]["versions"]
        }
        taken = 0
        for tree in trees(folder, "samples"):
            spec = kinds.get((tree.get("apiVersion"), tree["kind"]))
            if spec is not None:
                await take(client, tree, spec)
                taken += 1
        assert bool(taken) == bool(PROJECTS[project].samples)


async def take(client, tree, spec):
    folder = f"/apis/{tree['apiVersion']}"
    if spec["scope"] == "Namespaced":
        namespace = tree["metadata"].setdefault("namespace", "default")
        await client.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        folder += f"/namespaces/{namespace}"
    answer = await client.post(f"{folder}/{spec['names']['plural']}?fieldValidation=Strict", tree)
    assert answer.status in (201, 409), (tree["metadata"], answer.body["message"])
