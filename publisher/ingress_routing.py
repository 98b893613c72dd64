"""What becomes of a request by the rules of Ingresses, as ingress-nginx and Traefik treat it. Pure.

Upstream: internal/ingress/annotations and rootfs/etc/nginx/template of kubernetes/ingress-nginx.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Key
from mockube.network.ingress import (
    ANNOTATIONS,
    NGINX,
    TRAEFIK,
    IngressRule,
    find_rule,
    is_canary,
    matched_path,
    rewritten_path,
    rules_of,
    sort_rules,
)
from mockube.network.policies import contains

from .http_routing import FixedAnswer, Forward, Header, ProxiedRequest

CONTROLLERS: Final = (NGINX, TRAEFIK)
_PERMANENT, _TEMPORARY, _KEEPS_METHOD = 301, 302, 308
_HTTPS: Final = 443
_MEBIBYTE: Final = 1 << 20
_SIZES: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_PAGE: Final = (
    "<html>\r\n<head><title>{status} {reason}</title></head>\r\n<body>\r\n<center><h1>{status} {reason}</h1></center>\r\n"
    "<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
)
_REASONS: Final = {
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    413: "Request Entity Too Large",
    502: "Bad Gateway",
    503: "Service Temporarily Unavailable",
    504: "Gateway Time-out",
}
_TRAEFIK_TEXTS: Final = {
    404: "404 page not found\n",
    503: "no available server\n",
    502: "Bad Gateway",
    504: "Gateway Timeout",
}

SIMULATED: Final = frozenset(
    {
        "allowlist-source-range", "app-root", "backend-protocol", "canary", "canary-by-cookie", "canary-by-header",
        "canary-by-header-pattern", "canary-by-header-value", "canary-weight", "canary-weight-total", "denylist-source-range",
        "force-ssl-redirect", "permanent-redirect", "permanent-redirect-code", "preserve-trailing-slash", "proxy-body-size",
        "proxy-read-timeout", "rewrite-target", "ssl-redirect", "temporal-redirect", "temporal-redirect-code", "upstream-vhost",
        "use-regex", "whitelist-source-range", "x-forwarded-prefix",
    }
)  # fmt: skip
"""The annotations that have an effect."""
WITHOUT_EFFECT: Final = frozenset(
    {
        "client-body-buffer-size", "connection-proxy-header", "custom-http-errors", "enable-access-log", "enable-opentelemetry",
        "enable-rewrite-log", "http2-push-preload", "load-balance", "proxy-buffer-size", "proxy-buffering", "proxy-buffers-number",
        "proxy-busy-buffers-size", "proxy-connect-timeout", "proxy-http-version", "proxy-max-temp-file-size", "proxy-next-upstream",
        "proxy-next-upstream-timeout", "proxy-next-upstream-tries", "proxy-redirect-from", "proxy-redirect-to",
        "proxy-request-buffering", "proxy-send-timeout", "proxy-ssl-name", "proxy-ssl-secret", "proxy-ssl-server-name",
        "proxy-ssl-verify", "service-upstream", "ssl-ciphers", "ssl-prefer-server-ciphers", "upstream-hash-by", "websocket-services",
    }
)  # fmt: skip
"""The annotations that change nothing that a client of a simulated cluster can see."""


def _is_closing(name: str) -> bool:
    """Return whether an annotation keeps clients out: without its effect a request must not pass."""
    return name.startswith(("auth-", "enable-global-auth", "satisfy", "enable-modsecurity"))


_BACKEND_PROTOCOL: Final = "backend-protocol"
_PROTOCOLS: Final = ("HTTP", "HTTPS", "AUTO_HTTP")


def unknown_annotations(ingress: ReadOnlyTree) -> Sequence[str]:
    """Return the annotations of ingress-nginx that are not simulated; with its value, one that others have."""
    names = (
        name.removeprefix(ANNOTATIONS) for name in meta.annotations(ingress) if name.startswith(ANNOTATIONS)
    )
    unknown = {name for name in names if name not in SIMULATED and name not in WITHOUT_EFFECT}
    protocol = _backend_protocol(_options(ingress))
    if protocol not in _PROTOCOLS:
        unknown.add(f"{_BACKEND_PROTOCOL}: {protocol}")
    return sorted(unknown)


def _backend_protocol(options: Mapping[str, str]) -> str:
    return options.get(_BACKEND_PROTOCOL, "HTTP").upper()


class IngressTable:
    """The rules of all Ingresses of a controller, by host. A change costs what its hosts have."""

    def __init__(self) -> None:
        self._rules: dict[str, list[IngressRule]] = {}
        self._hosts: dict[Key, frozenset[str]] = {}

    def __len__(self) -> int:
        return len(self._hosts)

    def put(self, key: Key, ingress: ReadOnlyTree | None) -> None:
        """Replace the rules of an Ingress; None removes them."""
        for host in self._hosts.pop(key, frozenset()):
            others = [rule for rule in self._rules[host] if Key.of(rule.ingress) != key]
            if others:
                self._rules[host] = others
            else:
                del self._rules[host]
        rules = [] if ingress is None else [*rules_of(ingress)]
        if ingress is not None:
            self._hosts[key] = frozenset(rule.host for rule in rules)
        for rule in rules:
            self._rules.setdefault(rule.host, []).append(rule)
        for host in {rule.host for rule in rules}:
            sort_rules(self._rules[host])

    def of_host(self, host: str) -> Sequence[IngressRule]:
        return self._rules.get(host, ())

    def duplicates(self, ingress: ReadOnlyTree) -> Iterator[IngressRule]:
        """Yield the rules of older Ingresses that an Ingress has, too: the oldest one is served."""
        if is_canary(ingress):
            return
        for rule in rules_of(ingress):
            for other in self.of_host(rule.host):
                is_other = Key.of(other.ingress) != Key.of(ingress) and not is_canary(other.ingress)
                if is_other and other.key == rule.key and other.is_before(rule):
                    yield other

    def replaced(self, ingress: ReadOnlyTree) -> Iterator[tuple[Key, IngressRule]]:
        """Yield the rules of an Ingress that are served in the place of those of others, with the keys of these."""
        for rule in () if is_canary(ingress) else rules_of(ingress):
            for other in self.of_host(rule.host):
                is_other = Key.of(other.ingress) != Key.of(ingress) and not is_canary(other.ingress)
                if is_other and other.key == rule.key and rule.is_before(other):
                    yield Key.of(other.ingress), rule

    def canaries(self, rule: IngressRule) -> Iterable[IngressRule]:
        """Return the rules of canaries of a rule."""
        return (
            other for other in self.of_host(rule.host) if is_canary(other.ingress) and other.key == rule.key
        )


class IngressRouter:
    """Decides by the Ingresses of some controllers."""

    def __init__(
        self,
        tables: Mapping[str, IngressTable],
        has_certificate: Callable[[str], bool],
        https_port: Callable[[], int],
        random: Callable[[int], int],
    ) -> None:
        """`has_certificate` returns whether a host has one of a Secret, `random` a number below another one."""
        self._tables = tables
        self._has_certificate = has_certificate
        self._https_port = https_port
        self._random = random

    def error_body(self, status: int) -> bytes:
        controller = next(iter(self._tables), NGINX)
        if controller == TRAEFIK:
            return _TRAEFIK_TEXTS.get(status, "").encode()
        return _PAGE.format(status=status, reason=_REASONS.get(status, "Error")).encode()

    def _error(self, status: int) -> FixedAnswer:
        html = NGINX in self._tables
        content_type = "text/html" if html else "text/plain; charset=utf-8"
        return FixedAnswer(
            status=status, headers=[("Content-Type", content_type)], body=self.error_body(status)
        )

    def decide(self, request: ProxiedRequest) -> FixedAnswer | Forward:
        for controller, table in self._tables.items():
            path = matched_path(controller, request.path)
            if path is None:
                return self._error(400)
            rule = find_rule(table.of_host, controller, request.host, path)
            if rule is not None:
                if controller == NGINX:
                    return self._decide_by_nginx(table, rule, request, path)
                return Forward(
                    backend=rule.backend,
                    target=f"{path}{request.query}",
                    headers=_forwarded_headers(request),
                )
        return self._error(404)

    def _decide_by_nginx(
        self, table: IngressTable, rule: IngressRule, request: ProxiedRequest, path: str
    ) -> FixedAnswer | Forward:
        options = _options(rule.ingress)
        if refusal := self._refusal(options, request):
            return refusal
        if redirect := self._redirect(options, request):
            return redirect
        chosen = self._canary(table, rule, request) or rule
        protocol = _backend_protocol(options)
        if protocol not in _PROTOCOLS:
            return _not_simulated(f"backend-protocol: {protocol}")
        rewritten = rewritten_path(rule, path)
        prefix = options.get("x-forwarded-prefix", "")
        return Forward(
            backend=chosen.backend,
            target=f"{rewritten or request.path}{request.query}",
            host=options.get("upstream-vhost", ""),
            uses_tls=protocol == "HTTPS",
            headers=[
                *_forwarded_headers(request),
                *([("X-Forwarded-Prefix", prefix)] if prefix and rewritten else []),
                *((name, "") for name in request.headers if not name.replace("-", "").isalnum()),
            ],
            seconds=float(int_or_none(options.get("proxy-read-timeout", "")) or 60),
            max_body=_size(options.get("proxy-body-size", "")),
        )

    def _refusal(self, options: Mapping[str, str], request: ProxiedRequest) -> FixedAnswer | None:
        closing = next((name for name in options if _is_closing(name)), "")
        if closing:
            return _not_simulated(closing)
        allowed = options.get("whitelist-source-range") or options.get("allowlist-source-range")
        if allowed and not _is_in(request.client, allowed):
            return self._error(403)
        denied = options.get("denylist-source-range")
        return self._error(403) if denied and _is_in(request.client, denied) else None

    def _redirect(self, options: Mapping[str, str], request: ProxiedRequest) -> FixedAnswer | None:
        wants_tls = options.get("force-ssl-redirect") == "true" or (
            options.get("ssl-redirect") != "false" and self._has_certificate(request.host)
        )
        if not request.uses_tls and wants_tls:  # X-Forwarded-Proto is trusted with use-forwarded-headers only
            port = self._https_port()
            location = f"https://{request.host}{'' if port == _HTTPS else f':{port}'}{request.target}"
            return self._redirection(_KEEPS_METHOD, location)
        if (root := options.get("app-root")) and request.path == "/":
            scheme = "https" if request.uses_tls else "http"
            return self._redirection(_TEMPORARY, f"{scheme}://{request.headers.get('host', '')}{root}")
        for name, code in (("permanent-redirect", _PERMANENT), ("temporal-redirect", _TEMPORARY)):
            if target := options.get(name):
                number = int_or_none(options.get(f"{name}-code", "")) or code
                return self._redirection(number if 300 <= number < 400 else code, target)
        return None

    def _redirection(self, status: int, location: str) -> FixedAnswer:
        if any(ord(letter) < 32 for letter in location):
            return self._error(400)
        return FixedAnswer(status=status, headers=[("Content-Type", "text/html"), ("Location", location)])

    def _canary(self, table: IngressTable, rule: IngressRule, request: ProxiedRequest) -> IngressRule | None:
        """Return the canary that gets a request: by a header, or else by a cookie, or else by its weight."""
        for canary in table.canaries(rule):
            options = _options(canary.ingress)
            verdict = _verdict(options, request)
            weight, total = (
                int_or_none(options.get("canary-weight", "")) or 0,
                int_or_none(options.get("canary-weight-total", "")),
            )
            if verdict or (verdict is None and self._random(total or 100) < weight):
                return canary
            return None
        return None


def _verdict(options: Mapping[str, str], request: ProxiedRequest) -> bool | None:
    """Return whether the headers of a request choose a canary; None if they do not say."""
    if name := options.get("canary-by-header"):
        value = request.headers.get(name.lower())
        wanted_value = options.get("canary-by-header-value")
        if wanted_value is not None and value is not None:
            return True if value == wanted_value else None
        if value in ("always", "never"):
            return value == "always"
    if name := options.get("canary-by-cookie"):
        cookies = (part.strip().partition("=") for part in request.headers.get("cookie", "").split(";"))
        value = next((value for key, _, value in cookies if key == name), None)
        if value in ("always", "never"):
            return value == "always"
    return None


def _options(ingress: ReadOnlyTree) -> Mapping[str, str]:
    """Return the annotations of ingress-nginx by their names without its prefix."""
    return {
        name.removeprefix(ANNOTATIONS): value
        for name, value in meta.annotations(ingress).items()
        if name.startswith(ANNOTATIONS)
    }


def _forwarded_headers(request: ProxiedRequest) -> Sequence[Header]:
    scheme = "https" if request.uses_tls else "http"
    return [
        ("X-Real-IP", request.client),
        ("X-Forwarded-For", request.client),
        ("X-Original-Forwarded-For", request.headers.get("x-forwarded-for", "")),
        ("X-Forwarded-Host", request.headers.get("host", "")),
        ("X-Forwarded-Port", str(request.port)),
        ("X-Forwarded-Proto", scheme),
        ("X-Forwarded-Scheme", scheme),
        ("X-Scheme", scheme),
        ("Proxy", ""),  # left out: some libraries would use it as a proxy of their own requests
    ]


def _not_simulated(option: str) -> FixedAnswer:
    text = f"mockube: the annotation {ANNOTATIONS}{option} is not simulated\n"
    return FixedAnswer(
        status=503, headers=[("Content-Type", "text/plain; charset=utf-8")], body=text.encode()
    )


def _is_in(address: str, ranges: str) -> bool:
    return any(contains(part.strip(), address) for part in ranges.split(","))


def _size(text: str) -> int:
    """Return the number of bytes in a size of nginx, such as 8m; 0 for no limit."""
    text = text.strip().lower()
    number = int_or_none(text[:-1] if text[-1:] in _SIZES else text)
    return _MEBIBYTE if number is None else number * _SIZES.get(text[-1:], 1)
