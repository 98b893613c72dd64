"""One line for each record, in klog's form or as JSON."""

import io
import logging
import re

import orjson
import pytest

from mockube.component_base import klog


@pytest.fixture
def stream():
    """Return the stream of the log handler; the fixture restores the root logger."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:], root.level = before


def write(stream, form, *, verbosity=0):
    klog.attach(logging.getLogger(), klog.Logging(v=verbosity, logging_format=form), stream)
    logger = logging.getLogger("tests")
    logger.debug("for few")
    logger.info("told %d", 1)
    logger.warning("beware")
    logger.error("failed", exc_info=ValueError("why"))
    return stream.getvalue()


def test_klog_format(stream):
    lines = write(stream, "text").splitlines()
    assert re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_klog\.py:\d+\] told 1", lines[0])
    assert [line[0] for line in lines[:3]] == ["I", "W", "E"]
    assert lines[-1] == "ValueError: why"


def test_json_log_format(stream):
    lines = list(map(orjson.loads, write(stream, "json").splitlines()))
    assert [line["msg"].splitlines()[0] for line in lines] == ["told 1", "beware", "failed"]
    assert ["v" in line for line in lines] == [True, False, False]
    assert lines[0]["caller"].startswith("test_klog.py:")


def test_verbose_lines_are_logged_at_their_verbosity(stream):
    assert "for few" in write(stream, "text", verbosity=4)


@pytest.mark.parametrize("form", ["text", "json"])
def test_client_texts_are_escaped_in_logs(stream, form):
    klog.attach(logging.getLogger(), klog.Logging(v=0, logging_format=form), stream)
    odd = "a\nE0101 00:00:00.000000 1 x.py:1] forged\x1b[2J\r\x9b\u2028\x00\udcff"
    logging.getLogger("tests").warning("said %s", odd)
    logging.getLogger("tests").error("failed", exc_info=ValueError("b\x1b[31m\udcff"))
    text = stream.getvalue()
    assert not {"\x1b", "\r", "\x9b", "\u2028", "\x00", "\udcff"} & set(text)
    assert sum("forged" in line and "said a" in line for line in text.splitlines()) == 1
    text.encode()
