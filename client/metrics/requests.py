"""Requests to the API server. Every one is counted, so counting is a few additions to plain numbers."""

from typing import Final

from mockube.component_base.metrics import MetricsRegistry

from . import families

NO_CODE: Final = "<error>"
"""The code of a request without a response."""


class ClientMetrics:
    """The metrics of requests to the server; client-go's `rest_client_*`."""

    def __init__(self, metrics: MetricsRegistry) -> None:
        self.registry = metrics
        self._requests = metrics.numbers(families.REST_REQUESTS)
        self._retries = metrics.numbers(families.REST_RETRIES)
        self._durations = metrics.distributions(families.REST_DURATION)
        self._waits = metrics.distributions(families.REST_RATE_LIMITER)
        self._request_sizes = metrics.distributions(families.REST_REQUEST_SIZE)
        self._response_sizes = metrics.distributions(families.REST_RESPONSE_SIZE)

    def record_result(self, *, code: int | None, host: str, method: str, seconds: float) -> None:
        """Count an attempt; the code is None if there was no response."""
        self._requests.of(NO_CODE if code is None else str(code), method, host).value += 1
        self._durations.of(method, host).observe(seconds)

    def record_sizes(self, *, host: str, method: str, sent: int, received: int) -> None:
        """Count the bodies of a request and of its response."""
        self._request_sizes.of(method, host).observe(sent)
        self._response_sizes.of(method, host).observe(received)

    def record_retry(self, *, code: int | None, host: str, method: str) -> None:
        self._retries.add(1, NO_CODE if code is None else str(code), method, host)

    def record_wait(self, *, host: str, method: str, seconds: float) -> None:
        self._waits.of(method, host).observe(seconds)
