import pytest

from mockube.packs.kruise.inplace.record import TemplateChange, change_between
from tests.packs.kruise.support.clonesets import template


def change(**parts):
    return TemplateChange(**({"revision": "r", "images": {}, "labels": {}, "annotations": {}} | parts))


def template_with_images(first, second):
    containers = [{"name": "a", "image": first}, {"name": "b", "image": second}]
    return {**template(), "spec": {"containers": containers}}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(template("a:1"), template("a:2"), change(images={"c": "a:2"}), id="an image"),
        pytest.param(
            template_with_images("x:1", "y:1"),
            template_with_images("x:1", "y:2"),
            change(images={"b": "y:2"}),
            id="one of two",
        ),
        pytest.param(template("a:1"), template("a:1"), change(), id="empty"),
        pytest.param(
            template("a:1", labels={"x": "1", "y": "1"}),
            template("a:1", labels={"y": "2", "z": "1"}),
            change(labels={"x": None, "y": "2", "z": "1"}),
            id="labels",
        ),
        pytest.param(
            template("a:1", annotations={"x": "1"}),
            template("a:1"),
            change(annotations={"x": None}),
            id="annotations",
        ),
        pytest.param(
            {**template(), "metadata": {**template()["metadata"], "creationTimestamp": None}},
            template(),
            change(),
            id="null counts as absent",
        ),
        pytest.param(template("a:1"), template("a:1", hostNetwork=True), None, id="a field of the pod"),
        pytest.param(template("a:1"), template_with_images("a:1", "b:1"), None, id="another container"),
        pytest.param(template(""), template("a:1"), None, id="the first image"),
        pytest.param(
            template(),
            {**template(), "metadata": {"labels": {"app": "web"}, "finalizers": ["a/b"]}},
            None,
            id="finalizers",
        ),
        pytest.param(
            template(initContainers=[{"name": "i", "image": "i:1"}]),
            template(initContainers=[{"name": "i", "image": "i:2"}]),
            None,
            id="the image of an init container",
        ),
    ],
)
def test_in_place_change_between_templates(old, new, expected):
    assert change_between(old, new, "r") == expected
