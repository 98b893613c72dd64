"""Where clusters lie, and how they may be called."""

from pathlib import Path

import pytest

from mockube.clusters.places import place_of, places
from mockube.failure import Misused


def test_a_cluster_lies_where_the_desktop_specification_says(tmp_path):
    place = place_of("blue-2", {"XDG_DATA_HOME": str(tmp_path)})
    assert place.kubeconfig == tmp_path / "mockube" / "clusters" / "blue-2" / "kubeconfig"
    assert place.context == "mockube-blue-2"
    assert place_of("default", {}).context == "mockube"


@pytest.mark.parametrize("said", [{}, {"XDG_DATA_HOME": ""}, {"XDG_DATA_HOME": "not/absolute"}])
def test_it_is_at_home_if_nothing_better_is_said(said):
    assert place_of("x", said).folder == Path.home() / ".local/share/mockube/clusters/x"


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a/b", "..", "a" * 41, "ä"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(Misused, match="is not a valid cluster name"):
        place_of(name, {})


def test_a_place_is_for_nobody_elses_eyes(tmp_path):
    place = place_of("x", {"XDG_DATA_HOME": str(tmp_path)})
    place.prepare()
    place.prepare()
    assert [folder.stat().st_mode & 0o777 for folder in (place.folder, place.pki, place.logs)] == [0o700] * 3


def test_all_there_are_have_an_order_and_other_things_are_none(tmp_path):
    environment = {"XDG_DATA_HOME": str(tmp_path)}
    assert places(environment) == []
    for name in ("b", "a"):
        place_of(name, environment).prepare()
    (tmp_path / "mockube" / "clusters" / ".DS_Store").touch()
    assert [place.name for place in places(environment)] == ["a", "b"]
