"""The scores of local images."""

import pytest

from mockube.scheduler.scores.images import image_locality
from tests.support.controllers.scheduler_objects import node, pod, scores, snapshot

MB = 1024 * 1024


def image(name, megabytes):
    return {"names": [name], "sizeBytes": megabytes * MB}


def with_images(name, *images):
    return node(name, status={"images": [*images]})


def image_scores(nodes, *images, minor="1.37", init=(), volumes=()):
    spec = {
        "containers": [{"name": str(number), "image": one} for number, one in enumerate(images)],
        "initContainers": [{"name": f"i{number}", "image": one} for number, one in enumerate(init)],
        "volumes": [{"name": one, "image": {"reference": one}} for one in volumes],
    }
    return scores(image_locality, pod(**spec), snapshot(nodes, minor=minor))


@pytest.mark.parametrize(
    ("megabytes", "expected"),
    [
        pytest.param(10, 0, id="small"),
        pytest.param(46, 0, id="at the minimum of 23 MB"),
        pytest.param(1023, 50, id="in the middle"),
        pytest.param(2000, 100, id="at the maximum of 1000 MB"),
        pytest.param(9000, 100, id="large"),
    ],
)
def test_node_scores_size_of_image_by_share_of_nodes_that_have_it(megabytes, expected):
    """One of two nodes has it, so that half of its size counts."""
    nodes = [with_images("a", image("app:1", megabytes)), node("b")]
    assert image_scores(nodes, "app:1") == {"a": expected, "b": 0}


def test_maximum_grows_with_the_number_of_images():
    nodes = [with_images("a", image("app:1", 2000)), node("b")]
    assert image_scores(nodes, "app:1", "db:1") == {"a": 49, "b": 0}
    assert image_scores(nodes, "app:1", "app:1") == {"a": 100, "b": 0}


def test_image_has_the_size_that_the_first_node_reports():
    nodes = [with_images("a", image("app:1", 2000)), with_images("b", image("app:1", 10))]
    assert image_scores(nodes, "app:1") == {"a": 100, "b": 100}


@pytest.mark.parametrize(
    ("of_pod", "on_node", "is_local"),
    [
        ("app", "app:latest", True),
        ("app:1", "app:1", True),
        ("app:1", "app:latest", False),
        ("example.com:5000/app", "example.com:5000/app:latest", True),
        ("example.com:5000/app", "example.com:5000/app", False),
    ],
)
def test_image_without_tag_is_the_latest(of_pod, on_node, is_local):
    nodes = [with_images("a", image(on_node, 2000)), node("b")]
    assert image_scores(nodes, of_pod) == {"a": 100 if is_local else 0, "b": 0}


@pytest.mark.parametrize(("minor", "score"), [("1.30", 49), ("1.29", 0)])
def test_images_of_init_containers_count_since_1_30(minor, score):
    nodes = [with_images("a", image("init:1", 2000)), node("b")]
    assert image_scores(nodes, "app:1", minor=minor, init=["init:1"]) == {"a": score, "b": 0}


@pytest.mark.parametrize(("minor", "score"), [("1.37", 49), ("1.36", 100), ("1.35", 0)])
def test_images_of_volumes_count_since_1_36_and_for_the_maximum_since_1_37(minor, score):
    nodes = [with_images("a", image("data:1", 2000)), node("b")]
    assert image_scores(nodes, "app:1", minor=minor, volumes=["data:1"]) == {"a": score, "b": 0}


def test_images_score_nothing_if_no_node_reports_any_or_pod_has_none():
    assert image_scores([node()], "app:1") is None
    assert image_scores([with_images("a", image("app:1", 2000))]) is None
