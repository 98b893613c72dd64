"""Logs of several processes are merged by time, and followed."""

import pytest

from mockube.clusters.logs import Tail, merge_lines


@pytest.fixture
def files(tmp_path):
    return [tmp_path / "a.log", tmp_path / "b.log"]


@pytest.fixture
def tails(files):
    return [Tail(path, path.stem) for path in files]


def test_log_lines_are_merged_by_time_with_continuation_lines(files, tails):
    files[0].write_text(
        "I0131 12:00:01.000000 1 x] one\n  and its detail\nI0131 12:00:03.000000 1 x] three\n"
    )
    files[1].write_text("I0131 12:00:02.000000 1 x] two\n")
    assert [line.split()[-1] for line in merge_lines(tails)] == ["one", "detail", "two", "three"]


def test_json_log_time_is_read(files, tails):
    files[0].write_text('{"ts":1700000000001.5,"msg":"first"}\n{"ts":1700000000003.5,"msg":"third"}\n')
    files[1].write_text('{"ts":1700000000002.5,"msg":"second"}\n')
    assert [line.split('"')[-2] for line in merge_lines(tails)] == ["first", "second", "third"]


def test_followed_logs_print_only_new_whole_lines(files, tails):
    files[1].touch()
    files[0].write_text("first\nsec")
    assert merge_lines(tails) == ["a: first\n"]
    with files[0].open("a") as log:
        log.write("ond\n")
    assert merge_lines(tails) == ["a: second\n"]
    assert merge_lines(tails) == []


def test_truncated_log_is_read_from_start(files, tails):
    files[1].touch()
    files[0].write_text("a long line of the first time\n")
    merge_lines(tails)
    files[0].write_text("again\n")
    assert merge_lines(tails) == ["a: again\n"]
