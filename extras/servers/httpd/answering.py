"""What httpd answers to a request: rewrites, proxies, redirects, aliases, access, files, folders and error documents. Pure."""

import re
from collections.abc import Iterator, Mapping
from html import escape
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from posixpath import join, normpath
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from mockube.container_runtime.simulated.server_contract import (
    Answering,
    FileReader,
    ProxyCall,
    ProxyReply,
    Request,
    Response,
)
from mockube.extras.servers.patterns import compile_text, has_wildcards, matches_name

from .configuration import (
    HttpdConfiguration,
    HttpdHost,
    HttpdSection,
    RewriteCondition,
    RewriteRule,
    redirect_of,
)

_REASONS: Final = {302: "Found", 503: "Service Unavailable", 500: "Internal Server Error"}
_TEXTS: Final = {
    400: "Your browser sent a request that this server could not understand.<br />\n",
    401: "This server could not verify that you\nare authorized to access the document\nrequested.  Either you supplied the wrong\n"
    "credentials (e.g., bad password), or your\nbrowser doesn't understand how to supply\nthe credentials required.",
    403: "You don't have permission to access this resource.",
    404: "The requested URL was not found on this server.",
    405: "The requested method {method} is not allowed for this URL.",
    410: "The requested resource is no longer available on this server and there is no forwarding address.\n"
    "Please remove all references to this resource.",
    500: "The server encountered an internal error or\nmisconfiguration and was unable to complete\nyour request.",
    502: "The proxy server received an invalid\nresponse from an upstream server.<br />\n",
    503: "The server is temporarily unable to service your\nrequest due to maintenance downtime or capacity\nproblems. Please try again later.",
    504: "The gateway did not receive a timely response\nfrom the upstream server or application.",
}
_TYPES: Final = {
    "html": "text/html", "htm": "text/html", "css": "text/css", "xml": "application/xml", "gif": "image/gif", "jpeg": "image/jpeg", "jpg": "image/jpeg",
    "js": "text/javascript", "txt": "text/plain", "png": "image/png", "svg": "image/svg+xml", "ico": "image/vnd.microsoft.icon", "json": "application/json",
    "pdf": "application/pdf", "zip": "application/zip", "wasm": "application/wasm", "woff": "font/woff", "woff2": "font/woff2",
}  # fmt: skip
_MAX_CYCLES: Final = 10
_MAX_LOGGED: Final = 2000
_FORMAT: Final = re.compile(r"%(?:[!<>\d,]*+)(?:\{([^{}]*)\})?([a-zA-Z%])")
_PROBLEM: Final = re.compile(r"\((\d+): ([^()]*)\)")
_COMMON: Final = '%h %l %u %t "%r" %>s %b'
_VARIABLE: Final = re.compile(r"%\{([^{}]+)\}|\$(\d)|%(\d)")


class _Stop(Exception):
    def __init__(self, status: int, location: str = "", headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(status)
        self.status, self.location, self.headers = status, location, headers


class _Proxied(Exception):
    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.target = target


def answer(configuration: HttpdConfiguration, version: str, request: Request, files: FileReader) -> Answering:
    """Return the response to a request, and what is logged of it."""
    return (yield from _Exchange(configuration, version, request, files).run())


class _Exchange:
    def __init__(
        self, configuration: HttpdConfiguration, version: str, request: Request, files: FileReader
    ) -> None:
        self._configuration = configuration
        self._version = version
        self._request = request
        self._files = files
        self._host: HttpdHost = configuration.host_for(request.port, request.host)
        path, _, self._query = request.target.partition("?")
        decoded = unquote(path, errors="surrogateescape")
        self._uri = f"{normpath('/' + decoded.lstrip('/'))}{'/' if decoded.endswith('/') and decoded.strip('/') else ''}"
        self._errors: list[str] = []
        self._path = ""
        """The file of the request."""

    def run(self) -> Answering:
        try:
            response = yield from self._process()
        except _Stop as stop:
            response = yield from self._stopped(stop)
        self._finish(response)
        return response

    def _process(self) -> Answering:
        try:
            self._rewrite(self._host.own, self._uri)
            path, target = next(self._proxies(), ("", "!"))
            if target != "!":
                self._check_access()
                return (yield from self._proxy(target + self._rest(path)))
            self._redirect()
            self._path = self._translate()
            self._check_access()
            for section in self._matching():
                self._rewrite(section, self._relative(section))
            return self._serve()
        except _Proxied as proxied:
            self._check_access()
            return (yield from self._proxy(proxied.target))

    # --- settings

    def _matching(self) -> Iterator[HttpdSection]:
        """Yield the sections for the request, those that count more last."""
        sections = (
            (*self._configuration.main.sections, *self._host.sections)
            if self._host.addresses
            else self._host.sections
        )
        folders = [each for each in sections if each.kind == "directory" and self._is_below(each)]
        yield from sorted(
            (each for each in folders if each.pattern is None),
            key=lambda each: each.path.rstrip("/").count("/"),
        )
        yield from (each for each in folders if each.pattern is not None)
        name = self._path.rpartition("/")[2]
        yield from (each for each in sections if each.kind == "files" and _matches_name(each, name))
        yield from (each for each in sections if each.kind == "location" and self._is_at(each))

    def _is_below(self, section: HttpdSection) -> bool:
        if not self._path:
            return False
        if section.pattern is not None:
            return section.pattern.search(self._path) is not None
        folder = self._configuration.full_path(section.path)
        if has_wildcards(folder):
            parts, names = folder.rstrip("/").split("/"), self._path.split("/")
            # As for a shell, a star stands for no slash.
            return len(parts) <= len(names) and all(map(matches_name, parts, names))
        return f"{self._path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")

    def _is_at(self, section: HttpdSection) -> bool:
        if section.pattern is not None:
            return section.pattern.search(self._uri) is not None
        path = section.path
        if path.endswith("/") or path == self._uri:
            return self._uri.startswith(path)
        return self._uri.startswith(f"{path}/")

    def _setting(self, name: str) -> tuple[str, ...] | None:
        """Return the arguments of the directive that counts."""
        found = None
        for section in (*self._outer(), *self._matching()):
            found = section.last(name) or found
        return found

    def _outer(self) -> tuple[HttpdSection, ...]:
        return (self._configuration.main.own, self._host.own) if self._host.addresses else (self._host.own,)

    def _options(self) -> set[str]:
        options = {"followsymlinks"}
        for section in (*self._outer(), *self._matching()):
            for arguments in section.all("options"):
                words = [word.lower() for word in arguments]
                if words and words[0][0] not in "+-":
                    options = set() if words == ["none"] else {*words}
                for word in words:
                    options |= {word[1:]} if word.startswith("+") else set()
                    options -= {word[1:]} if word.startswith("-") else set()
        return options

    # --- the phases

    def _rest(self, path: str) -> str:
        rest = quote(self._uri[len(path) :], safe="/:@!$&'()*+,;=~%-._")
        return f"{rest}?{self._query}" if self._query else rest

    def _proxies(self) -> Iterator[tuple[str, str]]:
        """Yield what ProxyPass says for the path: the path, and the target or an exclamation mark."""
        for section in (
            self._host.own,
            *(() if not self._host.addresses else (self._configuration.main.own,)),
        ):
            for arguments in section.all("proxypass"):
                if len(arguments) > 1 and _is_prefix(arguments[0], self._uri):
                    yield arguments[0], arguments[1]
        for section in self._matching():
            for arguments in section.all("proxypass"):
                if arguments and section.pattern is None:
                    yield section.path, arguments[0]

    def _redirect(self) -> None:
        for section in (self._host.own, self._configuration.main.own, *self._matching()):
            for directive in section.directives:
                if directive.key in ("redirect", "redirectpermanent", "redirecttemp"):
                    redirect = redirect_of(directive, section.kind == "location")
                    path = redirect.path or section.path
                    if _is_prefix(path, self._uri):
                        target = redirect.target + self._rest(path) if redirect.path else redirect.target
                        raise _Stop(redirect.status, self._absolute(target) if redirect.target else "")
                elif directive.key == "redirectmatch" and len(directive.arguments) >= 2:
                    *first, text, target = directive.arguments
                    match = compile_text(text).search(self._uri)
                    if match is not None:
                        status = {"permanent": 301, "seeother": 303, "temp": 302}.get(
                            "".join(first).lower()
                        ) or int("".join(first) or 302)
                        raise _Stop(status, self._absolute(_substituted(target, match)))

    def _translate(self) -> str:
        """Return the path of the file that a path of the request stands for."""
        for section in (self._host.own, *((self._configuration.main.own,) if self._host.addresses else ())):
            for directive in section.directives:
                arguments = directive.arguments
                if directive.key == "alias" and len(arguments) == 2 and _is_prefix(arguments[0], self._uri):
                    rest = self._uri[len(arguments[0]) :]
                    return self._configuration.full_path(arguments[1] + rest)
                if directive.key == "aliasmatch" and len(arguments) == 2:
                    match = compile_text(arguments[0]).search(self._uri)
                    if match is not None:
                        return self._configuration.full_path(_substituted(arguments[1], match))
        root = self._host.own.last("documentroot") or self._configuration.main.own.last("documentroot")
        return self._configuration.full_path((root or ("htdocs",))[0]).rstrip("/") + self._uri

    def _check_access(self) -> None:
        rules: tuple[tuple[str, ...], ...] = ()
        for section in self._matching():
            own = tuple(section.all("require"))
            denied = tuple(("all", "denied") for words in section.all("deny") if words[-1:] == ("all",))
            rules = own or denied or rules
        if not rules or any(self._fulfils(rule) for rule in rules):
            return
        if any(rule[0].lower() in ("valid-user", "user", "group") for rule in rules):
            name = " ".join(self._setting("authname") or ("Restricted",))
            raise _Stop(401, headers=(("WWW-Authenticate", f'Basic realm="{name}"'),))
        self._error(
            "authz_core:error", f"AH01630: client denied by server configuration: {self._path or self._uri}"
        )
        raise _Stop(403)

    def _fulfils(self, rule: tuple[str, ...]) -> bool:
        words = [word.lower() for word in rule]
        client = self._request.client
        match words[0]:
            case "all":
                return words[1:] == ["granted"]
            case "ip":
                return any(_is_in_network(client, network) for network in words[1:])
            case "local":
                return client in ("127.0.0.1", "::1", self._request.address)
            case "method":
                return self._request.method.lower() in words[1:]
            case "not":
                return not self._fulfils(rule[1:])
            case "valid-user" | "user" | "group":
                return False
            case _:
                return True

    # --- rewrites

    def _relative(self, section: HttpdSection) -> str:
        """Return the path that the rules of a folder see."""
        if section.kind == "directory":
            folder = self._configuration.full_path(section.path).rstrip("/")
            return self._path.removeprefix(folder).lstrip("/")
        return self._uri

    def _rewrite(self, section: HttpdSection, path: str) -> None:
        if not section.rules or [word.lower() for word in section.last("rewriteengine") or ()] != ["on"]:
            return
        changed = False
        for rule in section.rules:
            found = self._match_rule(rule, path)
            if found is None:
                continue
            if rule.substitution != "-":
                target = self._expanded(rule.substitution, *found)
                path, changed = self._substitute(rule, target, section), True
            if "L" in rule.flags or "END" in rule.flags:
                break
        if changed:
            self._uri = path if path.startswith("/") else f"/{path}"
            if section.kind:
                self._path = self._translate()

    def _match_rule(self, rule: RewriteRule, path: str) -> tuple[Mapping[str, str], Mapping[str, str]] | None:
        """Return the groups of a rule that applies and of its conditions; raise the status of one that refuses."""
        groups = rule.pattern.search(path)
        if (groups is None) is not rule.negated:
            return None
        conditions = self._conditions(rule, groups or {})
        if conditions is None:
            return None
        if "F" in rule.flags:
            raise _Stop(403)
        if "G" in rule.flags:
            raise _Stop(410)
        return groups or {}, conditions

    def _substitute(self, rule: RewriteRule, target: str, section: HttpdSection) -> str:
        """Return the path that a rule makes; raise what ends the processing."""
        path, mark, query = target.partition("?")
        if mark:
            self._query = f"{query}&{self._query}" if "QSA" in rule.flags and self._query else query
        elif "QSD" in rule.flags:
            self._query = ""
        rest = f"?{self._query}" if self._query else ""
        if "P" in rule.flags:
            raise _Proxied(path + rest)
        is_absolute = "://" in path
        if "R" in rule.flags or is_absolute:
            if not is_absolute and not path.startswith("/") and section.kind:
                base = (section.last("rewritebase") or ("/",))[0]
                path = join(base, path)
            code = rule.flags.get("R", "")
            status = int(code) if code.isdecimal() else {"permanent": 301, "seeother": 303}.get(code, 302)
            if not 300 <= status < 400:
                raise _Stop(status)
            raise _Stop(status, self._absolute(path + rest))
        return path

    def _conditions(self, rule: RewriteRule, groups: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the groups of the last condition of a rule that holds with them; None if the conditions do not hold."""
        found: Mapping[str, str] = {}
        skips = False
        for condition in rule.conditions:
            if skips:
                skips = "OR" in condition.flags
                continue
            holds, match = self._holds(condition, groups, found)
            found = match or found
            if holds:
                skips = "OR" in condition.flags
            elif "OR" not in condition.flags:
                return None
        return found

    def _holds(
        self, condition: RewriteCondition, groups: Mapping[str, str], earlier: Mapping[str, str]
    ) -> tuple[bool, Mapping[str, str]]:
        text = self._expanded(condition.text, groups, earlier)
        match: Mapping[str, str] | None = None
        if condition.pattern is not None:
            match = condition.pattern.search(text)
            holds = match is not None
        elif condition.test in ("-f", "-d", "-s", "-e", "-F"):
            kind = self._files.kind(text)
            holds = kind == {"-d": "folder"}.get(condition.test, "file") or (
                condition.test == "-e" and bool(kind)
            )
        elif condition.test.startswith("="):
            holds = text == condition.test[1:].strip('"')
        else:
            holds = False
        return holds is not condition.negated, match or {}

    def _expanded(self, text: str, groups: Mapping[str, str], conditions: Mapping[str, str]) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1]:
                return self._variable(match[1])
            return groups.get(match[2], "") if match[2] else conditions.get(match[3], "")

        return _VARIABLE.sub(value, text)[:65536]

    def _variable(self, name: str) -> str:
        kind, _, header = name.partition(":")
        if kind.upper() == "HTTP" and header:
            return self._request.headers.get(header.lower(), "")
        if name.startswith("HTTP_"):
            return self._request.headers.get(name[5:].lower().replace("_", "-"), "")
        values = {
            "REQUEST_URI": self._uri,
            "REQUEST_FILENAME": self._path or self._translate(),
            "SCRIPT_FILENAME": self._path or self._translate(),
            "DOCUMENT_ROOT": (self._setting("documentroot") or ("",))[0],
            "QUERY_STRING": self._query,
            "REQUEST_METHOD": self._request.method,
            "THE_REQUEST": f"{self._request.method} {self._request.target} HTTP/1.1",
            "HTTPS": "on" if self._request.tls else "off",
            "REQUEST_SCHEME": "https" if self._request.tls else "http",
            "REMOTE_ADDR": self._request.client,
            "SERVER_NAME": self._request.host or self._host.name,
            "SERVER_PORT": str(self._request.port),
            "SERVER_ADDR": self._request.address,
        }
        return values.get(name, "")

    # --- content

    def _serve(self) -> Response:
        handler = (self._setting("sethandler") or ("",))[0].lower()
        if handler == "server-status":
            return self._page_of_text("Apache Status", "<h1>Apache Server Status</h1>\n")
        if handler not in ("", "none", "default-handler"):
            text = f"mockube: the handler {handler} of httpd is not simulated: {self._request.method} {self._uri[:_MAX_LOGGED]}\n"
            return Response(status=200, content_type="text/plain", body=text.encode())
        if self._request.method not in ("GET", "HEAD", "POST", "OPTIONS"):
            raise _Stop(405, headers=(("Allow", "GET,POST,OPTIONS,HEAD"),))
        kind = self._files.kind(self._path.rstrip("/") or "/")
        if kind == "folder":
            return self._folder()
        if kind != "file" or self._uri.endswith("/"):
            fallback = (self._setting("fallbackresource") or ("disabled",))[0]
            if fallback != "disabled":
                self._uri = fallback
                self._path = self._translate()
                if self._files.kind(self._path) == "file":
                    return self._send(self._path)
            raise _Stop(404)
        return self._send(self._path)

    def _folder(self) -> Response:
        if not self._uri.endswith("/"):
            raise _Stop(301, self._absolute(f"{self._uri}/"))
        names = self._setting("directoryindex") or ("index.html",)
        for name in names:
            if self._files.kind(join(self._path, name)) == "file":
                return self._send(join(self._path, name))
        if {"indexes", "all"} & self._options() and "autoindex" in self._configuration.modules:
            return self._listing()
        self._error(
            "autoindex:error",
            f"AH01276: Cannot serve directory {self._path}: No matching DirectoryIndex ({','.join(names)}) found, and server-generated "
            "directory index forbidden by Options directive",
        )
        raise _Stop(403)

    def _listing(self) -> Response:
        title = escape(self._uri.rstrip("/") or "/")
        rows = (
            []
            if self._uri == "/"
            else [
                f'<li><a href="{quote(self._uri.rstrip("/").rpartition("/")[0])}/"> Parent Directory</a></li>\n'
            ]
        )
        visible = [
            name for name in self._files.names(self._path.rstrip("/") or "/") if not name.startswith(".")
        ]
        rows += [f'<li><a href="{quote(name)}"> {escape(name)}</a></li>\n' for name in visible]
        text = (
            f"{_DOCTYPE}<html>\n <head>\n  <title>Index of {title}</title>\n </head>\n <body>\n<h1>Index of {title}</h1>\n<ul>{''.join(rows)}</ul>\n"
            "</body></html>\n"
        )
        return Response(status=200, content_type="text/html;charset=ISO-8859-1", body=text.encode())

    def _send(self, path: str) -> Response:
        try:
            data = self._files.read(path)
        except OSError:
            self._error(
                "core:error",
                f"(13)Permission denied: AH00132: file permissions deny server access: {path}",
            )
            raise _Stop(403) from None
        extension = path.rpartition("/")[2].rpartition(".")[2].lower()
        added = {
            word.lstrip(".").lower(): words[0]
            for section in (*self._outer(), *self._matching())
            for words in section.all("addtype")
            for word in words[1:]
        }
        forced = self._setting("forcetype")
        content_type = forced[0] if forced else added.get(extension) or _TYPES.get(extension, "")
        charset = (self._setting("adddefaultcharset") or ("off",))[0]
        if charset.lower() != "off" and content_type in ("text/html", "text/plain"):
            content_type = f"{content_type}; charset={'iso-8859-1' if charset.lower() == 'on' else charset}"
        return Response(
            status=200, content_type=content_type, headers=[("Accept-Ranges", "bytes")], body=data
        )

    def _proxy(self, target: str) -> Answering:
        parts = urlsplit(target)
        if parts.scheme not in ("http", "https", "ws", "wss"):
            text = f"mockube: a proxy to {target[:_MAX_LOGGED]} of httpd is not simulated\n"
            return Response(status=200, content_type="text/plain", body=text.encode())
        try:
            port = parts.port or (443 if parts.scheme in ("https", "wss") else 80)
        except ValueError:
            raise _Stop(500) from None
        keeps = [word.lower() for word in self._setting("proxypreservehost") or ()] == ["on"]
        host = self._request.headers.get("host", "") if keeps else parts.netloc
        replaced = ("host", "connection", "content-length", "transfer-encoding")
        forwarded = self._request.headers.get("x-forwarded-for")
        headers = {
            **{name: value for name, value in self._request.headers.items() if name not in replaced},
            "host": host,
            "x-forwarded-for": f"{forwarded}, {self._request.client}" if forwarded else self._request.client,
            "x-forwarded-host": self._request.headers.get("host", ""),
            "x-forwarded-server": self._host.name or self._request.host,
        }
        for section in (*self._outer(), *self._matching()):
            for words in section.all("requestheader"):
                if words[0].lower() == "set" and len(words) > 2:
                    headers[words[1].lower()] = self._expanded(words[2], {}, {})
                elif words[0].lower() == "unset":
                    headers.pop(words[1].lower(), None)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        reply = yield ProxyCall(
            host=parts.hostname or "",
            port=port,
            method=self._request.method,
            path=path,
            headers=tuple(headers.items()),
            tls=parts.scheme in ("https", "wss"),
            body=self._request.body,
            needs_resolver=True,
            uses_search=True,
        )
        if reply.status:
            return self._passed(reply)
        self._unreachable(reply, parts.hostname or "", port)
        raise _Stop(504 if reply.has_timed_out else 502 if "resolved" in reply.problem else 503)

    def _unreachable(self, reply: ProxyReply, host: str, port: int) -> None:
        if "resolved" in reply.problem:
            self._error(
                "proxy:error",
                f"AH00898: DNS lookup failure for: {host} returned by {self._request.target[:_MAX_LOGGED]}",
            )
            return
        number = _PROBLEM.search(reply.problem)
        reason = f"({number[1]}){number[2]}: " if number else ""
        address = reply.body.decode() or host
        self._error(
            "proxy:error",
            f"{reason}AH00957: http: attempt to connect to {address}:{port} ({host}:{port}) failed",
        )
        self._error("proxy_http:error", f"AH01114: HTTP: failed to make connection to backend: {host}")

    def _passed(self, reply: ProxyReply) -> Response:
        headers = {name.lower(): (name, value) for name, value in reply.headers}
        content_type = headers.pop("content-type", ("", "text/html"))[1]
        location = headers.pop("location", ("", ""))[1]
        server = headers.pop("server", ("", ""))[1]
        for name in ("connection", "keep-alive", "transfer-encoding", "content-length", "date"):
            headers.pop(name, None)
        for section in (*self._outer(), *self._matching()):
            for words in section.all("proxypassreverse"):
                path, target = (words[0], words[1]) if len(words) > 1 else (section.path, words[0])
                if location.startswith(target):
                    location = self._absolute(join("/", path, location.removeprefix(target).lstrip("/")))
        return Response(
            status=reply.status,
            content_type=content_type,
            headers=list(headers.values()),
            body=reply.body,
            location=location,
            server=server,
        )

    # --- the end

    def _stopped(self, stop: _Stop) -> Answering:
        document = None
        for section in (*self._outer(), *self._matching()):
            for words in section.all("errordocument"):
                if words[0] == str(stop.status):
                    document = " ".join(words[1:])
        if document is None or stop.location or document.lower() == "default":
            return self._page(stop)
        if document.startswith(("http://", "https://")):
            return self._page(_Stop(302, document))
        if not document.startswith("/"):
            return Response(
                status=stop.status,
                content_type="text/html; charset=iso-8859-1",
                headers=list(stop.headers),
                body=document.encode("utf-8", "surrogateescape"),
            )
        self._uri = document
        try:
            self._path = self._translate()
            response = self._send(self._path) if self._files.kind(self._path) == "file" else self._page(stop)
        except _Stop:
            response = self._page(stop)
        response.status = stop.status
        return response
        yield

    def _page(self, stop: _Stop) -> Response:
        status = stop.status
        phrase = _REASONS.get(status) or _phrase(status)
        text = _TEXTS.get(status, "").format(method=self._request.method) if status != 302 else ""
        if stop.location:
            text = f'The document has moved <a href="{escape(stop.location)}">here</a>.'
        body = f"{_DOCTYPE}<html><head>\n<title>{status} {phrase}</title>\n</head><body>\n<h1>{phrase}</h1>\n<p>{text}</p>\n</body></html>\n"
        return Response(
            status=status,
            content_type="text/html; charset=iso-8859-1",
            headers=list(stop.headers),
            body=body.encode(),
            location=stop.location,
        )

    def _page_of_text(self, title: str, body: str) -> Response:
        text = f"{_DOCTYPE}<html><head>\n<title>{title}</title>\n</head><body>\n{body}</body></html>\n"
        return Response(status=200, content_type="text/html; charset=ISO-8859-1", body=text.encode())

    def _absolute(self, target: str) -> str:
        if not target.startswith("/"):
            return target
        host = self._request.host or self._host.name
        usual = 443 if self._request.tls else 80
        port = "" if self._request.port == usual else f":{self._request.port}"
        named = self._request.headers.get("host", "")
        port = (
            f":{named.rpartition(':')[2]}"
            if ":" in named and not named.endswith("]")
            else ("" if named else port)
        )
        return f"{'https' if self._request.tls else 'http'}://{host}{port}{target}"

    def _finish(self, response: Response) -> None:
        response.server = response.server or self._server_text()
        for section in (*self._outer(), *self._matching()):
            for words in section.all("header"):
                _change_headers(response, words)
        response.errors = self._errors
        path = (
            self._host.own.last("errorlog")
            or self._configuration.main.own.last("errorlog")
            or ("logs/error_log",)
        )[0]
        response.error_log = self._configuration.full_path(path)
        logs = [*self._host.own.all("customlog"), *self._host.own.all("transferlog")] or [
            *self._configuration.main.own.all("customlog")
        ]
        for arguments in logs:
            if arguments[0].startswith("|"):
                continue
            text = (
                self._configuration.formats.get(arguments[1], arguments[1]) if len(arguments) > 1 else _COMMON
            )
            response.logs.append(
                (self._configuration.full_path(arguments[0]), self._formatted(text, response))
            )

    def _server_text(self) -> str:
        tokens = (self._configuration.main.own.last("servertokens") or ("Full",))[0].lower()
        if tokens.startswith("prod"):
            return "Apache"
        if tokens.startswith("min"):
            return f"Apache/{self._version}"
        return {"major": "Apache/2", "minor": "Apache/2.4"}.get(tokens, f"Apache/{self._version} (Unix)")

    def _formatted(self, text: str, response: Response) -> str:
        request, size = self._request, 0 if self._request.method == "HEAD" else len(response.body)
        letters = {
            "h": request.client, "a": request.client, "l": "-", "u": "-", "t": f"[{request.time_local}]",
            "r": f"{request.method} {request.target[:_MAX_LOGGED]} HTTP/1.1", "s": str(response.status), "b": str(size or "-"), "B": str(size),
            "O": str(size), "I": str(len(request.body)), "D": "0", "T": "0", "m": request.method, "U": self._uri[:_MAX_LOGGED], "q":
            f"?{self._query}" if self._query else "", "v": self._host.name or request.host, "V": request.host, "p": str(request.port),
            "H": "HTTP/1.1", "f": self._path, "P": "8", "k": "0", "X": "+", "A": request.address, "L": "-", "%": "%",
        }  # fmt: skip

        def value(match: re.Match[str]) -> str:
            name, letter = match[1], match[2]
            if name is not None and letter == "i":
                return request.headers.get(name.lower(), "-")
            if name is not None and letter == "o":
                return next((text for key, text in response.headers if key.lower() == name.lower()), "-")
            if name is not None and letter in "enC":
                return "-"
            return letters.get(letter, "-")

        return _FORMAT.sub(value, text.replace(r"\"", '"'))

    def _error(self, module: str, text: str) -> None:
        now = self._request.now
        self._errors.append(
            f"[{now:%a %b %d %H:%M:%S.%f %Y}] [{module}] [pid 8:tid 8] [client {self._request.client}:40000] {text}"
        )


_DOCTYPE: Final = (
    '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN" "http://www.w3.org/TR/html4/strict.dtd">\n'
)


def _change_headers(response: Response, words: tuple[str, ...]) -> None:
    words = words[1:] if words[0].lower() in ("always", "onsuccess") else words
    action, name, value = (
        words[0].lower(),
        words[1] if len(words) > 1 else "",
        words[2] if len(words) > 2 else "",
    )
    if action in ("set", "unset"):
        response.headers[:] = [pair for pair in response.headers if pair[0].lower() != name.lower()]
    has_name = any(pair[0].lower() == name.lower() for pair in response.headers)
    if action in ("set", "add", "append", "merge") or (action == "setifempty" and not has_name):
        response.headers.append((name, value))


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Internal Server Error"


def _is_prefix(path: str, uri: str) -> bool:
    if path.endswith("/") or uri == path:
        return uri.startswith(path)
    return uri.startswith(f"{path}/")


def _matches_name(section: HttpdSection, name: str) -> bool:
    if section.pattern is not None:
        return section.pattern.search(name) is not None
    return matches_name(section.path, name)


def _substituted(target: str, groups: Mapping[str, str]) -> str:
    return re.sub(r"\$(\d)", lambda match: groups.get(match[1], ""), target)


def _is_in_network(address: str, network: str) -> bool:
    try:
        return ip_address(address) in ip_network(network, strict=False)
    except ValueError:
        return network.count(".") < 3 and address.startswith(f"{network.rstrip('.')}.")
