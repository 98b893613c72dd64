"""Configurations of simulated servers, Corefiles, and the patterns in them take linear time, or are refused."""

import pytest

from mockube.apimachinery.regexp.captures import capturing_pattern
from mockube.extras.servers.httpd import configuration as httpd
from mockube.extras.servers.httpd.parser import HttpdConfigurationError, Reader
from mockube.extras.servers.nginx import configuration as nginx
from mockube.extras.servers.nginx import parser as nginx_parser
from mockube.network import corefile
from mockube.network.ingress import match_pattern
from mockube.publisher.gateway_routing import is_whole_match
from tests.support.hostile.doubling import check_linear

pytestmark = pytest.mark.slow

LIMITS = {"negligible": 0.03, "too_long": 0.5}
SIZE = 48 * 1024
MODULES = (
    "LoadModule rewrite_module modules/mod_rewrite.so\nLoadModule mpm_event_module modules/mod_mpm_event.so\n"
)
SERVER = "Listen 80\nLoadModule authz_core_module modules/mod_authz_core.so\nServerName main\n"


def read_httpd(text):
    reader = Reader(lambda path: [(path, MODULES + SERVER + text)], lambda _: False, {}, "/usr/local/apache2")
    httpd.configuration_of(reader.read("/h.conf"), lambda _: "")


def read_nginx(text):
    nginx.configuration_of(nginx_parser.parse("/n.conf", lambda path: [(path, text)]))


def read_corefile(text):
    corefile.parse.__wrapped__(text, "Corefile")


READERS = {
    "httpd": read_httpd,
    "nginx": read_nginx,
    "coredns": read_corefile,
}
ERRORS = (
    HttpdConfigurationError,
    nginx_parser.ConfigurationError,
    corefile.CorefileError,
)


def repeated(text, before="", after=""):
    return lambda size: before + text * (size // len(text)) + after


def numbered(*texts, before=""):
    """Return a maker of a text with each text repeated, with numbers in it."""
    return lambda size: (
        before
        + "".join(text.format(number) for text in texts for number in range(size // len(text) // len(texts)))
    )


def doubled(first, following, after=""):
    """Return a maker of a text in which each line has what the line before it has twice."""
    return lambda size: (
        first + "".join(following.format(i, i + 1) for i in range(size // len(following))) + after
    )


TEXTS = {
    "httpd": {
        "continued lines": repeated("\\\n"),
        "words": repeated("a ", "ServerAlias "),
        "quotes": repeated('"', "ServerAlias "),
        "unclosed variables": repeated("${", "ServerName "),
        "doubled variables": doubled("Define v0 aa\n", "Define v{1} ${{v{0}}}${{v{0}}}\n"),
        "sections": repeated("<Location /a>\n</Location>\n"),
        "virtual hosts": numbered("<VirtualHost *:80>\nServerName a{}\n</VirtualHost>\n"),
        "names": numbered("Listen 80\nAliasMatch a{} /b\n"),
        "rules in a folder": repeated("RewriteRule a b\n", "<Directory /a>\n", "</Directory>\n"),
        "conditions": repeated("RewriteCond a a\n"),
        "rules": repeated("RewriteRule a b\n"),
        "flags": repeated("NC,", "RewriteRule a b [", "NC]\n"),
        "a long pattern": repeated("(a|", "RewriteRule ", " b\n"),
    },
    "nginx": {
        "distinct locations": numbered("location /a{} {{ }} ", before="events {} http { server { "),
        "unclosed variables": repeated("${", "user "),
        "unclosed variables before a brace": repeated("${", "user ", "\n}"),
        "quotes": repeated('"a" ', "user "),
        "servers": repeated("server {} ", "events {} http { ", "}"),
        "locations": repeated("location ~ (a) { } ", "events {} http { server { ", "} }"),
        "distinct settings": repeated("daemon off; "),
        "variables of a text": repeated("$a${a}", "events {} http { server { return 200 '", "'; } }"),
    },
    "coredns": {
        "words": repeated("a ", ". { forward "),
        "quotes": repeated('"', ". { forward "),
        "escapes in a quotation": repeated("\\", '. { forward "'),
        "unclosed quotations": repeated('"\\', ". { forward "),
        "keys": repeated("a,", "", " { whoami }"),
        "blocks": repeated("a { ", ". { errors { "),
        "doubled snippets": doubled("(s0) {\nlog\n}\n", "(s{1}) {{\nimport s{0}\nimport s{0}\n}}\n"),
        "rules": repeated("rewrite name a b\n", ". {\n", "}"),
        "servers": numbered("a{} {{\nlog\n}}\n"),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("server", "make"),
    [
        pytest.param(server, make, id=f"{server}: {name}")
        for server, of in TEXTS.items()
        for name, make in of.items()
    ],
)
def test_configuration_is_read_in_linear_time(server, make):
    def read(text):
        try:
            READERS[server](text)
        except ERRORS as error:
            str(error)

    check_linear(make, read, SIZE, **LIMITS)


PATTERNS = ("(a+)+$", "(a|a)*b", "(.*)*x", "([a-z]+)+[0-9]", "(a?){500}a{500}", "(x+x+)+y")


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(
    "search",
    [
        lambda pattern, text: capturing_pattern(pattern).search(text),
        lambda pattern, text: capturing_pattern(pattern).fullmatch(text),
        match_pattern,
        is_whole_match,
    ],
)
def test_patterns_of_users_are_matched_in_linear_time(pattern, search):
    for letter in "ax":
        check_linear(
            lambda size, letter=letter: letter * size,
            lambda text: search(pattern, text),
            SIZE,
            negligible=0.15,
        )
