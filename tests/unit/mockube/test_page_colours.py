"""The colours of authors on the page are told apart in both themes, and can be read on each background."""

import math
import re
from itertools import combinations
from pathlib import Path

import pytest

import mockube

STYLE = (Path(mockube.__path__[0]) / "ui/style.css").read_text()
MIN_DISTANCE = 0.1
"""In the colour space OKLab: half of it is hard to see in a mark of a few pixels."""
MIN_CONTRAST = 4.5


def colours(name, theme):
    return [pair[theme] for pair in re.findall(rf"--{name}: light-dark\((#\w+), (#\w+)\)", STYLE)]


def linear(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def oklab(colour):
    """Return the coordinates of a colour in which distances are as people see them: https://bottosson.github.io/posts/oklab/."""
    red, green, blue = linear(colour)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    middle = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.793617785 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.428592205 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.808675766 * short,
    )


def luminance(colour):
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_of_authors_are_apart_and_can_be_read(theme):
    hues = colours(r"hue-\d", theme)
    assert len(hues) == 10
    assert min(math.dist(oklab(a), oklab(b)) for a, b in combinations(hues, 2)) >= MIN_DISTANCE
    for hue in hues:
        for ground in (*colours("surface", theme), *colours("raised", theme)):
            dark, light = sorted((luminance(hue), luminance(ground)))
            assert (light + 0.05) / (dark + 0.05) >= MIN_CONTRAST
