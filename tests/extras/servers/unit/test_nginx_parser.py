"""A configuration of nginx is read as nginx reads it, and an invalid one fails in the words of `nginx -t`."""

import pytest

from mockube.extras.servers.nginx.parser import ConfigurationError, parse


def read(text, **files):
    others = {f"/etc/nginx/{name.replace('_', '.')}": content for name, content in files.items()}

    def read_files(path):
        if path.endswith("*"):
            return sorted((name, content) for name, content in others.items() if name.startswith(path[:-1]))
        if path not in others:
            raise FileNotFoundError(2, "No such file or directory")
        return [(path, others[path])]

    others["/f"] = text
    return parse("/f", read_files)


def flat(directives):
    return [
        (each.name, each.arguments, None if each.block is None else flat(each.block)) for each in directives
    ]


def test_directives_have_arguments_and_blocks():
    text = """
    user  nginx;  # the user of workers
    http {
        log_format main '$remote_addr "$request" '
                        "a\\tb";
        server { listen 80; location ~ "^/[0-9]{2}\\.php$" { return 200 "it's;\\n"; } }
        map $uri $x { default 0; "~^/a{1,2}" "1 2"; }
    }
    """
    (user, http) = flat(read(text))
    assert user == ("user", ("nginx",), None)
    log_format, server, mapping = http[2]
    assert log_format == ("log_format", ("main", '$remote_addr "$request" ', "a\tb"), None)
    location = server[2][1]
    assert location[:2] == ("location", ("~", "^/[0-9]{2}\\.php$"))
    assert location[2] == [("return", ("200", "it's;\n"), None)]
    assert mapping[2] == [("default", ("0",), None), ("~^/a{1,2}", ("1 2",), None)]


def test_included_files_are_read_in_their_order():
    directives = read(
        "events {} http { include /etc/nginx/c*; }", c1_conf="server {}", c2_conf="upstream u { server a; }"
    )
    assert [each.name for each in directives[1].block] == ["server", "upstream"]
    assert [each.file for each in directives[1].block] == ["/etc/nginx/c1.conf", "/etc/nginx/c2.conf"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo bar;", 'unknown directive "foo" in /f:1'),
        ("http {\n server {\n  foo on;\n }\n}", 'unknown directive "foo" in /f:3'),
        ("listen 80;", '"listen" directive is not allowed here in /f:1'),
        ("server { listen 80; }", '"server" directive is not allowed here in /f:1'),
        ("http {\n", 'unexpected end of file, expecting "}" in /f:2'),
        ("http {\n}\n}", 'unexpected "}" in /f:3'),
        ("user nginx", 'unexpected end of file, expecting ";" or "}" in /f:1'),
        ("user nginx\n}", 'unexpected "}" in /f:2'),
        (";", 'unexpected ";" in /f:1'),
        ("user 'nginx'a;", 'unexpected "a" in /f:1'),
        ("user;", 'invalid number of arguments in "user" directive in /f:1'),
        ("user a b c;", 'invalid number of arguments in "user" directive in /f:1'),
        ("user nginx {}", 'directive "user" is not terminated by ";" in /f:1'),
        ("events;", 'directive "events" has no opening "{" in /f:1'),
        ("daemon maybe;", 'invalid value "maybe" in "daemon" directive, it must be "on" or "off" in /f:1'),
        ("daemon on;\ndaemon off;", '"daemon" directive is duplicate in /f:2'),
        (
            "http { include missing.conf; }",
            'open() "missing.conf" failed (2: No such file or directory) in /f:1',
        ),
        ("http { server {" + "location / {" * 40, "too many nested blocks or includes in /f:1"),
    ],
)
def test_invalid_configuration_fails_in_the_words_of_nginx(text, message):
    with pytest.raises(ConfigurationError) as caught:
        read(text)
    assert str(caught.value) == message


def test_missing_file_is_not_opened():
    with pytest.raises(ConfigurationError) as caught:
        parse(
            "/etc/nginx/nginx.conf",
            lambda _: (_ for _ in ()).throw(FileNotFoundError(2, "No such file or directory")),
        )
    assert str(caught.value) == 'open() "/etc/nginx/nginx.conf" failed (2: No such file or directory)'


def test_directives_of_loaded_modules_are_accepted():
    directives = read("load_module modules/x.so; http { js_import a; js_block { anything goes; } }")
    assert [each.name for each in directives[1].block] == ["js_import", "js_block"]


def test_file_that_includes_itself_ends():
    with pytest.raises(ConfigurationError, match="too many nested blocks or includes"):
        read("include /etc/nginx/a.conf;", a_conf="include /etc/nginx/a.conf;")
