import uuid

import pytest

from mockube.apimachinery import randomness
from mockube.apimachinery.randomness import SUFFIX_ALPHABET, SeededRandom, SystemRandom


class Bytes:
    """A source of randomness that returns the given bytes."""

    def __init__(self, *draws):
        self._draws = list(draws)

    def bytes(self, count):
        drawn = self._draws.pop(0)
        assert len(drawn) == count
        return drawn


@pytest.mark.parametrize("source", [SystemRandom(), SeededRandom()], ids=["system", "seeded"])
def test_uid_is_a_random_uuid(source):
    drawn = randomness.uid(source)
    parsed = uuid.UUID(drawn)
    assert str(parsed) == drawn
    assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)


def test_uids_differ():
    source = SystemRandom()
    assert len({randomness.uid(source) for _ in range(100)}) == 100


def test_same_seed_gives_same_values():
    def generate_names(seed):
        source = SeededRandom(seed)
        return randomness.uid(source), randomness.suffix(source), randomness.uid(source)

    assert generate_names(1) == generate_names(1)
    assert generate_names(1) != generate_names(2)
    assert generate_names(1)[0] != generate_names(1)[2]


@pytest.mark.parametrize("length", [0, 1, 5, 10])
def test_suffix_uses_its_alphabet_only(length):
    drawn = randomness.suffix(SystemRandom(), length)
    assert len(drawn) == length
    assert set(drawn) <= set(SUFFIX_ALPHABET)


def test_suffix_draws_again_if_bytes_are_unusable():
    source = Bytes(bytes([0, 26, 27, 31]), bytes([32 + 1, 2, 3, 4]))
    assert randomness.suffix(source, 2) == "b9"
    source = Bytes(bytes([0, 27, 27, 27]), bytes([32 + 1, 2, 3, 4]))
    assert randomness.suffix(source, 2) == "bc"


@pytest.mark.parametrize(
    ("drawn", "fraction"), [(bytes(4), 0.0), (b"\x80\0\0\0", 0.5), (b"\xff\xff\xff\xff", 1 - 2**-32)]
)
def test_fraction_is_at_least_0_and_less_than_1(drawn, fraction):
    assert randomness.fraction(Bytes(drawn)) == fraction


def test_streams_of_a_seed_do_not_depend_on_draws_of_others():
    first, second = SeededRandom(1), SeededRandom(1)
    second.bytes(100)
    assert first.stream("a").bytes(8) == second.stream("a").bytes(8)
    assert first.stream("a").stream("b").bytes(8) == second.stream("a").stream("b").bytes(8)
    assert len({first.stream(name).bytes(8) for name in ("a", "b", "")}) == 3
    assert SeededRandom(1).stream("a").bytes(8) != SeededRandom(2).stream("a").bytes(8)


def test_streams_of_the_system_are_random():
    source = SystemRandom()
    assert source.stream("a").bytes(8) != source.stream("a").bytes(8)
