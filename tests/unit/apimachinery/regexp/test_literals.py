"""Many literal texts, found at once."""

import pytest

from mockube.apimachinery.regexp.literals import Literals

pytestmark = pytest.mark.thorough

EVERY = [chr(code) for code in (*range(256), 0x2028, 0x1F600)]


def test_longest_of_those_that_begin_at_one_place_is_replaced():
    found = Literals(["secret", "secret-long", "secret-longer"])
    assert found.replace("a secret-longer, secret-long- and secrets", "*") == "a *, *- and *s"


def test_literal_within_the_beginning_of_another_one_is_found():
    assert Literals(["aaaaaab", "aaaaac"]).replace("aaaaaaac", "*") == "aa*"


@pytest.mark.parametrize("character", EVERY, ids=ascii)
def test_each_character_means_itself(character):
    literal = f"ab{character}cde"
    found = Literals([literal])
    assert found.replace(f"x{literal}y", "*") == "x*y"
    assert found.replace("xab\uffffcdey", "*") == "xab\uffffcdey"
    assert found.occur_in(f"x{literal}y".encode())


def test_text_without_any_stays_whatever_it_contains():
    assert Literals(["secret"]).replace("a \udc80 lone surrogate", "*") == "a \udc80 lone surrogate"
    assert Literals(["secret"]).replace("\udc80secret", "*") == "\udc80*"
    assert Literals([]).replace("secret", "*") == "secret"
    assert not Literals([]).occur_in(b"secret")


def test_short_literal_is_refused():
    with pytest.raises(ValueError, match="6 characters"):
        Literals(["short"])


def test_many_literals_are_found_in_one_pass():
    many = Literals([f"{number:06}-{number}" for number in range(50_000)])
    assert many.replace("x 049999-49999 y 049999-4 z", "*") == "x * y 049999-4 z"
