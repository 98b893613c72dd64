"""What CoreDNS' plugin `prometheus` shows of the queries that a server has answered. Pure.

Durations and sizes are not shown, because nobody knows them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from .coredns import Query
from .corefile import Corefile
from .dns import Answer

_TYPES: Final = frozenset(
    [
        "A",
        "AAAA",
        "MX",
        "SOA",
        "CNAME",
        "PTR",
        "TXT",
        "NS",
        "SRV",
        "DS",
        "DNSKEY",
        "RRSIG",
        "NSEC",
        "NSEC3",
        "HTTPS",
        "IXFR",
        "AXFR",
        "ANY",
    ]
)
"""The types that CoreDNS counts each by its name."""
_OTHER: Final = "other"
_PLUGIN: Final = "prometheus"
_PORT: Final = 53
_ERRORS: Final = frozenset({"SERVFAIL", "REFUSED"})


class ServerMetrics:
    """The queries of one server."""

    def __init__(self, corefile: Corefile) -> None:
        self._corefile = corefile
        self._requests = Counter[tuple[tuple[str, str], ...]]()
        self._responses = Counter[tuple[tuple[str, str], ...]]()

    def use(self, corefile: Corefile) -> None:
        """Note the Corefile that the server has read."""
        self._corefile = corefile

    def note(self, query: Query, client: str, protocol: str, answer: Answer) -> None:
        """Count a query and its answer, if the plugin is on in the server block of the name."""
        found = self._corefile.block_of(query.name.rstrip(".").lower())
        if found is None or not found[1].of(_PLUGIN):
            return
        zone = f"{found[0]}."
        common = {"server": f"dns://:{_PORT}", "view": "", "zone": zone}
        request = {
            "family": "2" if ":" in client else "1",
            "proto": protocol.lower(),
            "type": query.record_type if query.record_type in _TYPES else _OTHER,
        }
        code = answer.code or ("NOERROR" if answer.exists else "NXDOMAIN")
        plugin = "" if code in _ERRORS else answer.plugin
        self._requests[_labels({**common, **request})] += 1
        self._responses[_labels({**common, "plugin": plugin, "rcode": code})] += 1

    def text(self) -> str:
        """Return the metrics in the format of Prometheus."""
        if not any(block.of(_PLUGIN) for block in self._corefile.blocks):
            return ""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _family(
            "coredns_dns_requests_total",
            "Counter of DNS requests made per zone, protocol and family.",
            "counter",
            self._requests,
        )
        yield from _family(
            "coredns_dns_responses_total", "Counter of response status codes.", "counter", self._responses
        )
        yield from _family(
            "coredns_panics_total",
            "A metrics that counts the number of panics.",
            "counter",
            {(): 0},
        )
        yield from _family(
            "coredns_plugin_enabled",
            "A metric that indicates whether a plugin is enabled on per server and zone basis.",
            "gauge",
            dict(self._plugins()),
        )

    def _plugins(self) -> Iterator[tuple[tuple[tuple[str, str], ...], int]]:
        for block in self._corefile.blocks:
            for zone, port in block.zones:
                for name in {directive.name for directive in block.directives}:
                    labels = {"name": name, "server": f"dns://:{port}", "view": "", "zone": f"{zone}."}
                    yield _labels(labels), 1


def _labels(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(values.items()))


def _family(
    name: str, description: str, kind: str, values: Mapping[tuple[tuple[str, str], ...], int]
) -> Iterator[str]:
    if not values:
        return
    yield f"# HELP {name} {description}"
    yield f"# TYPE {name} {kind}"
    for labels, value in sorted(values.items()):
        text = ",".join(f'{label}="{word}"' for label, word in labels)
        yield f"{name}{{{text}}} {value}" if text else f"{name} {value}"
