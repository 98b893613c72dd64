"""The fixtures of in-process clusters."""

from tests.embedded.conftest import cluster, module_cluster  # noqa: F401 - pytest finds fixtures by their names here
