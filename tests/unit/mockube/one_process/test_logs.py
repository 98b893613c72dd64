import logging

import pytest

from mockube.one_process.logs import is_of_manager


@pytest.mark.parametrize(
    ("logger", "expected"),
    [
        ("mockube.scheduler.cycle", True),
        ("mockube.controller_manager.app", True),
        ("mockube.client.cache.reflector", True),
        ("mockube.apiserver.serve", False),
        ("mockube.clients", False),
        ("asyncio", False),
    ],
)
def test_record_is_in_the_log_of_its_program(logger, expected):
    record = logging.LogRecord(logger, logging.INFO, "file.py", 1, "message", (), None)
    assert is_of_manager(record) is expected
