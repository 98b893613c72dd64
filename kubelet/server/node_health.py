"""`/healthz` of simulated nodes, and its results for `/metrics/slis`."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from aiohttp import web

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.exposition import CONTENT_TYPE, metrics_text
from mockube.component_base.metrics import Collected
from mockube.component_base.process_metrics import HEALTH_CHECK, HEALTH_CHECKS

from .http_errors import HttpError
from .metric_families import START_TIME

CHECKS: Final = ("ping", "log", "syncloop")
SINGLE_CHECKS: Final = frozenset(f"/healthz/{check}" for check in CHECKS)
METRICS_HEADERS: Final = {"Content-Type": CONTENT_TYPE}
_HEADERS: Final = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}


class NodeHealthEndpoints:
    """Serves health checks that always succeed, and counts those of `/healthz`, but not single checks, as upstream."""

    def __init__(self) -> None:
        self._totals: dict[str, Counter[str]] = {}
        """The number of checks, by node and check."""

    def respond(self, request: web.BaseRequest, node: ReadOnlyTree) -> web.Response:
        if request.path in {"/healthz", "/healthz/"}:
            return self._respond_with_checks(request, meta.name(node))
        if request.path in SINGLE_CHECKS:
            return web.Response(text="ok", headers=_HEADERS)
        if request.path != "/metrics/slis":
            raise HttpError(404, "404 page not found\n")
        if request.method == "DELETE":
            self._totals.pop(meta.name(node), None)
            return web.Response(text="metrics reset\n")
        return web.Response(body=metrics_text(self.metrics(node)), headers=METRICS_HEADERS)

    def _respond_with_checks(self, request: web.BaseRequest, node: str) -> web.Response:
        excluded = set(request.query.getall("exclude", ()))
        self._totals.setdefault(node, Counter()).update(set(CHECKS) - excluded)
        if "verbose" not in request.query:
            return web.Response(text="ok", headers=_HEADERS)
        lines = [f"[+]{check} {'excluded: ok' if check in excluded else 'ok'}" for check in CHECKS]
        if unknown := excluded - set(CHECKS):
            names = ",".join(quote(name) for name in sorted(unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        return web.Response(text="\n".join([*lines, "healthz check passed\n"]), headers=_HEADERS)

    def metrics(self, node: ReadOnlyTree) -> Iterator[Collected]:
        """Yield the metrics of a node's checks; its kubelet counts as started at the creation of the Node."""
        started = meta.creation_timestamp(node)
        if started is not None:
            yield Collected(START_TIME, [((), started.timestamp())])
        totals = self._totals.get(meta.name(node), Counter[str]())
        yield Collected(HEALTH_CHECK, [((check, "healthz"), 1) for check in totals])
        yield Collected(
            HEALTH_CHECKS, [((check, "healthz", "success"), count) for check, count in totals.items()]
        )
