"""Corefiles: what is read, and the words with which CoreDNS refuses one."""

import pytest

from mockube.network.corefile import CorefileError, parse

DEFAULT = """
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
"""


def test_default_corefile_has_one_server_for_all_names():
    corefile = parse(DEFAULT, "Corefile")
    [block] = corefile.blocks
    assert (block.zones, corefile.has_reload) == ((("", 53),), True)
    [kubernetes] = block.of("kubernetes")
    assert kubernetes.arguments == ("cluster.local", "in-addr.arpa", "ip6.arpa")
    assert [*kubernetes.lines("pods")] == [("insecure",)]


def test_name_is_served_by_the_most_specific_zone():
    corefile = parse(
        ". { whoami }\nexample.org:53 a.example.org {\n  whoami\n}\nb.org:1053 {\n  whoami\n}", "Corefile"
    )
    zones = {
        name: corefile.block_of(name)[0] for name in ("x.com", "x.example.org", "y.a.example.org", "b.org")
    }
    assert zones == {
        "x.com": "",
        "x.example.org": "example.org",
        "y.a.example.org": "a.example.org",
        "b.org": "",
    }


def test_snippet_is_imported():
    corefile = parse("(common) {\n  errors\n  reload\n}\n.:53 {\n  import common\n  whoami\n}", "Corefile")
    assert [each.name for each in corefile.blocks[0].directives] == ["errors", "reload", "whoami"]


def test_empty_file_is_a_server_that_knows_nothing():
    assert [each.name for each in parse("# nothing\n", "Corefile").blocks[0].directives] == ["whoami"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".:53 {\n  kubernets cluster.local\n}", "C:2 - Error during parsing: Unknown directive 'kubernets'"),
        (".:53 {\n  errors\n", "C:2 - Syntax error: Unexpected token 'errors', expecting '}'"),
        (".:53", "C:1 - Error during parsing: Unexpected EOF"),
        (".:53 {\n  hosts {\n 1.2.3.4 a\n", "C:3 - Error during parsing: Unexpected EOF"),
        (
            ".:53 {\n  forward .\n}",
            "plugin/forward: C:2 - Error during parsing: Wrong argument count or unexpected line ending after '.'",
        ),
        (
            ".:53 {\n  forward . dns.example.org\n}",
            'plugin/forward: not an IP address or file: "dns.example.org"',
        ),
        (
            ".:53 {\n  kubernetes cluster.local {\n    pod insecure\n  }\n}",
            "plugin/kubernetes: C:2 - Error during parsing: unknown property 'pod'",
        ),
        (
            ".:53 {\n  kubernetes {\n    pods all\n  }\n}",
            "plugin/kubernetes: wrong value for pods: all,  must be one of: disabled, verified, insecure",
        ),
        (
            '.:53 {\n  template IN A {\n    match "("\n  }\n}',
            "plugin/template: C:2 - Error during parsing: could not parse regex: (, error parsing regexp: missing closing ): `(`",
        ),
        (
            '.:53 {\n  template IN A {\n    answer "{{ .Name 60 IN A 1.2.3.4"\n  }\n}',
            "plugin/template: C:2 - Error during parsing: could not compile template: {{ .Name 60 IN A 1.2.3.4, template: answer:1: unclosed action",
        ),
        (".:53 {\n  rewrite name regex ( b\n}", "plugin/rewrite: invalid regex matching pattern: ("),
        (
            ".:53 {\n  rewrite name regex a* {0}\n}",
            "plugin/rewrite: the rewrite regex pattern ({0}) uses more subexpressions than its corresponding matching regex pattern (a*)",
        ),
        (".:53 {\n  whoami\n}\n.:53 {\n  whoami\n}", "cannot serve dns://.:53 - it is already defined"),
    ],
)
def test_mistake_is_refused_with_the_words_of_coredns(text, message):
    with pytest.raises(CorefileError) as caught:
        parse(text, "C")
    assert str(caught.value) == message


@pytest.mark.thorough
def test_deep_blocks_are_read_without_recursion():
    with pytest.raises(CorefileError, match="Unexpected EOF"):
        parse(".:53 {\n errors {\n" + "a {\n" * 100_000, "C")
