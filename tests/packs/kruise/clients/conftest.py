"""The fixtures of the tests with real clients."""

from tests.clients.conftest import kubectl, namespace  # noqa: F401 - pytest finds fixtures by their names here
