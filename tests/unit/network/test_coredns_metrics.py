"""CoreDNS counts queries by its plugin prometheus."""

from mockube.network.coredns import Query
from mockube.network.coredns_metrics import ServerMetrics
from mockube.network.corefile import parse
from mockube.network.dns import Answer

COREFILE = (
    ".:53 {\n  kubernetes cluster.local\n  prometheus :9153\n}\nquiet.org:53 {\n  forward . 1.1.1.1\n}\n"
)


def test_queries_are_counted_by_type_family_and_answer():
    metrics = ServerMetrics(parse(COREFILE, "Corefile"))
    metrics.note(Query("a.cluster.local.", "A"), "10.0.0.1", "UDP", Answer(plugin="kubernetes"))
    metrics.note(
        Query("a.cluster.local.", "NAPTR"), "fd00::1", "TCP", Answer(exists=False, plugin="kubernetes")
    )
    metrics.note(Query("b.org", "A"), "10.0.0.1", "UDP", Answer(exists=False, code="REFUSED"))
    metrics.note(Query("a.quiet.org", "A"), "10.0.0.1", "UDP", Answer(plugin="forward"))
    lines = metrics.text().splitlines()
    for line in (
        "# TYPE coredns_dns_requests_total counter",
        'coredns_dns_requests_total{family="1",proto="udp",server="dns://:53",type="A",view="",zone="."} 2',
        'coredns_dns_requests_total{family="2",proto="tcp",server="dns://:53",type="other",view="",zone="."} 1',
        'coredns_dns_responses_total{plugin="kubernetes",rcode="NXDOMAIN",server="dns://:53",view="",zone="."} 1',
        'coredns_dns_responses_total{plugin="",rcode="REFUSED",server="dns://:53",view="",zone="."} 1',
        "coredns_panics_total 0",
        'coredns_plugin_enabled{name="kubernetes",server="dns://:53",view="",zone="."} 1',
    ):
        assert line in lines
    assert not [line for line in lines if 'plugin="forward"' in line]


def test_without_the_plugin_nothing_is_shown():
    assert ServerMetrics(parse(".:53 {\n  kubernetes cluster.local\n}\n", "Corefile")).text() == ""
