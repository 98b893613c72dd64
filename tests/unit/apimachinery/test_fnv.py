import pytest

from mockube.apimachinery.fnv import fnv1, fnv1a


@pytest.mark.parametrize(
    ("text", "bits", "first", "second"),
    [
        (b"", 32, 0x811C9DC5, 0x811C9DC5),
        (b"abc", 32, 0x439C2F4B, 0x1A47E90B),
        (b"abc", 64, 0xD8DCCA186BAFADCB, 0xE71FA2190541574B),
        (b"abc", 128, 0xA68BB2A4348B5822836DBC78C6AEE73B, 0xA68D622CEC8B5822836DBC7977AF7F3B),
    ],
)
def test_hashes_are_those_of_gos_fnv(text, bits, first, second):
    """The values are those that Go's own tests expect."""
    assert (fnv1(text, bits), fnv1a(text, bits)) == (first, second)
