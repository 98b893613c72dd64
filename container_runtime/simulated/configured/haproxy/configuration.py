"""The configuration of HAProxy: sections, frontends, backends, rules and conditions, and the alerts for invalid ones. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from .conditions import Acl, Condition, ConditionError, acl_of, condition_of, is_unsupported_pattern

_MAX_LINES: Final = 20_000
_MAX_INHERITED: Final = 200_000
"""The number of all rules and criteria that proxies have from their defaults; HAProxy has no limit but its memory."""
_SECTIONS: Final = frozenset(
    {"global", "defaults", "frontend", "backend", "listen", "peers", "resolvers", "userlist", "mailers", "cache", "program", "http-errors", "ring",
     "log-forward", "log-profile", "fcgi-app", "crt-store", "traces", "acme"}
)  # fmt: skip
_PROXIES: Final = frozenset({"defaults", "frontend", "backend", "listen"})
_KEYWORDS: Final = frozenset(
    [
        "acl",
        "appsession",
        "backlog",
        "balance",
        "bind",
        "bind-process",
        "block",
        "capture",
        "clitcpka-cnt",
        "clitcpka-idle",
        "clitcpka-intvl",
        "clitimeout",
        "compression",
        "contimeout",
        "cookie",
        "declare",
        "default-server",
        "default_backend",
        "description",
        "disabled",
        "dispatch",
        "dynamic-cookie-key",
        "email-alert",
        "enabled",
        "error-limit",
        "errorfile",
        "errorfiles",
        "errorloc",
        "errorloc302",
        "errorloc303",
        "external-check",
        "filter",
        "force-be-switch",
        "force-persist",
        "fullconn",
        "grace",
        "guid",
        "hash-balance-factor",
        "hash-preserve-affinity",
        "hash-type",
        "http-after-response",
        "http-check",
        "http-error",
        "http-request",
        "http-response",
        "http-reuse",
        "http-send-name-header",
        "id",
        "ignore-persist",
        "load-server-state-from-file",
        "log",
        "log-format",
        "log-format-sd",
        "log-steps",
        "log-tag",
        "max-keep-alive-queue",
        "max-session-srv-conns",
        "maxconn",
        "mode",
        "monitor",
        "monitor-net",
        "monitor-uri",
        "no",
        "option",
        "persist",
        "quic-initial",
        "rate-limit",
        "redirect",
        "redispatch",
        "retries",
        "retry-on",
        "server",
        "server-state-file-name",
        "server-template",
        "source",
        "srvtcpka-cnt",
        "srvtcpka-idle",
        "srvtcpka-intvl",
        "srvtimeout",
        "stats",
        "stick",
        "stick-table",
        "tcp-check",
        "tcp-request",
        "tcp-response",
        "timeout",
        "transparent",
        "unique-id-format",
        "unique-id-header",
        "use-fcgi-app",
        "use-server",
        "use_backend",
        "usesrc",
        "error-log-format",
    ]
)
_GLOBAL: Final = frozenset(
    [
        "anonkey",
        "busy-polling",
        "ca-base",
        "chroot",
        "close-spread-time",
        "cluster-secret",
        "cpu-map",
        "cpu-policy",
        "cpu-set",
        "crt-base",
        "daemon",
        "debug",
        "default-path",
        "description",
        "dns-accept-family",
        "expose-deprecated-directives",
        "expose-experimental-directives",
        "external-check",
        "fd-hard-limit",
        "force-cfg-parser-pause",
        "gid",
        "grace",
        "group",
        "hard-stop-after",
        "http-err-codes",
        "http-fail-codes",
        "insecure-fork-wanted",
        "insecure-setuid-wanted",
        "issuers-chain-path",
        "key-base",
        "limited-quic",
        "localpeer",
        "log",
        "log-send-hostname",
        "log-tag",
        "master-worker",
        "max-spread-checks",
        "maxcompcpuusage",
        "maxcomprate",
        "maxconn",
        "maxconnrate",
        "maxpipes",
        "maxsessrate",
        "maxsslconn",
        "maxsslrate",
        "maxzlibmem",
        "mworker-max-reloads",
        "nbproc",
        "nbthread",
        "no",
        "no-quic",
        "node",
        "noepoll",
        "noevports",
        "nogetaddrinfo",
        "nokqueue",
        "nopoll",
        "noreuseport",
        "nosplice",
        "numa-cpu-mapping",
        "pidfile",
        "pp2-never-send-local",
        "prealloc-fd",
        "presetenv",
        "quiet",
        "resetenv",
        "server-state-base",
        "server-state-file",
        "set-dumpable",
        "set-var",
        "set-var-fmt",
        "setcap",
        "setenv",
        "spread-checks",
        "stats",
        "strict-limits",
        "thread-group",
        "thread-groups",
        "thread-hard-limit",
        "trace",
        "uid",
        "ulimit-n",
        "unix-bind",
        "unsetenv",
        "user",
        "warn-blocked-traffic-after",
        "zero-warning",
        "noktls",
        "quic-cc",
    ]
)
_GLOBAL_PREFIXES: Final = (
    "tune.", "ssl-", "lua-", "51degrees-", "wurfl-", "deviceatlas-", "h1-", "h2-", "ocsp-update", "profiling.", "httpclient.", "shm-", "jwt.", "acme.",
)  # fmt: skip
_TIMEOUTS: Final = frozenset(
    [
        "client",
        "server",
        "connect",
        "check",
        "queue",
        "http-keep-alive",
        "http-request",
        "tunnel",
        "tarpit",
        "client-fin",
        "server-fin",
        "client-hs",
    ]
)
_REQUEST_RULES: Final = frozenset(
    [
        "return",
        "redirect",
        "deny",
        "allow",
        "set-header",
        "add-header",
        "del-header",
        "replace-header",
        "set-path",
        "replace-path",
        "set-query",
        "set-uri",
        "replace-uri",
        "set-method",
        "auth",
        "tarpit",
        "reject",
        "capture",
        "set-var",
        "unset-var",
        "use-service",
        "track-sc0",
        "track-sc1",
        "track-sc2",
        "cache-use",
        "set-log-level",
        "set-nice",
        "set-src",
        "set-src-port",
        "set-dst",
        "set-dst-port",
        "set-mark",
        "set-tos",
        "silent-drop",
        "set-timeout",
        "wait-for-body",
        "wait-for-handshake",
        "strict-mode",
        "normalize-uri",
        "early-hint",
        "disable-l7-retry",
        "replace-pathq",
        "set-pathq",
        "replace-value",
        "set-priority-class",
        "set-priority-offset",
        "send-spoe-group",
        "set-fc-mark",
        "set-fc-tos",
        "set-bc-mark",
        "set-bc-tos",
        "set-bandwidth-limit",
        "pause",
        "set-retries",
        "do-log",
    ]
)
_REQUEST_PREFIXES: Final = (
    "set-var", "unset-var", "sc-", "set-map(", "del-map(", "add-acl(", "del-acl(", "do-resolve(", "lua.", "track-sc", "set-headers-bin", "ot-group",
)  # fmt: skip
EXPORTER: Final = "prometheus-exporter"
"""The service of `use-service` that is simulated."""
_SIMULATED_RULES: Final = frozenset(
    {"return", "redirect", "deny", "allow", "set-header", "add-header", "del-header", "set-path", "replace-path", "tarpit", "reject", "set-log-level",
     "capture", "set-nice", "strict-mode", "silent-drop", "disable-l7-retry"}
)  # fmt: skip
_PLACES_OF_PATTERNS: Final = {
    "replace-path": 0,
    "replace-pathq": 0,
    "replace-uri": 0,
    "replace-header": 1,
    "replace-value": 1,
}
"""Which argument of a rule is a pattern."""
_VARIABLE: Final = re.compile(r"\$\{?(\w+)(?:-([^}]*))?(?:\[\*\])?\}?")
_TIME: Final = re.compile(r"\d+(?:us|ms|s|m|h|d)?")


class HaproxyConfigurationError(Exception):
    """The configuration is invalid; the lines are HAProxy's alerts, without their levels."""

    def __init__(self, alerts: Sequence[str], warnings: Sequence[str] = ()) -> None:
        super().__init__("\n".join(alerts))
        self.alerts, self.warnings = tuple(alerts), tuple(warnings)


class ProxyRule(Struct, frozen=True, kw_only=True):
    name: str
    arguments: tuple[str, ...] = ()
    condition: Condition | None = None


class ServerAddress(Struct, frozen=True, kw_only=True):
    name: str
    host: str
    port: int = 0
    """The port; 0 for that of the request."""
    tls: bool = False
    is_backup: bool = False
    is_disabled: bool = False
    is_resolved_later: bool = False
    """Whether a missing name does not end the start."""
    line: int = 0


class BoundPort(Struct, frozen=True, kw_only=True):
    port: int
    tls: bool = False
    certificate: str = ""


class Proxy(Struct, kw_only=True):
    kind: str
    name: str
    file: str
    line: int
    mode: str = "tcp"
    binds: list[BoundPort] = field(default_factory=list)
    acls: dict[str, list[Acl]] = field(default_factory=dict)
    request_rules: list[ProxyRule] = field(default_factory=list)
    response_rules: list[ProxyRule] = field(default_factory=list)
    backends: list[ProxyRule] = field(default_factory=list)
    default_backend: str = ""
    servers: list[ServerAddress] = field(default_factory=list)
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)
    timeouts: set[str] = field(default_factory=set)
    stats_uri: str = ""
    monitor_uri: str = ""
    logs: bool = False
    error_files: dict[int, str] = field(default_factory=dict)
    resolvers: bool = False


class HaproxyConfiguration(Struct, kw_only=True):
    proxies: dict[str, Proxy] = field(default_factory=dict)
    """The frontends, backends and both, by their names; a frontend and a backend of one name are kept apart by `frontends`."""
    frontends: list[Proxy] = field(default_factory=list)
    log_stream: int = 0
    """The descriptor of the log; 0 if it is sent elsewhere."""
    warnings: list[str] = field(default_factory=list)
    not_simulated: dict[str, None] = field(default_factory=dict)

    @property
    def ports(self) -> Mapping[int, tuple[Proxy, BoundPort]]:
        return {bind.port: (proxy, bind) for proxy in self.frontends for bind in proxy.binds}


def configuration_of(
    name: str, text: str, environment: Mapping[str, str], has_file: Callable[[str], bool]
) -> HaproxyConfiguration:
    """Return what a file means; raise `HaproxyConfigurationError` for an invalid one."""
    return _Reader(name, environment, has_file).read(text)


class _Reader:
    def __init__(self, name: str, environment: Mapping[str, str], has_file: Callable[[str], bool]) -> None:
        self._name = name
        self._environment = dict(environment)
        self._has_file = has_file
        self._configuration = HaproxyConfiguration()
        self._alerts: list[str] = []
        self._section = ""
        self._proxy: Proxy | None = None
        self._defaults: Proxy | None = None
        self._line = 0
        self._by_name: dict[str, dict[str, Proxy]] = {}
        """The first proxy of each name and kind."""
        self._inherited = 0

    def read(self, text: str) -> HaproxyConfiguration:
        lines = text.split("\n")
        for number, line in enumerate(lines[:_MAX_LINES], 1):
            self._line = number
            if number == len(lines) and line:
                self._alert(
                    f"parsing [{self._name}:{number}]: Missing LF on last line, file might have been truncated at position {len(line) + 1}."
                )
                break
            words = _words(line, self._environment)
            if words:
                self._read_line(words)
        if self._alerts:
            self._alert(f"Error(s) found in configuration file : {self._name}")
        self._check_backends()
        if self._alerts:
            raise HaproxyConfigurationError(
                [*self._alerts, "Fatal errors found in configuration."], self._configuration.warnings
            )
        return self._configuration

    def _alert(self, text: str) -> None:
        self._alerts.append(text)

    def _parsing(self, text: str) -> None:
        self._alert(f"parsing [{self._name}:{self._line}] : {text}")

    def _read_line(self, words: list[str]) -> None:
        if words[0] in _SECTIONS:
            self._begin(words)
        elif not self._section:
            self._parsing(f"unknown keyword '{words[0]}' out of section.")
        elif self._section == "global":
            self._global(words)
        elif self._proxy is not None:
            self._proxy_line(self._proxy, words)

    def _begin(self, words: list[str]) -> None:
        self._section, self._proxy = words[0], None
        if self._section not in _PROXIES:
            return
        name = words[1] if len(words) > 1 else ""
        if self._section != "defaults" and not name:
            self._parsing(f"'{self._section}' expects an <id> argument")
            return
        proxy = Proxy(kind=self._section, name=name, file=self._name, line=self._line)
        if self._section == "defaults":
            self._proxy = self._defaults = proxy
            return
        if self._defaults is not None:
            base = self._defaults
            self._inherited += len(base.request_rules) + len(base.acls)
            if self._inherited > _MAX_INHERITED:
                self._parsing("out of memory.")
                return
            proxy.mode, proxy.logs, proxy.default_backend = base.mode, base.logs, base.default_backend
            proxy.options, proxy.timeouts = dict(base.options), set(base.timeouts)
            proxy.error_files = dict(base.error_files)
            proxy.stats_uri, proxy.monitor_uri = base.stats_uri, base.monitor_uri
            proxy.request_rules = list(base.request_rules)
            proxy.acls = {key: list(acls) for key, acls in base.acls.items()}
        earlier = self._by_name.setdefault(name, {})
        other = next((each for kind, each in earlier.items() if _share(kind, self._section)), None)
        if other is not None:
            self._alert(
                f"Parsing [{self._name}:{self._line}]: {_KINDS[self._section]} '{name}' has the same name as {_KINDS[other.kind]} '{name}' "
                f"declared at {other.file}:{other.line}."
            )
        self._proxy = proxy
        earlier.setdefault(self._section, proxy)
        if self._section in ("frontend", "listen"):
            self._configuration.frontends.append(proxy)
        if self._section in ("backend", "listen"):
            self._configuration.proxies[name] = proxy

    def _global(self, words: list[str]) -> None:
        key = words[0]
        if key not in _GLOBAL and not key.startswith(_GLOBAL_PREFIXES):
            self._parsing(f"unknown keyword '{key}' in 'global' section")
        elif key == "log" and len(words) > 1:
            self._configuration.log_stream = {"stdout": 1, "fd@1": 1, "stderr": 2, "fd@2": 2}.get(words[1], 0)
        elif key in ("setenv", "presetenv") and len(words) > 2:
            self._environment[words[1]] = words[2]

    # --- lines of frontends and backends

    def _proxy_line(self, proxy: Proxy, words: list[str]) -> None:
        key = words[0]
        if key == "no" and len(words) > 1:
            proxy.options.pop(words[2] if len(words) > 2 else "", None)
            return
        if key not in _KEYWORDS:
            self._parsing(f"unknown keyword '{key}' in '{self._section}' section")
            return
        handler = _HANDLERS.get(key)
        try:
            if handler is not None:
                handler(self, proxy, words)
        except ConditionError as error:
            self._parsing(str(error))

    def bind(self, proxy: Proxy, words: list[str]) -> None:
        if len(words) < 2:
            self._parsing("'bind' expects {<path>|[addr1]:port1[-end1]}{,[addr]:port[-end]}... as arguments.")
            return
        options = words[2:]
        tls = "ssl" in options
        certificate = options[options.index("crt") + 1] if "crt" in options[:-1] else ""
        if tls and certificate and not self._has_file(certificate):
            self._parsing(
                f"'bind {words[1]}' in section '{self._section}' : unable to stat SSL certificate from file '{certificate}' : "
                "No such file or directory."
            )
        for address in words[1].split(","):
            if address.startswith(("/", "unix@", "abns@", "quic", "fd@", "sockpair@")):
                continue
            text = address.rpartition(":")[2] if ":" in address else ""
            if not text:
                self._parsing(f"'bind' : missing port specification in '{address}'")
                return
            wrong = next((char for char in text if char not in "0123456789-"), "")
            if wrong:
                self._parsing(f"'bind' : invalid character '{wrong}' in port number '{text}' in '{address}'")
                return
            first, _, last = text.partition("-")
            for port in range(int(first or 0), min(int(last or first), int(first or 0) + 1000) + 1):
                proxy.binds.append(BoundPort(port=port, tls=tls, certificate=certificate))

    def mode(self, proxy: Proxy, words: list[str]) -> None:
        if words[1:2] not in (["http"], ["tcp"], ["health"], ["log"], ["spop"], ["haterm"]):
            self._parsing(f"unknown proxy mode '{''.join(words[1:2])}'.")
            return
        proxy.mode = words[1]

    def timeout(self, proxy: Proxy, words: list[str]) -> None:
        name, value = "".join(words[1:2]), "".join(words[2:3])
        if name not in _TIMEOUTS:
            self._parsing(
                "'timeout' supports 'client', 'server', 'connect', 'check', 'queue', 'http-keep-alive', 'http-request', 'tunnel', 'tarpit', "
                f"'client-fin' and 'server-fin' (got '{name}')"
            )
        elif not _TIME.fullmatch(value):
            wrong = re.sub(r"^\d+", "", value)[:1]
            self._parsing(
                f"unexpected character '{wrong}' in 'timeout {name}'"
                if wrong
                else f"'timeout {name}' expects an integer value (in milliseconds)"
            )
        else:
            proxy.timeouts.add(name)

    def acl(self, proxy: Proxy, words: list[str]) -> None:
        if len(words) < 3:
            self._parsing(f"error detected while parsing ACL '{''.join(words[1:2])}' : missing fetch method.")
            return
        try:
            acl = acl_of(words[2:])
        except ConditionError as error:
            raise ConditionError(f"error detected while parsing ACL '{words[1]}' : {error}.") from error
        proxy.acls.setdefault(words[1], []).append(acl)
        self._note_fetch(acl)

    def _note_fetch(self, acl: Acl) -> None:
        if acl.unknown:
            self._configuration.not_simulated[f"the criterion {acl.unknown} of haproxy"] = None

    def _condition(
        self, proxy: Proxy, words: Sequence[str], place: str
    ) -> tuple[tuple[str, ...], Condition | None]:
        """Return the words before a condition, and the condition."""
        at = next((index for index, word in enumerate(words) if word in ("if", "unless")), None)
        if at is None:
            return tuple(words), None
        try:
            condition = condition_of(words[at + 1 :], proxy.acls, negated=words[at] == "unless")
        except ConditionError as error:
            raise ConditionError(f"error detected while parsing {place} : {error}.") from error
        for acl in condition.acls():
            self._note_fetch(acl)
        return tuple(words[:at]), condition

    def http_request(self, proxy: Proxy, words: list[str]) -> None:
        kind, name = words[0], "".join(words[1:2])
        if name not in _REQUEST_RULES and not name.startswith(_REQUEST_PREFIXES):
            expected = ", ".join(f"'{each}'" for each in sorted(_REQUEST_RULES))
            self._alert(
                f"parsing [{self._name}:{self._line}]: '{kind}' expects {expected}{f', but got {name!r}' if name else ''}."
            )
            return
        article = "an" if kind == "http-request" else "a"
        arguments, condition = self._condition(proxy, words[2:], f"{article} '{kind} {name}' condition")
        self._check_pattern(proxy, f"{kind} {name}", arguments)
        rule = ProxyRule(name=name, arguments=arguments, condition=condition)
        if kind == "http-request":
            proxy.request_rules.append(rule)
        else:
            proxy.response_rules.append(rule)
        is_known = name in _SIMULATED_RULES or (name == "use-service" and arguments[:1] == (EXPORTER,))
        if not is_known and not name.startswith(("set-var", "unset-var", "sc-", "track-sc")):
            self._configuration.not_simulated[f"{kind} {name} of haproxy"] = None

    def _check_pattern(self, proxy: Proxy, rule: str, arguments: Sequence[str]) -> None:
        """Raise an error for a rule whose pattern is invalid; note one whose pattern is not supported."""
        place = _PLACES_OF_PATTERNS.get(rule.partition(" ")[2])
        if place is None or len(arguments) <= place:
            return
        try:
            is_unsupported = is_unsupported_pattern(arguments[place])
        except ConditionError as error:
            raise ConditionError(
                f"error detected in {_KINDS[proxy.kind]} '{proxy.name}' while parsing '{rule}' rule : failed to parse the regex : {error}."
            ) from error
        if is_unsupported:
            self._configuration.not_simulated[f"{rule} {arguments[place]} of haproxy"] = None

    def redirect(self, proxy: Proxy, words: list[str]) -> None:
        arguments, condition = self._condition(proxy, words[1:], "redirect rule")
        proxy.request_rules.append(ProxyRule(name="redirect", arguments=arguments, condition=condition))

    def use_backend(self, proxy: Proxy, words: list[str]) -> None:
        if len(words) < 2:
            self._parsing("'use_backend' expects a backend name.")
            return
        arguments, condition = self._condition(proxy, words[2:], "switching rule")
        proxy.backends.append(ProxyRule(name=words[1], arguments=arguments, condition=condition))

    def default_backend(self, proxy: Proxy, words: list[str]) -> None:
        if len(words) < 2:
            self._parsing("'default_backend' expects a backend name.")
        else:
            proxy.default_backend = words[1]

    def balance(self, _: Proxy, words: list[str]) -> None:
        name = "".join(words[1:2]).partition("(")[0]
        known = "roundrobin static-rr leastconn source uri url_param hdr rdp-cookie first random hash log-hash sticky"
        if name not in known.split():
            self._parsing(
                "balance only supports 'roundrobin', 'static-rr', 'leastconn', 'source', 'uri', 'url_param', 'hdr(name)' and "
                "'rdp-cookie(name)' options."
            )

    def server(self, proxy: Proxy, words: list[str]) -> None:
        if proxy.kind == "frontend":
            self._alert(
                f"[{self._name}:{self._line}] : parsing [{self._name}:{self._line}] : 'server' not allowed because frontend "
                f"'{proxy.name}' has no backend capability."
            )
            return
        if len(words) < 3:
            self._alert(
                f"[{self._name}:{self._line}] : 'server' expects <name> and <addr>[:<port>] as arguments."
            )
            return
        options = words[3:]
        host, _, port = words[2].rpartition(":") if ":" in words[2] else (words[2], "", "")
        initial = options[options.index("init-addr") + 1] if "init-addr" in options[:-1] else ""
        proxy.servers.append(
            ServerAddress(
                name=words[1],
                host=host.strip("[]"),
                port=int(port) if port.isdecimal() and len(port) < 6 else 0,
                tls="ssl" in options,
                is_backup="backup" in options,
                is_disabled="disabled" in options,
                is_resolved_later="none" in initial or any(char in words[2] for char in "/@"),
                line=self._line,
            )
        )

    def server_template(self, proxy: Proxy, words: list[str]) -> None:
        self._configuration.not_simulated["server-template of haproxy: one server stands for all of them"] = (
            None
        )
        if len(words) > 3:
            self.server(proxy, ["server", f"{words[1]}1", words[3], "init-addr", "none"])

    def option(self, proxy: Proxy, words: list[str]) -> None:
        if len(words) > 1:
            proxy.options[words[1]] = tuple(words[2:])

    def stats(self, proxy: Proxy, words: list[str]) -> None:
        if words[1:2] == ["enable"]:
            proxy.stats_uri = proxy.stats_uri or "/haproxy?stats"
        elif words[1:2] == ["uri"] and len(words) > 2:
            proxy.stats_uri = words[2]

    def monitor_uri(self, proxy: Proxy, words: list[str]) -> None:
        proxy.monitor_uri = "".join(words[1:2])

    def log(self, proxy: Proxy, words: list[str]) -> None:
        proxy.logs = words[1:2] == ["global"] or words[1:2] in (["stdout"], ["stderr"])
        if words[1:2] in (["stdout"], ["stderr"]):
            self._configuration.log_stream = 1 if words[1] == "stdout" else 2

    def log_format(self, *_: object) -> None:
        self._configuration.not_simulated["log-format of haproxy"] = None

    def errorfile(self, proxy: Proxy, words: list[str]) -> None:
        if len(words) < 3:
            self._parsing("'errorfile' : expects <status_code> and <file> as arguments.")
        elif not self._has_file(words[2]):
            self._parsing(f"errorfile : error opening file '{words[2]}'.")
        elif words[1].isdecimal():
            proxy.error_files[int(words[1][:3])] = words[2]

    # --- the end

    def _check_backends(self) -> None:
        for proxy in self._configuration.frontends:
            for name, kind in [
                *((rule.name, "use_backend") for rule in proxy.backends),
                (proxy.default_backend, "default_backend"),
            ]:
                if name and name not in self._configuration.proxies and "%" not in name:
                    self._alert(f"Proxy '{proxy.name}': unable to find required {kind}: '{name}'.")
            if not proxy.binds and proxy.kind == "frontend":
                self._configuration.warnings.append(
                    f"config : frontend '{proxy.name}' has no 'bind' directive. Please declare it as a backend if this was intended."
                )
        missing: dict[str, None] = {}
        for proxy in [*self._configuration.frontends, *self._configuration.proxies.values()]:
            kind = _KINDS[proxy.kind]
            needed = {"frontend": {"client"}, "backend": {"connect", "server"}}.get(
                proxy.kind, {"client", "connect", "server"}
            )
            has_work = proxy.servers if proxy.kind == "backend" else proxy.binds
            if has_work and not needed <= proxy.timeouts:
                text = (
                    f"config : missing timeouts for {kind} '{proxy.name}'.\n   | While not properly invalid, you will certainly encounter various "
                    "problems\n   | with such a configuration. To fix this, please ensure that all following\n   | timeouts are set to a non-zero "
                    "value: 'client', 'connect', 'server'."
                )
                missing[text] = None
        self._configuration.warnings += missing


_KINDS: Final = {"frontend": "frontend", "backend": "backend", "listen": "proxy", "defaults": "defaults"}
_HANDLERS: Final[Mapping[str, Callable[[_Reader, Proxy, list[str]], None]]] = {
    "bind": _Reader.bind,
    "mode": _Reader.mode,
    "timeout": _Reader.timeout,
    "acl": _Reader.acl,
    "http-request": _Reader.http_request,
    "http-response": _Reader.http_request,
    "redirect": _Reader.redirect,
    "use_backend": _Reader.use_backend,
    "default_backend": _Reader.default_backend,
    "balance": _Reader.balance,
    "server": _Reader.server,
    "server-template": _Reader.server_template,
    "option": _Reader.option,
    "stats": _Reader.stats,
    "monitor-uri": _Reader.monitor_uri,
    "log": _Reader.log,
    "log-format": _Reader.log_format,
    "errorfile": _Reader.errorfile,
}


def _share(one: str, other: str) -> bool:
    """Return whether two proxies may not have one name."""
    return one == other or "listen" in (one, other)


def _words(line: str, environment: Mapping[str, str]) -> list[str]:
    """Return the words of a line: quotations, escapes, comments, and variables within double quotes."""
    words, word, at, quote, has_word = list[str](), list[str](), 0, "", False
    while at < len(line):
        char = line[at]
        if char == "\\" and quote != "'" and at + 1 < len(line):
            at += 1
            word.append({"t": "\t", "n": "\n", "r": "\r"}.get(line[at], line[at]))
            has_word = True
        elif char == quote:
            quote = ""
        elif not quote and char in "\"'":
            quote, has_word = char, True
        elif not quote and char == "#":
            break
        elif not quote and char in " \t\r":
            if has_word:
                words.append("".join(word))
            word, has_word = [], False
        elif quote == '"' and char == "$" and (match := _VARIABLE.match(line, at)):
            word.append(environment.get(match[1]) or match[2] or "")
            at = match.end() - 1
        else:
            word.append(char)
            has_word = True
        at += 1
    return [*words, "".join(word)] if has_word else words
