"""The figures of docs/security.md are those of the code or of a test, and each group of guarantees names its tests."""

import re
from pathlib import Path

import pytest

from mockube.apimachinery import errors, wildcards
from mockube.apimachinery.regexp import captures, matcher
from mockube.apiserver import memory_limit
from mockube.apiserver.admission import limit_ranger
from mockube.apiserver.config.settings import Serving
from mockube.apiserver.http import connection, server, streams
from mockube.apiserver.kinds.common import internal
from mockube.apiserver.registry import registry, watch_stream
from mockube.apiserver.request import endpoints, health, snapshot_endpoint
from mockube.apiserver.wire import negotiation
from mockube.component_base import interpreter_memory
from mockube.container_runtime.simulated import work_turns
from mockube.container_runtime.simulated.shell import limits, process
from mockube.controller_manager.controllers.daemonset import pods as daemon_set_pods
from mockube.controller_manager.controllers.job import pods as job_pods
from mockube.controller_manager.controllers.replicaset import controller as replica_sets
from mockube.controller_manager.workloads.stateful import state as stateful_sets
from mockube.kubelet.server import listener

PAGE = " ".join(Path("docs/security.md").read_text().split())
MIB = 1 << 20
SERVING = Serving()
FIGURES = [
    ("request line and headers may have at most 1 MiB", connection.HEAD_BYTES, MIB + 4096),
    ("must be complete within 32 s. Beyond", server.HEAD_SECONDS, 32),
    ("Beyond 16 KiB of each", connection.SMALL_HEAD, 16 * 1024),
    ("headers use at most 64 MiB", server.ALL_HEADS_BYTES, 64 * MIB),
    ("at most 10,000 headers", connection.HEADERS, 10_000),
    ("first 16 KiB of an Accept header", negotiation.MAX_ACCEPT, 16 * 1024),
    ("A body may be at most 3 MiB", endpoints.MAX_BODY, 3 * MIB),
    ("Bodies of 64 KiB or more", endpoints.SMALL_BODY, 64 * 1024),
    ("or more use at most 128 MiB", endpoints.BODIES_BYTES, 128 * MIB),
    ("At most 8 MiB of large bodies", registry.DECODED_BYTES, 8 * MIB),
    ("A snapshot may be at most 1 GiB", snapshot_endpoint.MAX_SNAPSHOT_BYTES, 1 << 30),
    ("arrive within 300 s", snapshot_endpoint.BODY_SECONDS, 300),
    ("behind 200 others gets 429", memory_limit.MAX_WAITING_REQUESTS, 200),
    ("At most 400 reads", SERVING.max_requests_inflight, 400),
    ("reads and 200 writes", SERVING.max_mutating_requests_inflight, 200),
    ("more than 60 s gets 504", SERVING.request_timeout, 60),
    ("may have 350,000", matcher.MAX_COST, 350_000),
    ("more than 10^10 steps", matcher.MAX_STEPS, 10**10),
    ("A program may have 50,000 instructions", captures.MAX_COST, 50_000),
    ("more than 10,000,000 steps finds nothing", captures.MAX_STEPS, 10**7),
    ("the same 10,000 headers and 1 MiB", listener.HEADERS, connection.HEADERS),
    ("headers and 1 MiB; it logs", listener.HEAD_BYTES, connection.HEAD_BYTES),
    ("may have 5,000 wildcards", wildcards.MAX_WILDCARDS, 5_000),
    ("after 50 commands", work_turns.SLICE, 50),
    ("commands of 60 µs", process.COMMAND_NANOSECONDS, 60_000),
    ("A value may have 8 MiB", limits.MAX_VALUE, 8 * MIB),
    ("or 200,000 words", round(limits.MAX_EXPANDED / 5, -5), 200_000),
    ("of Linux, 128 KiB for each", limits.MAX_ARGUMENT, 128 << 10),
    ("and 2 MiB together", limits.MAX_ARGUMENTS, 2 * MIB),
    ("`sort` more than 400,000", limits.MAX_SORTED_LINES, 400_000),
    ("a command keep has 128 MiB", limits.MAX_KEPT, 128 * MIB),
    ("a container have 16 MiB together", limits.MAX_FILE_BYTES, 16 * MIB),
    ("more than 200,000,000 steps", limits.MAX_GREP_STEPS, 2 * 10**8),
    ("more than 4,000 lines", internal._MAX_COMPARED, 4_000),
    ("at most 1,000 lines of each part", internal._MAX_SHOWN, 1_000),
    ("at most 65,536 characters of a value", errors.MAX_VALUE_TEXT, 65_536),
    ("After 262,144 characters of errors of one object", errors.MAX_TEXT, 262_144),
    ("LimitRanges add at most 3 MiB", limit_ranger.MAX_FILLED, 3 * MIB),
    ("at most 4,000 connections", server.MAX_CONNECTIONS, 4_000),
    ("such a connection, and must be complete within 32 s", server.HEAD_SECONDS, 32),
    ("closed after 90 s", server.IDLE_SECONDS, 90),
    ("does not read for 30 s", server.STALLED_SECONDS, 30),
    ("16,384 events", watch_stream.BACKLOG, 16_384),
    ("and 64 MiB.", watch_stream.BACKLOG_BYTES, 64 * MIB),
    ("at most 4 KiB and discards", streams.MAX_MESSAGE, 4096),
    ("again 0.1 s later", server.RECOVERY_SECONDS, 0.1),
    ("more than 10 s behind", health.MAX_LAG_SECONDS, 10),
    ("while there are at most 400,000", interpreter_memory.MAX_COLLECTED_OBJECTS, 400_000),
]
CREATED_PODS = (
    replica_sets.BURST_REPLICAS,
    job_pods.MAX_CONCURRENT_PODS,
    daemon_set_pods.BURST_REPLICAS,
    stateful_sets.MAX_MISSING_PODS,
)
"""The limits of single reconciliations."""
MEASURED = [
    ("more than 150 ms of CPU time", "tests/integration/test_event_loop.py", "BOUND = 0.15\n"),
    ("restoration of 100,000 objects", "tests/integration/test_event_loop.py", "RESTORED = 100_000 if"),
    ("16 requests", "tests/integration/test_process_memory.py", "LARGE_REQUESTS, SECONDS = 16,"),
    ("less than 800 MB", "tests/integration/test_process_memory.py", "before < 800 * MIB"),
    ("Unread pongs use at most 256 KiB", "tests/integration/test_api_connections.py", "size() < 256 << 10"),
    ("100 ms for 99 of 100 responses, and 300 ms", "benchmarks/hostile.py", "P99, MAX = 0.100, 0.300\n"),
]
"""Figures that no constant limits, and the lines that check them."""


@pytest.mark.parametrize(("text", "value", "figure"), FIGURES)
def test_figure_of_page_is_that_of_code(text, value, figure):
    assert text in PAGE
    assert value == figure


@pytest.mark.parametrize(("text", "path", "check"), MEASURED)
def test_measured_figure_of_page_is_that_of_a_test(text, path, check):
    assert text in PAGE
    assert check in Path(path).read_text()


def test_one_reconciliation_creates_at_most_as_many_pods_as_on_page():
    assert "one reconciliation creates at most 500 pods" in PAGE
    assert max(CREATED_PODS) == 500


def test_one_user_can_occupy_all_writes_as_on_page():
    assert "by sending 200 bodies slowly" in PAGE
    assert SERVING.max_mutating_requests_inflight == 200


def test_each_group_of_guarantees_names_its_tests():
    groups = [part for part in PAGE.split(" ## ") if " Guarantees: " in part]
    assert len(groups) == 7
    for group in groups:
        assert " Tests: `tests/" in group, group.partition(" Guarantees: ")[0]


def test_each_named_test_of_page_exists():
    paths = re.findall(r"`(tests/[^`:]+)(?:::([^`]+))?`", PAGE)
    assert len(paths) > 60
    assert [path for path, _ in paths if not Path(path).exists()] == []
    assert [name for path, name in paths if name and f"def {name}(" not in Path(path).read_text()] == []
