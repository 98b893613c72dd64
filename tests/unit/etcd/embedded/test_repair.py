"""Repair: valid records are kept, damaged ones are moved aside, and no revision is used twice."""

import pytest

from mockube.etcd.embedded.repair import main, repair
from mockube.etcd.embedded.segment import read_segments, segment_numbers, segment_path
from mockube.etcd.embedded.snapshot import snapshot_paths
from mockube.etcd.errors import Compacted, Corrupt
from mockube.etcd.kv import Delete, Range
from tests.support.event_loop import until
from tests.support.stores.durable import outcome, put, state


@pytest.fixture
async def fill_directory(open_durable):
    """Return a function that creates a closed directory with history, and returns the state at each revision."""

    async def fill_directory(revisions=8, **options):
        store = await open_durable(**options)
        await store.grant(60, 7)
        for n in range(2, revisions):
            await store.put(put(b"key %d" % (n % 3), b"value %d" % n, lease=7))
        await store.delete(Delete(key=b"key 0"))
        states = {r: await state_at(store, r) for r in range(1, revisions + 1)}
        await store.close()
        return states

    return fill_directory


async def state_at(store, revision):
    found = await store.range(Range(key=b"\x00", range_end=b"\x00", revision=revision))
    return {kv.key: kv.value for kv in found.kvs}


def flip(path, offset):
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def records(directory):
    """Return the path and offset of each record of the log."""
    return [
        (segment.path, frame.offset)
        for segment in read_segments(directory, segment_numbers(directory)[0])
        for frame in segment.frames
    ]


async def test_repair_of_intact_directory_changes_nothing(fill_directory, tmp_path):
    await fill_directory()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    report = repair(tmp_path)
    assert str(report) == "no damage was found: the store is at revision 8"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("segment_bytes", [1, 200, 1 << 20])
async def test_repair_keeps_everything_before_damage(fill_directory, open_durable, tmp_path, segment_bytes):
    states = await fill_directory(segment_bytes=segment_bytes)
    path, offset = records(tmp_path)[5]  # after the grant and the revisions 2 to 5
    content = path.read_bytes()
    flip(path, offset + 15)
    assert isinstance(await outcome(open_durable()), Corrupt)

    report = repair(tmp_path)
    assert (report.kept_revision, report.lost_revision) == (5, 8)
    store = await open_durable()
    revision, kvs = await state(store)
    assert (revision, kvs) == (report.new_revision, states[5])
    assert (await store.time_to_live(7, keys=True)).keys == sorted(states[5])
    with pytest.raises(Compacted):
        await store.range(Range(key=b"key 0", revision=8))
    assert (await store.put(put(b"new"))).revision == report.new_revision + 1 > 8
    assert (report.moved_to / path.name).read_bytes()[: len(content)] != content
    await store.close()
    assert repair(tmp_path).moved_to is None


async def test_repair_report_names_lost_revisions(fill_directory, tmp_path):
    await fill_directory()
    (path, offset), (_, following) = records(tmp_path)[5:7]
    flip(path, offset)
    report = repair(tmp_path)
    assert str(report).splitlines() == [
        f"{path}: corrupt at byte {offset}: a damaged record, followed by a valid one at byte {following}",
        "everything up to revision 5 was kept",
        "everything after it is lost, at least the revisions 6 to 8",
        f"the store continues at revision {report.new_revision}, without any history",
        f"the old files are in {tmp_path / 'removed-1'}",
    ]


@pytest.mark.thorough
async def test_repaired_store_opens_with_valid_prefix_for_any_damage(fill_directory, open_durable, tmp_path):
    states = await fill_directory(segment_bytes=150)
    files = {path.name: path.read_bytes() for path in tmp_path.glob("*.log")}
    places = [(name, offset) for name, content in files.items() for offset in range(0, len(content), 7)]
    for damaged, offset in places:
        directory = tmp_path / f"{damaged}-{offset}"
        directory.mkdir()
        for name, content in files.items():
            (directory / name).write_bytes(content)
        flip(directory / damaged, offset)
        try:
            report = repair(directory)
        except Corrupt:
            assert damaged == min(files)
            continue
        if report.moved_to is None:
            assert damaged == max(files)
            continue
        store = await open_durable(path=directory)
        revision, kvs = await state(store)
        assert kvs == states[report.kept_revision]
        assert revision == report.new_revision > 8
        await store.close()


async def test_missing_segment_loses_later_revisions(fill_directory, open_durable, tmp_path):
    states = await fill_directory(segment_bytes=1)
    segment_path(tmp_path, 5).unlink()
    report = repair(tmp_path)
    assert report.lost_revision == 8
    assert await state(await open_durable()) == (report.new_revision, states[report.kept_revision])


async def take_snapshots(store, count):
    for n in range(count):
        for revision in range(20):
            await store.put(put(b"key %d" % (revision % 4), b"%d %d" % (n, revision)))
        await store.compact((await store.status()).revision - 2)
        await until(lambda: not store._in_checkpoint)


@pytest.mark.thorough
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_damaged_snapshot_loses_nothing(open_durable, tmp_path, count):
    store = await open_durable(segment_bytes=100)
    await take_snapshots(store, count)
    expected = await state(store)
    await store.close()
    path = snapshot_paths(tmp_path)[-1]
    flip(path, 40)
    assert isinstance(await outcome(open_durable()), Corrupt)

    report = repair(tmp_path)
    assert "nothing was lost" in str(report)
    assert (report.kept_revision, report.new_revision) == (expected[0], expected[0])
    assert (report.moved_to / path.name).exists()
    assert await state(await open_durable()) == expected


async def test_repair_without_any_base_changes_nothing(open_durable, tmp_path):
    store = await open_durable(segment_bytes=100)
    await take_snapshots(store, 3)
    await store.close()
    assert not segment_path(tmp_path, 1).exists()
    for path in snapshot_paths(tmp_path):
        flip(path, 40)
    before = {path.name for path in tmp_path.iterdir()}
    with pytest.raises(Corrupt, match="the segment is missing; there is no valid data before it"):
        repair(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before


async def test_damaged_start_of_log_cannot_be_repaired(fill_directory, tmp_path):
    await fill_directory()
    flip(segment_path(tmp_path, 1), 3)
    before = {path.name for path in tmp_path.iterdir()}
    with pytest.raises(Corrupt, match="there is no valid data before it: restore the directory"):
        repair(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before


async def test_repair_command_reports_success_and_failure(fill_directory, open_durable, tmp_path, capsys):
    await fill_directory()
    flip(*records(tmp_path)[5])
    assert main([str(tmp_path)]) == 0
    assert "everything up to revision 5 was kept" in capsys.readouterr().out
    await open_durable()
    assert main([str(tmp_path)]) == 1
    assert f"{tmp_path} is in use by process" in capsys.readouterr().err
    assert main([str(tmp_path / "nowhere")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
