"""What a server of nginx answers to a request: rewrites, locations, files, redirects, proxies and error pages. Pure.

`answer` is a generator: it yields the requests that it sends to other servers, and receives their replies.
"""

import re
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from posixpath import join
from typing import Final
from urllib.parse import quote

from msgspec.structs import replace

from mockube.container_runtime.simulated.server_contract import (
    Answering,
    FileReader,
    ProxyCall,
    ProxyReply,
    Request,
    Response,
)

from .configuration import (
    Configuration,
    Location,
    Operation,
    ProxyTarget,
    Upstream,
    UpstreamServer,
    access_logs,
    full_path,
    split_port,
)
from .pages import GIF, STUB_STATUS, listing, page
from .parser import ConfigurationError, Directive
from .request_state import MAX_LOGGED, RequestState, host_alone
from .variables import expand

_MAX_CYCLES: Final = 10
"""The number of internal redirects and rewrites after which nginx gives up."""
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_FORBIDDEN: Final = 403
_ERROR: Final = 500
_BAD_GATEWAY: Final = 502
_TIMEOUT: Final = 504
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_CLOSES: Final = 444
_SIZE: Final = re.compile(r"(\d{1,9})([kmg]?)", re.IGNORECASE)
_TYPES: Final = {
    "html": "text/html", "htm": "text/html", "css": "text/css", "xml": "text/xml", "gif": "image/gif", "jpeg": "image/jpeg", "jpg": "image/jpeg",
    "js": "application/javascript", "txt": "text/plain", "png": "image/png", "svg": "image/svg+xml", "ico": "image/x-icon", "woff": "font/woff",
    "woff2": "font/woff2", "json": "application/json", "pdf": "application/pdf", "zip": "application/zip",
}  # fmt: skip
"""The types of files, in a configuration without `types`, which has fewer of them."""
_MAIN_FORMAT: Final = '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
_SENT_WITH_REDIRECT: Final = frozenset({200, 201, 204, 206, 301, 302, 303, 304, 307, 308})
"""The statuses with which a header of add_header is sent without `always`."""
_HOP_HEADERS: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server", "upgrade"}
)


class _Redirect(Exception):
    """The request goes on with another path, in another location, or with a status."""

    def __init__(self, uri: str = "", *, name: str = "") -> None:
        super().__init__(uri)
        self.uri, self.name = uri, name


class _Stop(Exception):
    def __init__(self, status: int, text: str | None = None, location: str = "") -> None:
        super().__init__(status)
        self.status, self.text, self.location = status, text, location


def answer(configuration: Configuration, request: Request, files: FileReader) -> Answering:
    """Return the response to a request, and what is logged of it."""
    exchange = _Exchange(configuration, request, files)
    response = yield from exchange.run()
    prefix = f"{request.now:%Y/%m/%d %H:%M:%S} [error] 29#29: *{request.number} "
    response.errors = [prefix + text for text in response.errors]
    response.server = "nginx"
    if response.status == _CLOSES:
        response.status = 0
    return response


class _Exchange:
    """One request with the state that its rewrites change."""

    def __init__(self, configuration: Configuration, request: Request, files: FileReader) -> None:
        self._configuration = configuration
        self._request = request
        self._files = files
        self._state = RequestState(configuration, request)
        self._root = self._state.location
        self._cycles = 0
        self._is_error_page = False
        self._errors: list[str] = []

    def run(self) -> Answering:
        if not self._state.uri:
            return self._logged((yield from self._finish(_Stop(_BAD_REQUEST))))
        try:
            self._rewrite(self._root.operations, self._root)
            response = yield from self._process(self._find_location())
        except _Stop as stop:
            response = yield from self._finish(stop)
        return self._logged(response)

    # --- the phases

    def _process(self, location: Location) -> Answering:
        """Answer in a location, and in those to which it redirects internally."""
        while True:
            self._state.location = location
            try:
                changed = self._rewrite(location.operations, location)
                if changed:
                    self._count_cycle()
                    location = self._find_location()
                    continue
                return (yield from self._content(self._state.location))
            except _Redirect as redirect:
                self._count_cycle()
                location = self._named(redirect.name) if redirect.name else self._redirected(redirect.uri)

    def _redirected(self, uri: str) -> Location:
        path, _, arguments = uri.partition("?")
        self._state.uri, self._state.arguments = path, arguments or self._state.arguments
        return self._find_location(is_internal=True)

    def _named(self, name: str) -> Location:
        for location in self._root.locations:
            if location.path == name:
                return location
        self._error(f'could not find named location "{name}"')
        raise _Stop(_ERROR)

    def _count_cycle(self) -> None:
        self._cycles += 1
        if self._cycles > _MAX_CYCLES:
            self._error(f'rewrite or internal redirection cycle while processing "{self._state.uri}"')
            raise _Stop(_ERROR)

    def _find_location(self, *, is_internal: bool = False) -> Location:
        location = self._search(self._root)
        if location.internal and not is_internal and not self._cycles:
            raise _Stop(_NOT_FOUND)
        return location

    def _search(self, outer: Location) -> Location:
        """Return the location of the path: an equal one, or else the first matching pattern, or else the longest beginning."""
        best: Location | None = None
        for location in outer.locations:
            if location.modifier == "=" and location.path == self._state.uri:
                return location
            is_prefix = location.modifier in ("", "^~") and self._state.uri.startswith(location.path)
            if is_prefix and (best is None or len(location.path) > len(best.path)):
                best = location
        found = self._search(best) if best is not None and best.locations else best
        if found is not None and found is not best and (found.pattern is not None or found.modifier == "="):
            return found
        if best is None or best.modifier != "^~":
            for location in outer.locations:
                groups = location.pattern.search(self._state.uri) if location.pattern is not None else None
                if groups is not None:
                    self._state.groups = groups
                    return self._search(location) if location.locations else location
        return found or outer

    def _rewrite(self, operations: Sequence[Operation], location: Location) -> bool:
        """Execute the directives of a block; return whether the path has changed, so that another location is looked for."""
        changed = False
        for operation in operations:
            match operation.name:
                case "set":
                    self._state.values[operation.arguments[0][1:]] = self._state.expand(
                        operation.arguments[1]
                    )
                case "return":
                    self._return(operation.arguments)
                case "break":
                    return False
                case "if" if self._is_true(operation):
                    changed |= self._rewrite(operation.inner, location)
                    if operation.location is not None and not changed:
                        self._state.location = operation.location
                case "rewrite":
                    flag = operation.arguments[2] if len(operation.arguments) == 3 else ""
                    if self._substitute(operation, flag):
                        if flag in ("last", "break"):
                            return flag == "last"
                        changed = True
                case _:
                    pass
        return changed

    def _substitute(self, operation: Operation, flag: str) -> bool:
        pattern, replacement = operation.pattern, operation.arguments[1]
        groups = pattern.search(self._state.uri) if pattern is not None else None
        if groups is None:
            return False
        self._state.groups = groups
        text = self._state.expand(replacement)
        is_address = replacement.startswith(("http://", "https://", "$scheme"))
        path, _, arguments = text.partition("?")
        if not replacement.endswith("?") and self._state.arguments:
            arguments = f"{arguments}&{self._state.arguments}" if arguments else self._state.arguments
        if is_address or flag in ("redirect", "permanent"):
            location = f"{path}?{arguments}" if arguments else path
            raise _Stop(301 if flag == "permanent" else 302, location=location)
        self._state.uri, self._state.arguments = path, arguments.removesuffix("?")
        return True

    def _return(self, arguments: Sequence[str]) -> None:
        if not arguments[0].isdecimal():
            raise _Stop(302, location=self._state.expand(arguments[0]))
        status = int(arguments[0])
        text = self._state.expand(arguments[1]) if len(arguments) > 1 else None
        if status in _REDIRECTS and text is not None:
            raise _Stop(status, location=text)
        raise _Stop(status, text)

    def _is_true(self, operation: Operation) -> bool:
        words = operation.arguments
        if len(words) == 1:
            return self._state.expand(words[0]) not in ("", "0")
        if words[0].lstrip("!") in ("-f", "-d", "-e", "-x"):
            kind = self._files.kind(full_path(self._state.expand(words[1])))
            is_present = {"-f": kind == "file", "-d": kind == "folder"}.get(words[0].lstrip("!"), bool(kind))
            return is_present is not words[0].startswith("!")
        left, operator = self._state.expand(words[0]), words[1]
        if operation.pattern is None:
            return (left == self._state.expand(words[2] if len(words) > 2 else "")) is (operator == "=")
        groups = operation.pattern.search(left)
        if groups is not None:
            self._state.groups = groups
        return (groups is not None) is not operator.startswith("!")

    # --- content

    def _content(self, location: Location) -> Answering:
        self._check_access(location)
        if location.try_files:
            self._try_files(location)
        match location.handler:
            case "proxy_pass" if location.proxy is not None:
                return (yield from self._proxy(location, location.proxy))
            case "stub_status":
                return Response(
                    status=200,
                    content_type="text/plain",
                    body=STUB_STATUS.format(self._request.number).encode(),
                )
            case "empty_gif":
                return Response(status=200, content_type="image/gif", body=GIF)
            case "":
                return self._file(location)
            case handler:
                return Response(
                    status=200,
                    content_type="text/plain",
                    body=f"mockube: {handler} of nginx is not simulated: {self._request.method} {self._state.uri}\n".encode(),
                )

    def _check_access(self, location: Location) -> None:
        if location.allowed_methods and self._request.method not in (
            *location.allowed_methods, *(("HEAD",) if "GET" in location.allowed_methods else ()),
        ):  # fmt: skip
            raise _Stop(_FORBIDDEN)
        for rule, network in location.settings.get("access", ()):
            if network in ("all", self._request.client) or _is_in_network(self._request.client, network):
                if rule == "deny":
                    self._error("access forbidden by rule")
                    raise _Stop(_FORBIDDEN)
                break
        if location.get("auth_basic", "off") != "off" and "authorization" not in self._request.headers:
            raise _Stop(401)

    def _try_files(self, location: Location) -> None:
        *candidates, last = location.try_files
        for candidate in candidates:
            path = self._state.expand(candidate)
            wants_folder = path.endswith("/")
            kind = self._files.kind(self._state.path_of(location, path.rstrip("/") or "/"))
            if kind == ("folder" if wants_folder else "file"):
                self._state.uri = path
                return
        if last.startswith("="):
            raise _Stop(int(last[1:]) if last[1:].isdecimal() else _NOT_FOUND)
        if last.startswith("@"):
            raise _Redirect(name=last)
        raise _Redirect(self._state.expand(last))

    def _file(self, location: Location) -> Response:
        if self._request.method not in ("GET", "HEAD"):
            raise _Stop(405)
        path = self._state.path_of(location, self._state.uri)
        if self._state.uri.endswith("/") and not (location.alias and location.pattern is not None):
            return self._folder(location, path)
        kind = self._files.kind(path)
        if kind == "folder":
            raise _Stop(301, location=self._absolute(f"{self._state.uri}/"))
        if not kind:
            self._missing(location, path)
        return self._send(location, path)

    def _folder(self, location: Location, path: str) -> Response:
        indexes = location.settings.get("index") or ("index.html",)
        for name in map(self._state.expand, indexes):
            if name.startswith("/"):
                raise _Redirect(name)
            if self._files.kind(join(path, name)) == "file":
                self._state.uri = join(self._state.uri, name)
                if self._search(self._root) is not self._state.location and not location.alias:
                    raise _Redirect(
                        self._state.uri
                    )  # Another location answers the index, such as one for scripts.
                return self._send(location, join(path, name))
        if self._files.kind(path) != "folder":
            self._missing(location, join(path, indexes[-1]))
        if location.get("autoindex", "off") == "on":
            return Response(status=200, body=listing(self._state.uri, self._files.names(path)))
        self._error(f'directory index of "{path.rstrip("/")}/" is forbidden')
        raise _Stop(_FORBIDDEN)

    def _missing(self, location: Location, path: str) -> None:
        if location.get("log_not_found", "on") == "on":
            self._error(f'open() "{path}" failed (2: No such file or directory)')
        raise _Stop(_NOT_FOUND)

    def _send(self, location: Location, path: str) -> Response:
        try:
            data = self._files.read(path)
        except OSError as error:
            self._error(f'open() "{path}" failed ({error.errno}: {error.strerror})')
            raise _Stop(_FORBIDDEN) from None
        extension = path.rpartition("/")[2].rpartition(".")[2].lower()
        types = location.settings.get("types") or _TYPES
        kind = types.get(extension) or location.get("default_type", "text/plain")
        headers = [("Accept-Ranges", "bytes")]
        return Response(
            status=200, content_type=self._with_charset(location, kind), headers=headers, body=data
        )

    def _with_charset(self, location: Location, kind: str) -> str:
        charset = location.get("charset", "off")
        is_text = kind.startswith("text/") or kind == "application/javascript"
        return f"{kind}; charset={charset}" if charset != "off" and is_text else kind

    # --- proxies

    def _proxy(self, location: Location, target: ProxyTarget) -> Answering:
        limit = _size_of(location.get("client_max_body_size", "1m"))
        if limit and len(self._request.body) > limit:
            self._error(f"client intended to send too large body: {len(self._request.body)} bytes")
            raise _Stop(413)
        if target.has_variables:
            target = self._expanded(target)
        upstream = self._configuration.upstreams.get(target.host) or self._single(target)
        call = ProxyCall(
            host="",
            port=0,
            method=self._request.method,
            path=self._proxied_path(location, target),
            headers=self._proxied_headers(location, target),
            tls=target.scheme == "https",
            body=self._request.body,
            needs_resolver=target.has_variables,
        )
        servers = [server for server in upstream.servers if not server.is_down and not server.is_backup]
        turn = self._request.number % max(len(servers), 1)
        servers = (
            servers[turn:] + servers[:turn] + [server for server in upstream.servers if server.is_backup]
        )
        if not servers:
            self._error(
                f'no live upstreams while connecting to upstream, upstream: "{target.scheme}://{target.host}{call.path}"'
            )
            raise _Stop(_BAD_GATEWAY)
        status = _BAD_GATEWAY
        for server in servers:
            self._state.upstream = f"{server.host}:{server.port}"
            reply = yield replace(call, host=server.host, port=server.port)
            if reply.status:
                return self._passed(location, target, reply)
            self._state.upstream_status = "504" if reply.has_timed_out else "502"
            status = _TIMEOUT if reply.has_timed_out else _BAD_GATEWAY
            address = f"{target.scheme}://{reply.body.decode() or server.host}:{server.port}{call.path}"
            place = f', upstream: "{address}"' if "resolve" not in reply.problem else ""
            self._error(reply.problem, place)
        raise _Stop(status)

    def _expanded(self, target: ProxyTarget) -> ProxyTarget:
        text = self._state.expand(target.text)
        scheme, separator, rest = text.partition("://")
        host, slash, uri = rest.partition("/")
        if not separator or scheme not in ("http", "https") or not host:
            self._error(f'invalid URL prefix in "{text}"')
            raise _Stop(_ERROR)
        return replace(target, scheme=scheme, host=host, uri=f"/{uri}" if slash else None)

    def _single(self, target: ProxyTarget) -> Upstream:
        try:
            directive = Directive(name="proxy_pass", file="", line=0)
            host, port = split_port(
                directive, target.host, 443 if target.scheme == "https" else 80, "in upstream"
            )
        except ConfigurationError:
            self._error(f'invalid port in upstream "{target.host}"')
            raise _Stop(_ERROR) from None
        return Upstream(name=target.host, servers=(UpstreamServer(host=host, port=port),))

    def _proxied_path(self, location: Location, target: ProxyTarget) -> str:
        path = quote(self._state.uri, safe="/:@!$&'()*+,;=~%-._")
        arguments = f"?{self._state.arguments}" if self._state.arguments else ""
        if target.uri is None:
            return (
                self._request.target
                if not self._cycles and path == self._request.target.partition("?")[0]
                else path + arguments
            )
        if target.has_variables:
            return target.uri
        rest = path[len(location.path) :] if path.startswith(location.path) else ""
        return target.uri + rest + arguments

    def _proxied_headers(self, location: Location, target: ProxyTarget) -> tuple[tuple[str, str], ...]:
        self._state.values["proxy_host"] = target.host
        own = {
            name.lower(): (name, self._state.expand(value))
            for name, value in location.settings.get("proxy_set_header", ())
        }
        headers = {"host": ("Host", target.host), "connection": ("Connection", "close")}
        for name, value in self._request.headers.items():
            if name not in _HOP_HEADERS and name != "host":
                headers[name] = (name.title(), value)
        return tuple((name, value) for name, value in (headers | own).values() if value)

    def _passed(self, location: Location, target: ProxyTarget, reply: ProxyReply) -> Response:
        self._state.upstream_status = str(reply.status)
        if (
            reply.status >= 300
            and location.get("proxy_intercept_errors", "off") == "on"
            and self._error_page(reply.status)
        ):
            raise _Stop(reply.status)
        hidden = {name.lower() for (name,) in location.settings.get("proxy_hide_header", ())}
        headers, kind, redirect = list[tuple[str, str]](), "", ""
        for name, value in reply.headers:
            if name.lower() == "content-type":
                kind = value
            elif name.lower() == "location":
                redirect = self._redirected_location(location, target, value)
            elif name.lower() not in _HOP_HEADERS | hidden:
                headers.append((name, value))
        return Response(
            status=reply.status, content_type=kind, headers=headers, body=reply.body, location=redirect
        )

    def _redirected_location(self, location: Location, target: ProxyTarget, value: str) -> str:
        """Return the header Location with the path of the location in place of the address of the server behind it."""
        if location.get("proxy_redirect", "default") != "default" or target.uri is None:
            return value
        prefix = f"{target.scheme}://{target.host}{target.uri}"
        if value.startswith(prefix):
            return self._absolute(location.path + value.removeprefix(prefix))
        return value

    # --- the end

    def _error_page(self, status: int) -> tuple[str, str] | None:
        """Return the page of a status, with the status that replaces it."""
        for arguments in self._state.location.settings.get("error_page", ()):
            *codes, page = arguments
            if str(status) in codes:
                return next((code for code in codes if code.startswith("=")), ""), page
        return None

    def _finish(self, stop: _Stop) -> Answering:
        is_own = stop.text is None and not stop.location
        page = self._error_page(stop.status) if is_own and not self._is_error_page else None
        if page is None or stop.status < 300:
            return self._special(stop)
        code, target = page
        self._is_error_page = self._state.location.get("recursive_error_pages", "off") != "on"
        target = self._state.expand(target)
        if target.startswith(("http://", "https://")):
            return self._special(_Stop(int(code[1:] or 302), location=target))
        self._state.status = stop.status
        try:
            self._count_cycle()
            response = yield from self._process(
                self._named(target) if target.startswith("@") else self._redirected(target)
            )
        except _Stop as other:
            return (yield from self._finish(other)) if not self._is_error_page else self._special(other)
        if code != "=" and response.status == 200:
            response.status = int(code[1:]) if code[1:].isdecimal() else stop.status
        return response

    def _special(self, stop: _Stop) -> Response:
        """Return nginx' own response of a status, or that of a `return`."""
        if stop.location:
            response = self._page(stop.status)
            response.location = self._absolute(stop.location)
            return response
        if stop.text is not None:
            kind = self._with_charset(
                self._state.location, self._state.location.get("default_type", "text/plain")
            )
            return Response(
                status=stop.status, content_type=kind, body=stop.text.encode("utf-8", "surrogateescape")
            )
        response = self._page(stop.status)
        if stop.status == 401:
            realm = self._state.expand(self._state.location.get("auth_basic"))
            response.headers.append(("WWW-Authenticate", f'Basic realm="{realm}"'))
        return response

    def _page(self, status: int) -> Response:
        if status < 300 or status in (_CLOSES, 304):
            return Response(
                status=status, content_type=self._state.location.get("default_type", "text/plain")
            )
        return Response(status=status, body=page(status))

    def _absolute(self, location: str) -> str:
        if not location.startswith("/") or self._state.location.get("absolute_redirect", "on") == "off":
            return location
        host = host_alone(self._request.headers.get("host", "")) or self._state.value("server_name")
        port = self._request.port
        is_usual = (
            port == (443 if self._request.tls else 80)
            or self._state.location.get("port_in_redirect", "on") == "off"
        )
        return (
            f"{'https' if self._request.tls else 'http'}://{host}{'' if is_usual else f':{port}'}{location}"
        )

    def _logged(self, response: Response) -> Response:
        self._state.status, self._state.size = (
            response.status,
            0 if self._request.method == "HEAD" else len(response.body),
        )
        for name, value, *always in self._state.location.settings.get("add_header", ()):
            text = self._state.expand(value)
            if text and (always or response.status in _SENT_WITH_REDIRECT):
                response.headers.append((name, text))
        response.errors = self._errors
        response.error_log = full_path(self._state.location.get("error_log") or self._configuration.error_log)
        for path, *options in access_logs(self._state.location):
            condition = next((option[3:] for option in options if option.startswith("if=")), None)
            if condition is not None and self._state.expand(condition) in ("", "0"):
                continue
            name = options[0] if options and "=" not in options[0] else "combined"
            text = self._configuration.formats.get(name, _MAIN_FORMAT)
            response.logs.append(
                (full_path(self._state.expand(path)), expand(text, self._state.logged_value))
            )
        return response

    def _error(self, text: str, place: str = "") -> None:
        request = f"{self._request.method} {self._request.target[:MAX_LOGGED]} HTTP/1.1"
        host = self._request.headers.get("host", "")
        name = self._state.server.names[0] if self._state.server.names else ""
        self._errors.append(
            f'{text}, client: {self._request.client}, server: {name}, request: "{request}"{place}, host: "{host}"'
        )


def _is_in_network(address: str, network: str) -> bool:
    try:
        return ip_address(address) in ip_network(network, strict=False)
    except ValueError:
        return False


def _size_of(text: str) -> int:
    match = _SIZE.fullmatch(text)
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2].lower()] if match else 0
