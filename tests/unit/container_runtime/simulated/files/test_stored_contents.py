"""The stored form of the files of a volume."""

import zlib
from datetime import UTC, datetime

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.container_runtime.simulated.files.stored_contents import BrokenContents, decode, encode
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.volume_contents import MAX_BYTES

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FILES = {
    "/": FileEntry(mode=0o2777, group=7),
    "/text": FileEntry(data="é\n".encode(), mode=0o600, user=3, modified=12.5),
    "/binary": FileEntry(data=b"\xff\x00"),
    "/full": FileEntry(data=b"x", zeros=1 << 30, is_sparse=True),
    "/link": FileEntry(data=b"text", target="text", mode=0o777),
}


def test_decoded_files_are_the_encoded_ones():
    encoded = encode(FILES.items(), NOW)
    assert encoded == encode(FILES.items(), NOW)
    assert encoded.left_out == ()
    assert decode(encoded.data) == (FILES, NOW)


def test_largest_files_are_left_out_if_there_is_no_space():
    random = SeededRandom(1).bytes(MAX_BYTES)
    files = {"/small": FileEntry(data=b"1"), "/large": FileEntry(data=random), "/last": FileEntry(data=b"2")}
    encoded = encode(files.items(), NOW)
    assert encoded.left_out == ("/large",)
    assert [*decode(encoded.data).files] == ["/small", "/last"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no zlib",
        encode(FILES.items(), NOW).data[:-9],
        zlib.compress(b"{}"),
        zlib.compress(b'{"version":2,"complete_until":"2030-01-01T00:00:00Z"}'),
        zlib.compress(b'{"version":1,"complete_until":"2030-01-01T00:00:00Z"}\n{"path":"x/../y","mode":1}'),
        zlib.compress(
            b'{"version":1,"complete_until":"2030-01-01T00:00:00Z"}\n{"path":"/x","mode":1,"base64":"?"}'
        ),
    ],
)
def test_broken_contents_are_refused(data):
    with pytest.raises(BrokenContents):
        decode(data)


@pytest.mark.thorough
def test_contents_that_grow_without_a_limit_are_refused():
    with pytest.raises(BrokenContents):
        decode(zlib.compress(b" " * (1 << 27)))


def test_changes_are_reported_but_for_a_replacement():
    changes = []
    files = FileSystem(on_change=lambda: changes.append(1))
    files.inodes.replace_contents(FILES)
    assert not changes
    files.write("/x", b"")
    assert changes == [1]
    files.remove("/x")
    assert changes == [1, 1]
