"""The metrics of HAProxy's Prometheus exporter, `http-request use-service prometheus-exporter`, as far as the simulation knows them. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from .configuration import HaproxyConfiguration, Proxy

CONTENT_TYPE: Final = "text/plain; version=0.0.4"
_UP, _DOWN = "UP", "DOWN"


def metrics_text(configuration: HaproxyConfiguration, requests: int) -> str:
    """Return the metrics of all proxies; `requests` is the number of requests to the port that was asked."""
    frontends = configuration.frontends
    backends = [proxy for proxy in configuration.proxies.values() if proxy.kind in ("backend", "listen")]
    families = (
        _family("haproxy_process_nbthread", "gauge", "Number of started threads (global.nbthread)", [("", 1)]),
        _family("haproxy_frontend_status", "gauge", "Current status of the service, per state label value.", _states(frontends)),
        _family("haproxy_frontend_http_requests_total", "counter", "Total number of HTTP requests processed by this object since the worker process started", (
            (f'{{proxy="{each.name}"}}', requests) for each in frontends
        )),
        _family("haproxy_backend_status", "gauge", "Current status of the service, per state label value.", _states(backends)),
        _family("haproxy_backend_active_servers", "gauge", "Total number of active UP servers with a non-zero weight", (
            (f'{{proxy="{each.name}"}}', sum(not (one.is_disabled or one.is_backup) for one in each.servers)) for each in backends
        )),
        _family("haproxy_backend_backup_servers", "gauge", "Total number of backup UP servers with a non-zero weight", (
            (f'{{proxy="{each.name}"}}', sum(one.is_backup and not one.is_disabled for one in each.servers)) for each in backends
        )),
        _family("haproxy_server_status", "gauge", "Current status of the service, per state label value.", _server_states(backends)),
    )  # fmt: skip
    return "".join(line for family in families for line in family)


def _family(name: str, kind: str, description: str, samples: Iterable[tuple[str, int]]) -> Iterator[str]:
    lines = [f"{name}{labels} {value}\n" for labels, value in samples]
    if lines:
        yield f"# HELP {name} {description}\n# TYPE {name} {kind}\n"
        yield from lines


def _states(proxies: Iterable[Proxy]) -> Iterator[tuple[str, int]]:
    for proxy in proxies:
        for state in (_DOWN, _UP):
            yield f'{{proxy="{proxy.name}",state="{state}"}}', int(state == _UP)


def _server_states(backends: Iterable[Proxy]) -> Iterator[tuple[str, int]]:
    for proxy in backends:
        for server in proxy.servers:
            present = "MAINT" if server.is_disabled else _UP
            for state in (_DOWN, _UP, "MAINT"):
                labels = f'{{proxy="{proxy.name}",server="{server.name}",state="{state}"}}'
                yield labels, int(state == present)
