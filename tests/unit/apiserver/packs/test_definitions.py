"""The definitions in packs are valid on any API server and consistent with each other."""

import pytest

from mockube.apimachinery.yaml_decode import load
from mockube.apiserver.app import catalog
from mockube.apiserver.kinds.kind_rules import check_create
from mockube.apiserver.packs.definitions import PACKS, definitions

TREES = {
    tree["metadata"]["name"]: tree
    for pack in PACKS
    for text in definitions(pack)
    for tree in [load(text).tree]
}
ROW = catalog()["apiextensions.k8s.io", "v1", "customresourcedefinitions"]


def spec_of(name):
    (version,) = TREES[name]["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]


@pytest.mark.parametrize("name", TREES)
def test_pack_definitions_pass_validation(name):
    (version,) = TREES[name]["spec"]["versions"]
    stored = {"storedVersions": [version["name"]]}
    assert [str(error) for error in check_create(ROW, TREES[name] | {"status": stored})] == []


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
