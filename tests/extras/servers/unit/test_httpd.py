"""httpd: the errors of its configuration in its own words, and what it answers by one. The texts are those of httpd 2.4."""

import pytest

from mockube.container_runtime.simulated.server_contract import ProxyReply, Request
from mockube.extras.servers.httpd.answering import answer
from mockube.extras.servers.httpd.configuration import configuration_of
from mockube.extras.servers.httpd.parser import HttpdConfigurationError, Reader

MODULES = (
    "mpm_event",
    "authz_core",
    "authz_host",
    "dir",
    "mime",
    "alias",
    "rewrite",
    "proxy",
    "proxy_http",
    "autoindex",
    "headers",
    "log_config",
)
HEAD = "".join(f"LoadModule {name}_module modules/mod_{name}.so\n" for name in MODULES) + "ServerName main\n"
LISTEN = "Listen 80\nDocumentRoot /srv\n<Directory /srv>\nRequire all granted\n</Directory>\n"
LINE = HEAD.count("\n") + 1
MAIN = "/c/httpd.conf"


class Files:
    def __init__(self, **files):
        self.files = {"/srv/index.html": b"home", "/srv/sub/a.txt": b"a", "/other/x.html": b"x", **files}

    def kind(self, path):
        if path in self.files:
            return "file"
        return "folder" if any(name.startswith(f"{path.rstrip('/')}/") for name in self.files) else ""

    def read(self, path):
        return self.files[path]

    def names(self, path):
        return sorted(
            {
                name.removeprefix(f"{path}/").split("/")[0]
                for name in self.files
                if name.startswith(f"{path}/")
            }
        )


def configuration(text, head=HEAD, **files):
    texts = {MAIN: head + text, **files}

    def read_files(path):
        if path in texts:
            return [(path, texts[path])]
        raise FileNotFoundError(2, "No such file or directory")

    reader = Reader(read_files, lambda path: path in ("/srv", "/c"), {"PORT": "80"}, "/usr/local/apache2")
    return configuration_of(reader.read(MAIN), Files().kind)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Foo bar", "AH00526: Syntax error on line {0} of {1}:\nInvalid command 'Foo', perhaps misspelled or defined by a module not included in the server configuration"),
        ("SSLEngine on", "AH00526: Syntax error on line {0} of {1}:\nInvalid command 'SSLEngine', perhaps misspelled or defined by a module not included in the server configuration"),
        ("LoadModule no_module modules/mod_no.so", "httpd: Syntax error on line {0} of {1}: Cannot load modules/mod_no.so into server: /usr/local/apache2/modules/mod_no.so: cannot open shared object file: No such file or directory"),
        ("ServerName", "AH00526: Syntax error on line {0} of {1}:\nServerName takes one argument, The hostname and port of the server"),
        ("<Directory /x>\nRequire all granted", "httpd: Syntax error on line {0} of {1}: {1}:{0}: <Directory> was not closed."),
        ("</Directory>", "httpd: Syntax error on line {0} of {1}: </Directory> without matching <Directory> section"),
        ("DocumentRoot /nope", "AH00526: Syntax error on line {0} of {1}:\nDocumentRoot '/nope' is not a directory, or is not readable"),
        ("Include /nope/x.conf", "httpd: Syntax error on line {0} of {1}: Could not open configuration file /nope/x.conf: No such file or directory"),
        ("Include /nope/*.conf", "httpd: Syntax error on line {0} of {1}: Include/IncludeOptional: Could not open directory /nope: No such file or directory"),
        ("Listen abc", "AH00526: Syntax error on line {0} of {1}:\nPort must be specified"),
        ("RewriteRule ( /x", "AH00526: Syntax error on line {0} of {1}:\nRewriteRule: cannot compile regular expression '('"),
        ("AliasMatch ( /x", "AH00526: Syntax error on line {0} of {1}:\nRegular expression could not be compiled."),
        ("RedirectMatch 301 [ /x", "AH00526: Syntax error on line {0} of {1}:\nRegular expression could not be compiled."),
        ("ProxyPassMatch *a http://x", "AH00526: Syntax error on line {0} of {1}:\nRegular expression could not be compiled."),
        ("<LocationMatch a)>\n</LocationMatch>", "AH00526: Syntax error on line {0} of {1}:\nRegex could not be compiled"),
        ("RewriteEngine maybe", "AH00526: Syntax error on line {0} of {1}:\nRewriteEngine must be On or Off"),
        ("ProxyPass / nope", "AH00526: Syntax error on line {0} of {1}:\nProxyPass URL must be absolute!: nope"),
        ("Redirect /a", "AH00526: Syntax error on line {0} of {1}:\nURL to redirect to is missing"),
        ("ErrorDocument abc /x", "AH00526: Syntax error on line {0} of {1}:\nUnsupported HTTP response code abc"),
        ("Require all granted", "AH00526: Syntax error on line {0} of {1}:\nRequire not allowed here"),
        ("<VirtualHost>\n</VirtualHost>", "AH00526: Syntax error on line {0} of {1}:\n<VirtualHost> directive requires additional arguments"),
        ("<Directory /srv", "AH00526: Syntax error on line {0} of {1}:\n<Directory> directive missing closing '>'"),
        ("Options Foo", "AH00526: Syntax error on line {0} of {1}:\nIllegal option Foo"),
    ],
)  # fmt: skip
def test_error_of_a_configuration(text, message):
    with pytest.raises(HttpdConfigurationError) as error:
        configuration(f"{text}\n")
    assert str(error.value) == message.format(LINE, MAIN)


def test_pattern_with_a_lookahead_is_not_simulated():
    subject = configuration("Listen 80\nRewriteRule (?!a) /b\nRewriteCond a (b)\\1\nRewriteRule c /d\n")
    assert subject.not_simulated == ("the pattern (?!a) of httpd", r"the pattern (b)\1 of httpd")


@pytest.mark.parametrize(
    ("alias", "name", "is_alias"),
    [
        ("*.a", "x.a", True),
        ("*.a", "a", False),
        ("?.A", "X.a", True),
        ("[x].a", "x.a", False),
        ("a.*", "a.b.c", True),
    ],
)
def test_alias_has_wildcards(alias, name, is_alias):
    hosts = "<VirtualHost *:80>\nServerName one\n</VirtualHost>\n<VirtualHost *:80>\nServerName two\nServerAlias {}\n</VirtualHost>\n"
    subject = configuration("Listen 80\n" + hosts.format(alias))
    assert (subject.host_for(80, name).name == "two") is is_alias


@pytest.mark.parametrize(
    ("folder", "status"),
    [("/*", 403), ("/srv/*", 403), ("/s?v/[st]ub", 403), ("/*/sub/x", 200), ("/*b", 200)],
)
def test_folder_has_wildcards(folder, status):
    text = f"<Directory {folder}>\nRequire all denied\n</Directory>\n"
    assert ask(text, "/sub/a.txt")[0] == status


def test_value_of_a_variable_is_bounded():
    doubled = "".join(f"Define v{i + 1} ${{v{i}}}${{v{i}}}\n" for i in range(100))
    with pytest.raises(HttpdConfigurationError, match="Line too long"):
        configuration(f"Define v0 aa\n{doubled}")


def test_place_of_a_directive():
    with pytest.raises(HttpdConfigurationError, match="Listen cannot occur within <VirtualHost> section"):
        configuration("<VirtualHost *:80>\nListen 81\n</VirtualHost>\n")
    with pytest.raises(HttpdConfigurationError, match="DocumentRoot not allowed in <Directory> context"):
        configuration("<Directory /srv>\nDocumentRoot /srv\n</Directory>\n")


def test_without_a_module_for_processes():
    with pytest.raises(HttpdConfigurationError, match="AH00534: httpd: Configuration error: No MPM loaded"):
        configuration("Listen 80\n", head="")


def test_variables_and_sections_that_do_not_hold():
    subject = configuration(
        "Listen ${PORT}\nDefine A 81\nListen ${A}\n<IfModule nope_module>\nFoo\n</IfModule>\n<IfModule !dir_module>\nFoo\n</IfModule>\n"
        "ServerAdmin ${NOPE}\n"
    )
    assert subject.ports == (80, 81)
    assert subject.warnings == ("AH00111: Config variable ${NOPE} is not defined",)


def respond(text, target="/", reply=None, method="GET", **headers):
    subject = configuration(LISTEN + text)
    request = Request(method=method, target=target, headers={"host": "h", **headers})
    answering, call = answer(subject, "2.4.66", request, Files()), None
    try:
        call = next(answering)
        answering.send(reply)
    except StopIteration as stop:
        return stop.value, call
    raise AssertionError


def ask(text, target="/", **headers):
    response, _ = respond(text, target, **headers)
    return response.status, response.location or response.body.decode()


def test_files_and_folders():
    assert ask("") == (200, "home")
    assert ask("", "/sub") == (301, "http://h/sub/")
    assert ask("", "/nope")[0] == 404
    assert "<p>The requested URL was not found on this server.</p>" in ask("", "/nope")[1]
    assert ask("", "/sub/")[0] == 403
    status, body = ask("<Directory /srv>\nOptions +Indexes\n</Directory>\n", "/sub/")
    assert (status, '<li><a href="a.txt"> a.txt</a></li>' in body) == (200, True)


def test_access():
    assert ask("Alias /o /other\n", "/o/x.html")[0] == 200
    denied = "<Directory />\nRequire all denied\n</Directory>\nAlias /o /other\n"
    assert ask(denied, "/o/x.html")[0] == 403
    assert ask(denied, "/")[0] == 200
    assert ask("<Location /sub>\nRequire all denied\n</Location>\n", "/sub/a.txt")[0] == 403
    assert ask('<Files "*.txt">\nRequire all denied\n</Files>\n', "/sub/a.txt")[0] == 403


def test_redirects():
    assert ask("Redirect permanent /m /x\n", "/m/y?z=1") == (301, "http://h/x/y?z=1")
    assert ask("Redirect gone /g\n", "/g")[0] == 410
    assert ask("RedirectMatch 307 ^/(\\d+)$ http://o/$1\n", "/12") == (307, "http://o/12")


def test_rewrites():
    engine = "RewriteEngine On\n"
    assert ask(f"{engine}RewriteRule ^/a$ /index.html [L]\n", "/a") == (200, "home")
    assert ask(f"{engine}RewriteRule ^/(.*)$ https://%{{HTTP_HOST}}/$1 [R=301,L]\n", "/b") == (
        301,
        "https://h/b",
    )
    condition = "RewriteCond %{HTTP:X-Proto} !^https$\nRewriteRule .* - [F]\n"
    assert ask(engine + condition)[0] == 403
    assert ask(engine + condition, **{"x-proto": "https"})[0] == 200


def test_error_documents():
    assert ask('ErrorDocument 404 "nothing here"\n', "/nope") == (404, "nothing here")
    assert ask("ErrorDocument 404 /index.html\n", "/nope") == (404, "home")


def test_virtual_hosts():
    hosts = (
        "<VirtualHost *:80>\nServerName one\nRedirect / http://first/\n</VirtualHost>\n"
        "<VirtualHost *:80>\nServerName two\nServerAlias *.two\n</VirtualHost>\n"
    )
    assert ask(hosts, host="two:80") == (200, "home")
    assert ask(hosts, host="www.two") == (200, "home")
    assert ask(hosts, host="unknown") == (302, "http://first/")


def test_proxy():
    text = "ProxyPass /no !\nProxyPass /p http://web:8080/q\nProxyPassReverse /p http://web:8080/q\nHeader set X-A b\n"
    reply = ProxyReply(
        status=302, headers=(("Location", "http://web:8080/q/z"), ("Server", "nginx")), body=b""
    )
    response, call = respond(text, "/p/x?y=1", reply)
    assert (call.host, call.port, call.path) == ("web", 8080, "/q/x?y=1")
    assert dict(call.headers)["host"] == "web:8080"
    assert (response.status, response.location, response.server) == (302, "http://h/p/z", "nginx")
    assert ("X-A", "b") in response.headers
    refused = ProxyReply(problem="connect() failed (111: Connection refused) while", body=b"10.0.0.1")
    response, _ = respond(text, "/p/x", refused)
    assert response.status == 503
    assert response.errors[0].endswith(
        "(111)Connection refused: AH00957: http: attempt to connect to 10.0.0.1:8080 (web:8080) failed"
    )


def test_log_of_requests():
    text = 'LogFormat "%h %>s %b \\"%r\\" %{User-Agent}i" mine\nCustomLog /proc/self/fd/1 mine\n'
    response, _ = respond(text, **{"user-agent": "curl"})
    assert response.logs == [("/proc/self/fd/1", '127.0.0.1 200 4 "GET / HTTP/1.1" curl')]


def test_directives_without_an_effect_are_named():
    head = (
        HEAD
        + "LoadModule setenvif_module modules/mod_setenvif.so\nLoadModule expires_module modules/mod_expires.so\n"
    )
    text = (
        "SetEnvIf Host x a=1\nAddEncoding x-gzip .gz\nExpiresActive On\nExpiresDefault 'access plus 1 day'\n"
    )
    assert configuration(LISTEN + text, head=head).not_simulated == (
        "the directive SetEnvIf of httpd",
        "the directive AddEncoding of httpd",
        "the directive ExpiresDefault of httpd",
    )
    assert configuration(LISTEN).not_simulated == ()
