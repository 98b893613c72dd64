"""The links of pages that pass a proxy; the expected pages are those of k8s.io/apimachinery/pkg/util/proxy of 0.37.2."""

import gzip
import zlib

import pytest

from mockube.apiserver.http.proxied_links import LinkRewriter, rewrite_links, rewrite_url

PROXY = "/api/v1/namespaces/d/pods/p/proxy"
SIZES = (1, 2, 3, 7, 1000)
PAGES = [
    ('<a href="/rewriteme">test</a>', '<a href="PROXY/rewriteme">test</a>'),
    ("<A HREF=/x?a=1&copy=2&amp;b>t</A>", '<a href="PROXY/x?a=1&amp;copy=2&amp;b">t</A>'),
    ("<a href='http://10.0.0.9:80/y/'>", '<a href="PROXY/y/">'),
    ('<a href="http://api:6443/y#f">', '<a href="http://api:6443PROXY/y#f">'),
    ('<a href="http://other/y">', '<a href="http://other/y">'),
    ('<a href="rel">', '<a href="rel">'),
    ('<a href="//10.0.0.9:80/z">', '<a href="PROXY/z">'),
    ('<br/><img src=/a.png usemap="/m"/>', '<br/><img src="PROXY/a.png" usemap="PROXY/m"/>'),
    (
        '<script src="/s.js">if (a<b) write("<a href=\'/no\'>")</script><a href=/yes>',
        '<script src="PROXY/s.js">if (a<b) write("<a href=\'/no\'>")</script><a href="PROXY/yes">',
    ),
    ('<!-- <a href="/no"> --><a href="/yes">', '<!-- <a href="/no"> --><a href="PROXY/yes">'),
    ('<!--><a href="/q">', '<!--><a href="PROXY/q">'),
    ("<!--a--!><a href=/t>", '<!--a--!><a href="PROXY/t">'),
    ("<!-x><a href=/t>", '<!-x><a href="PROXY/t">'),
    (
        '<!DOCTYPE html><title><a href="/no"></title><body background=/b>',
        '<!DOCTYPE html><title><a href="/no"></title><body background="PROXY/b">',
    ),
    ('text < a <3 & <a href="PROXY/x">', 'text < a <3 & <a href="PROXY/x">'),
    ('<a href="/a//b/../c/">', '<a href="PROXY/a/c/">'),
    ("<p title='a\"b' class=x>", '<p title="a&#34;b" class="x">'),
    (
        '<form action="/f?x=1&y=%zz"><input formaction=/g disabled>',
        '<form action="PROXY/f?x=1&amp;y=%zz"><input formaction="PROXY/g" disabled="">',
    ),
    ('text <a href="/unfinished', "text "),
    ("a<", "a<"),
    ('<a   href = "/sp"  ><a/href=/slash>', '<a href="PROXY/sp"><a href="PROXY/slash">'),
    ('</a href=">"><b>', '</a href=">"><b>'),
    ('<?php <a href="/x"> ?>', '<?php <a href="/x"> ?>'),
    ('<a href="/é">ü</a>', '<a href="PROXY/%C3%A9">ü</a>'),
    ('<a href="/%zz"><a href="/x y">', '<a href="/%zz"><a href="PROXY/x%20y">'),
    ("<a =x href=/e><p A=1 a=2>", '<a =x="" href="PROXY/e"><p a="1">'),
    ('<svg><script/><a href="/q"></svg>', '<svg><script/><a href="/q"></svg>'),
    ("<plaintext><a href=/n></plaintext><a href=/m>", "<plaintext><a href=/n></plaintext><a href=/m>"),
    ("<SCRIPT>x</ScRiPt ><a href=/w>", '<script>x</ScRiPt ><a href="PROXY/w">'),
    ("<script></script></><a href=/v>", '<script></script></><a href="PROXY/v">'),
    ("<a href=/a\r\n title='x\r\ny'>", '<a href="PROXY/a" title="x\ny">'),
]  # fmt: skip


def rewrite(url):
    return rewrite_url(url, PROXY, "10.0.0.9:80", "api:6443")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("page", "expected"), PAGES)
def test_links_of_a_page_lead_through_the_proxy(page, expected, size):
    links, text = LinkRewriter(rewrite), page.replace("PROXY", PROXY).encode()
    parts = [links.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert b"".join([*parts, links.finish()]).decode() == expected.replace("PROXY", PROXY)


def test_page_after_an_endless_tag_is_not_changed():
    links = LinkRewriter(rewrite)
    start = b"<a title='" + b"x" * (1 << 20)
    assert links.feed(start) + links.feed(b"'><a href=/x>") + links.finish() == start + b"'><a href=/x>"


async def parts_of(*parts):
    for part in parts:
        yield part


@pytest.mark.parametrize(
    ("encoding", "encode", "decode"),
    [
        ("gzip", gzip.compress, gzip.decompress),
        ("deflate", lambda text: zlib.compress(text, wbits=-15), lambda text: zlib.decompress(text, -15)),
    ],
)
async def test_links_of_a_compressed_page_lead_through_the_proxy(encoding, encode, decode):
    page = encode(b'<a href="/rewriteme">test</a>')
    found = [part async for part in rewrite_links(parts_of(page[:9], page[9:]), encoding, rewrite)]
    assert decode(b"".join(found)).decode() == f'<a href="{PROXY}/rewriteme">test</a>'


async def test_body_of_another_encoding_than_its_header_breaks_the_connection():
    with pytest.raises(ConnectionError, match="the body is not gzip"):
        _ = [part async for part in rewrite_links(parts_of(b"<a href=/x>"), "gzip", rewrite)]
