"""Paths as proxies compare them with their rules: those of nginx 1.22, and normal forms of RFC 3986."""

import pytest

from mockube.network.request_paths import (
    escaped_for_nginx,
    nginx_path,
    normal_path,
    path_without_escaped_slashes,
)


@pytest.mark.parametrize(
    ("path", "of_nginx", "normal"),
    [
        ("/a/b", "/a/b", "/a/b"),
        ("/", "/", "/"),
        ("//", "/", "/"),
        ("//a///b//", "/a/b/", "/a/b/"),
        ("/a/./b/.", "/a/b/", "/a/b/"),
        ("/a/b/..", "/a/", "/a/"),
        ("/a/..", "/", "/"),
        ("/public/../admin", "/admin", "/admin"),
        ("/public//..//admin", "/admin", "/admin"),
        ("/public/%2e%2e/admin", "/admin", "/admin"),
        ("/public/.%2E/admin", "/admin", "/admin"),
        ("/public/..%2fadmin", "/admin", "/public/..%2Fadmin"),
        ("/public%2f..%2fadmin", "/admin", "/public%2F..%2Fadmin"),
        ("/a%2Fb", "/a/b", "/a%2Fb"),
        ("/..", None, "/"),
        ("/a/../../b", None, "/b"),
        ("/%2e%2e/b", None, "/b"),
        ("/a%00b", None, "/a%00b"),
        ("/%41%7e%2d", "/A~-", "/A~-"),
        ("/a%20b%3fc%23%25", "/a b?c#%", "/a%20b%3Fc%23%25"),
        ("/%252e%252e/a", "/%2e%2e/a", "/%252e%252e/a"),
        ("/%c3%a9", "/é", "/%C3%A9"),
        ("/a/.../..b/.c", "/a/.../..b/.c", "/a/.../..b/.c"),
        ("/public/..;/admin", "/public/..;/admin", "/public/..;/admin"),
        ("/a\\..\\b", "/a\\..\\b", "/a\\..\\b"),
        ("/a%5c..%5cb", "/a\\..\\b", "/a%5C..%5Cb"),
        ("/a+b:@&=;,!$'()*", "/a+b:@&=;,!$'()*", "/a+b:@&=;,!$'()*"),
    ],
)
def test_path_is_compared_without_dots_slashes_and_escapes(path, of_nginx, normal):
    assert (nginx_path(path), normal_path(path)) == (of_nginx, normal)


@pytest.mark.parametrize("path", ["/a", "/a/../b%20", "/public/..%2fadmin", "/x%c3%a9//y/."])
def test_normal_form_is_its_own_normal_form(path):
    assert normal_path(normal_path(path)) == normal_path(path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/../b", "/a/../b"),
        ("/a%2Fb", "/a/b"),
        ("/public/..%2fadmin", "/admin"),
        ("/a%5cb", "/a/b"),
        ("/%2fb.example/", "/b.example/"),
        ("/%5c/b.example/", "/b.example/"),
    ],
)
def test_escaped_slash_leads_to_path_without_it(path, expected):
    assert path_without_escaped_slashes(path) == expected


def test_decoded_text_is_escaped_as_by_nginx():
    assert escaped_for_nginx('a b?c#%/é\r\n"<>\\&;=+') == "a%20b%3Fc%23%25/%C3%A9%0D%0A%22%3C%3E%5C&;=+"
