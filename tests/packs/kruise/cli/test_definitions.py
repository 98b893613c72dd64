"""`mockube crds` prints the CustomResourceDefinitions of a pack."""

import yaml

from mockube.cli.main import main


def test_crds_prints_definitions_of_pack(capsys):
    assert main(["crds", "kruise"]) == 0
    documents = [*yaml.safe_load_all(capsys.readouterr().out)]
    assert [tree["kind"] for tree in documents] == ["CustomResourceDefinition"] * 3
    assert [tree["metadata"]["name"] for tree in documents] == [
        "clonesets.apps.kruise.io",
        "statefulsets.apps.kruise.io",
        "uniteddeployments.apps.kruise.io",
    ]


def test_crds_prints_all_versions_with_webhook_of_conversion(capsys):
    main(["crds", "kruise"])
    for tree in yaml.safe_load_all(capsys.readouterr().out):
        assert [version["name"] for version in tree["spec"]["versions"]] == ["v1alpha1", "v1beta1"]
        assert tree["spec"]["conversion"]["strategy"] == "Webhook"


def test_crds_without_conversion_prints_one_version_of_each_kind(capsys):
    main(["crds", "kruise", "--without-conversion"])
    trees = [*yaml.safe_load_all(capsys.readouterr().out)]
    assert [len(tree["spec"]["versions"]) for tree in trees] == [1, 1, 1]
    assert not [tree for tree in trees if "conversion" in tree["spec"]]
