"""The pictures of docs/architecture.md are those that tools/pictures.py draws, of what is there."""

import pytest

from mockube.apiserver.registry import stages
from tools.packages import ROOT
from tools.pictures import IMAGES, PICTURES, WRITE, draw


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_the_drawn_one(name):
    assert (IMAGES / f"{name}.svg").read_text() == draw(PICTURES[name]), "run python -m tools.pictures"


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_shown(name):
    assert f"](images/{name}.svg)" in (ROOT / "docs/architecture.md").read_text()


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_files_of_steps_exist(picture):
    paths = [ROOT / group.folder / step.file for group in picture.groups for step in group.steps]
    assert [path for path in paths if not path.exists()] == []


def test_stages_of_writes_are_those_of_the_program():
    program = (stages.READING, stages.ADMISSION, stages.STORAGE)
    drawn = [[step.name for step in group.steps] for group in WRITE.groups]
    assert drawn == [[stage.__name__ for stage in tuple_] for tuple_ in program]
