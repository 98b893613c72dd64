"""The definitions in packs are valid on any API server and consistent with each other."""

import pytest

from mockube.apimachinery.yaml_decode import load
from mockube.apiserver.kinds.kind_rules import check_create
from mockube.apiserver.packs.definitions import definition_trees
from mockube.packs.kruise.pack import PACK
from tests.support.server.rows import catalog

TREES = {tree["metadata"]["name"]: tree for text in PACK.definitions() for tree in [load(text).tree]}
ROW = catalog()["apiextensions.k8s.io", "v1", "customresourcedefinitions"]


def spec_of(name):
    (version,) = TREES[name]["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]


@pytest.mark.parametrize("name", TREES)
def test_pack_definitions_pass_validation(name):
    (version,) = TREES[name]["spec"]["versions"]
    stored = {"storedVersions": [version["name"]]}
    assert [str(error) for error in check_create(ROW, TREES[name] | {"status": stored})] == []


def test_short_names_of_packs_are_not_those_of_kubernetes():
    """kubectl warns about a short name that stands for two resources."""
    short_names = {name for row in catalog().values() for name in row.short_names}
    assert not short_names & {name for tree in TREES.values() for name in tree["spec"]["names"]["shortNames"]}


@pytest.mark.parametrize("tree", definition_trees("kruise"), ids=lambda tree: tree["metadata"]["name"])
def test_definitions_of_this_server_pass_validation_with_all_versions(tree):
    (stored,) = (version["name"] for version in tree["spec"]["versions"] if version["storage"])
    stored_tree = tree | {"status": {"storedVersions": [stored]}}
    assert (stored, [str(error) for error in check_create(ROW, stored_tree)]) == ("v1beta1", [])


@pytest.mark.parametrize(
    ("template", "kind"),
    [
        pytest.param("cloneSetTemplate", "clonesets.apps.kruise.io", id="CloneSets"),
        pytest.param("advancedStatefulSetTemplate", "statefulsets.apps.kruise.io", id="StatefulSets"),
    ],
)
def test_united_deployment_templates_have_schemas_of_their_kinds(template, kind):
    templates = spec_of("uniteddeployments.apps.kruise.io")["properties"]["template"]["properties"]
    assert templates[template]["properties"]["spec"] == spec_of(kind)
