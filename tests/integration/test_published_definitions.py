"""What projects publish is installed and served, and what they give as samples is taken: `make definitions` fetches it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mockube.apimachinery.yaml_decode import load_all
from tests.support.server import apiserver

FOLDER = Path(__file__).parents[2] / ".definitions"
PROJECTS = sorted(path.name for path in FOLDER.iterdir()) if FOLDER.is_dir() else []
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GOOD = {"NamesAccepted": "True", "Established": "True"}


def trees(project, part) -> Iterator[dict]:
    for file in sorted((FOLDER / project / part).glob("*.yaml")):
        for loaded in load_all(file.read_bytes()):
            if isinstance(loaded.tree, dict) and loaded.tree.get("kind"):
                yield loaded.tree


def definitions(project):
    return [tree for tree in trees(project, "definitions") if tree["kind"] == "CustomResourceDefinition"]


@pytest.mark.skipif(bool(PROJECTS), reason="the definitions of projects are there")
def test_the_definitions_of_projects_were_not_fetched():
    pytest.skip(
        "`make definitions` fetches what ten projects publish; without it, nothing of it is installed"
    )


async def established(client, name):
    """Return the conditions of a definition, as soon as it is established or cannot be."""
    path = f"{DEFINITIONS}?watch=1&fieldSelector=metadata.name%3D{name}"
    async with client.watch(path) as events:
        async for event in events:
            listed = event["object"].get("status", {}).get("conditions") or ()
            found = {one["type"]: one["status"] for one in listed}
            if "Established" in found:
                return found
    raise AssertionError("the watch ended")


@pytest.mark.parametrize("project", PROJECTS)
async def test_every_definition_of_a_project_is_served_and_its_samples_are_taken(project):
    wanted = definitions(project)
    assert wanted
    async with apiserver.running() as client:
        for tree in wanted:
            answer = await client.post(DEFINITIONS, tree)
            assert answer.status == 201, (tree["metadata"]["name"], answer.body["message"])
        for tree in wanted:
            conditions = await established(client, tree["metadata"]["name"])
            assert conditions == GOOD, tree["metadata"]["name"]
        kinds = {
            (f"{tree['spec']['group']}/{version['name']}", tree["spec"]["names"]["kind"]): tree["spec"]
            for tree in wanted
            for version in tree["spec"]["versions"]
        }
        for tree in trees(project, "samples"):
            spec = kinds.get((tree["apiVersion"], tree["kind"]))
            if spec is not None:
                await take(client, tree, spec)


async def take(client, tree, spec):
    folder = f"/apis/{tree['apiVersion']}"
    if spec["scope"] == "Namespaced":
        namespace = tree["metadata"].setdefault("namespace", "default")
        await client.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        folder += f"/namespaces/{namespace}"
    answer = await client.post(f"{folder}/{spec['names']['plural']}?fieldValidation=Strict", tree)
    assert answer.status in (201, 409), (tree["metadata"], answer.body["message"])
