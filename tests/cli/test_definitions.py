"""`mockube crds` prints the CustomResourceDefinitions of a pack."""

import pytest
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


def test_crds_refuses_unknown_pack(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["crds", "nothing"])
    assert ended.value.code == 2
    assert "invalid choice: 'nothing'" in capsys.readouterr().err
