import pytest

from mockube.apimachinery.paths import ROOT


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(ROOT, "<nil>", id="no path"),
        pytest.param(ROOT.child("spec"), "spec", id="one name"),
        pytest.param(ROOT.child("spec", "template"), "spec.template", id="names"),
        pytest.param(
            ROOT.child("spec", "containers").index(0).child("ports").index(1).child("name"),
            "spec.containers[0].ports[1].name",
            id="indexes",
        ),
        pytest.param(ROOT.child("metadata", "labels").key("a/b"), "metadata.labels[a/b]", id="key"),
        pytest.param(ROOT.index(3).child("type"), "[3].type", id="begins with an index"),
    ],
)
def test_path_text(path, text):
    assert str(path) == text


def test_child_path_does_not_modify_parent():
    spec = ROOT.child("spec")
    spec.child("replicas")
    assert str(spec) == "spec"


def test_paths_with_equal_steps_are_equal():
    assert ROOT.child("a").index(0) == ROOT.child("a").index(0)
    assert len({ROOT.child("a"), ROOT.child("a"), ROOT.child("b")}) == 2
