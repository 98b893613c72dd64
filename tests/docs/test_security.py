"""The figures of docs/security.md are those of the code, and each group of guarantees names its tests."""

import re
from pathlib import Path

import pytest

from mockube.apimachinery import errors
from mockube.apimachinery.regexp import matcher
from mockube.apiserver import memory_limit
from mockube.apiserver.config.settings import Serving
from mockube.apiserver.http import connection, server, streams
from mockube.apiserver.kinds.common import internal
from mockube.apiserver.registry import watch_stream
from mockube.apiserver.request import endpoints, health, snapshots
from mockube.apiserver.wire import negotiation

PAGE = Path("docs/security.md").read_text()
MIB = 1 << 20
FIGURES = [
    ("have at most 1 MiB", connection.HEAD_BYTES, MIB + 4096),
    ("complete within 32 s", server.HEAD_SECONDS, 32),
    ("headers use at most 64 MiB", server.ALL_HEADS_BYTES, 64 * MIB),
    ("at most 10,000 headers", connection.HEADERS, 10_000),
    ("first 16 KiB of an Accept header", negotiation.MAX_ACCEPT, 16 * 1024),
    ("A body has at most 3 MiB", endpoints.MAX_BODY, 3 * MIB),
    ("a snapshot has at most 1 GiB", snapshots.MAX_SNAPSHOT_BYTES, 1 << 30),
    ("and 300 s", snapshots.BODY_SECONDS, 300),
    ("200 of 3 MiB at once", memory_limit.MAX_WAITING_REQUESTS, 200),
    ("may have 350,000", matcher.MAX_COST, 350_000),
    ("more than 10^10 steps", matcher.MAX_STEPS, 10**10),
    ("above 4,000 lines", internal._MAX_COMPARED, 4_000),
    ("at most 1,000 lines of each part", internal._MAX_SHOWN, 1_000),
    ("at most 65,536 characters of a value", errors.MAX_VALUE_TEXT, 65_536),
    ("and 262,144 characters of all errors", errors.MAX_TEXT, 262_144),
    ("at most 4,000 connections", server.MAX_CONNECTIONS, 4_000),
    ("closed after 90 s", server.IDLE_SECONDS, 90),
    ("does not read for 30 s", server.STALLED_SECONDS, 30),
    ("16,384 events", watch_stream.BACKLOG, 16_384),
    ("and 64 MiB.", watch_stream.BACKLOG_BYTES, 64 * MIB),
    ("at most 4 KiB and discards", streams.MAX_MESSAGE, 4096),
    ("again 0.1 s later", server.RECOVERY_SECONDS, 0.1),
    ("more than 10 s behind", health.MAX_LAG_SECONDS, 10),
]


@pytest.mark.parametrize(("text", "value", "figure"), FIGURES)
def test_figure_of_page_is_that_of_code(text, value, figure):
    assert text in " ".join(PAGE.split())
    assert value == figure


def test_limits_of_requests_in_flight_are_those_of_page():
    assert "At most 400 reads and 200 writes" in PAGE
    serving = Serving()
    assert (serving.max_requests_inflight, serving.max_mutating_requests_inflight) == (400, 200)


def test_each_group_of_guarantees_names_its_tests():
    groups = [part for part in re.split("^## ", PAGE, flags=re.MULTILINE) if "\nGuarantees:\n" in part]
    assert len(groups) >= 8
    for group in groups:
        assert "\nTests: `tests/" in group, group.partition("\n")[0]
