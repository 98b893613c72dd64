"""The value of --history."""

import sys
from argparse import ArgumentTypeError

import pytest

from mockube.apiserver.config.command_line import parse, store_problem
from mockube.apiserver.config.history import ALL, limits_of_store, read_history
from mockube.apiserver.config.settings import StorageOptions

ANY = sys.maxsize


@pytest.mark.parametrize(
    ("text", "seconds", "revisions", "size"),
    [
        ("1h", 3600, ANY, ANY),
        ("90s", 90, ANY, ANY),
        ("100000", None, 100_000, ANY),
        ("64Mi", None, ANY, 64 << 20),
        ("2M", None, ANY, 2_000_000),
        ("1h,64Mi,5000", 3600, 5000, 64 << 20),
        ("1h,30m", 1800, ANY, ANY),
    ],
)
def test_history_is_limited_by_age_revisions_and_bytes(text, seconds, revisions, size):
    read = read_history(text)
    assert (read.seconds, read.limits.revisions, read.limits.bytes) == (seconds, revisions, size)


def test_all_history_has_no_limit():
    assert read_history("all") is ALL


@pytest.mark.parametrize(
    "text", ["", "-5m", "0", "0s", "1Ki", "much", "1h,all", "1.5", "64MB", "1h,,2h", "٣"]
)
def test_other_values_are_refused(text):
    with pytest.raises(ArgumentTypeError):
        read_history(text)


def test_bytes_are_shared_by_versions_and_authors():
    assert limits_of_store(read_history("3Mi")).bytes == 2 << 20
    assert limits_of_store(None).bytes == 64 << 20


def test_history_of_an_etcd_is_refused_by_name():
    problem = store_problem(StorageOptions(etcd_servers=("http://127.0.0.1:1",), history=ALL))
    assert problem.startswith("--etcd-servers and --history cannot be set together")


def test_flag_is_read():
    assert parse(["--history=1h,64Mi"], {}).store.history == read_history("1h,64Mi")
