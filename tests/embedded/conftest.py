"""The tests of a file share one cluster; its recorded calls are cleared before each test."""

import gc
import tempfile
import threading
import warnings
from pathlib import Path

import pytest

from mockube import Cluster

PORT_FORWARD = "Kubernetes port forward proxy"
"""The start of the names of the official client's threads that forward ports, which end after their connections."""
WAIT_TIMEOUT = 30.0


@pytest.fixture(scope="module", autouse=True)
def clients():
    """Collect the connections that clients of a file did not close, so that no later test gets their warnings."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith(PORT_FORWARD):
            thread.join(WAIT_TIMEOUT)
            assert not thread.is_alive(), thread.name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def module_cluster():
    with Cluster(nodes=2) as started:
        yield started


@pytest.fixture
def cluster(module_cluster):
    module_cluster.clear_calls()
    return module_cluster


@pytest.fixture(scope="module")
def machine_folder():
    """A folder that containers that are processes see, too: their /tmp is their own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)
