"""Log files of container runs: writing, following and rotation."""

from datetime import UTC, datetime

from mockube.container_runtime.process import log_files
from mockube.container_runtime.process.log_files import MAX_FILE, LogFile, LogWriter, log_tail, rotated_path

NOW = datetime(2030, 1, 1, 12, 0, 0, 5, tzinfo=UTC)


def read(log):
    lines = []
    while log.is_behind(NOW):
        lines += log.advance(NOW)
    return lines


def test_log_lines_are_written_whole_and_followed(tmp_path):
    path = tmp_path / "log"
    writer, log = LogWriter(path, lambda: NOW), LogFile(path)
    assert read(log) == []
    writer.write(1, b"one\ntw")
    writer.write(2, b"problem\n")
    assert path.read_bytes().splitlines() == [
        b"2030-01-01T12:00:00.000005000Z stdout F one",
        b"2030-01-01T12:00:00.000005000Z stderr F problem",
    ]
    assert [(line.at, line.stream, line.text) for line in read(log)] == [
        (NOW, 1, b"one\n"),
        (NOW, 2, b"problem\n"),
    ]
    writer.write(1, b"o\nrest")
    assert [line.text for line in read(log)] == [b"two\n"]
    writer.close()
    assert [line.text for line in read(log)] == [b"rest"]
    log.close()
    assert log_tail(path, 8) == "two\nrest"


def test_long_log_line_is_split(tmp_path):
    path = tmp_path / "log"
    writer = LogWriter(path, lambda: NOW)
    writer.write(1, b"x" * 40_000 + b"\n")
    writer.close()
    log = LogFile(path)
    assert [len(line.text) for line in read(log)] == [16384, 16384, 40_000 - 2 * 16384 + 1]
    log.close()


def test_log_rotates_between_two_files_while_followed(tmp_path):
    path = tmp_path / "log"
    writer, line = LogWriter(path, lambda: NOW), b"x" * 9_999 + b"\n"
    writer.write(1, line)
    log = LogFile(path)
    for _ in range(int(1.5 * MAX_FILE / len(line))):
        writer.write(1, line)
    assert rotated_path(path).stat().st_size <= MAX_FILE
    assert len(read(log)) == 1 + int(1.5 * MAX_FILE / len(line))
    writer.close()
    log.close()
    assert log_files.log_tail(path, 10) == "x" * 9 + "\n"
