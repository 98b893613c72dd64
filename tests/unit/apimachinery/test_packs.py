"""The definitions in packs are valid on any API server and consistent with each other."""

import pytest

from mockube.apimachinery.packs.definitions import PACKS, definitions
from mockube.apimachinery.packs.uniteddeployments import SubsetReplicasError, parse_subset_replicas
from mockube.apimachinery.yaml_decode import load
from mockube.apiserver.app import catalog
from mockube.apiserver.kinds.kind_rules import check_create

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


@pytest.mark.parametrize(
    ("total", "value", "expected"),
    [
        pytest.param(3, 2, 2, id="a number"),
        pytest.param(3, "25%", 1, id="25% of 3 is rounded up"),
        pytest.param(1, "25%", 0, id="25% of 1 is rounded down"),
        pytest.param(5, "50%", 3, id="half is rounded up"),
        pytest.param(-1, 4, 4, id="number without total replicas"),
    ],
)
def test_subset_replicas_are_number_or_percentage(total, value, expected):
    assert parse_subset_replicas(total, value) == expected


@pytest.mark.parametrize(
    ("total", "value", "problem"),
    [
        pytest.param(3, -1, "subset replicas (-1) should not be less than 0", id="negative"),
        pytest.param(
            -1, "10%",
            "subsetReplicas (10%) should not be string when unitedDeployment replicas is empty", id="percentage without total replicas",
        ),
        pytest.param(
            3, "10", "subset replicas (10) only support integer value or percentage value with a suffix '%'", id="a text",
        ),
        pytest.param(3, "101%", "subset replicas (101%) should be in range [0, 100]", id="more than all"),
        pytest.param(
            3, "x%",
            'subset replicas (x%) should be correct percentage integer: strconv.Atoi: parsing "x": invalid syntax', id="no number",
        ),
    ],
)  # fmt: skip
def test_invalid_subset_replicas_are_refused(total, value, problem):
    with pytest.raises(SubsetReplicasError) as raised:
        parse_subset_replicas(total, value)
    assert str(raised.value) == problem
