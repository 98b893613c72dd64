"""A cluster's folder, beside which there is no other."""

import pytest

from mockube.clusters.places import place_of


@pytest.fixture
def environment(tmp_path):
    return {"XDG_DATA_HOME": str(tmp_path)}


@pytest.fixture
def place(environment):
    place = place_of("one", environment)
    place.prepare()
    return place
