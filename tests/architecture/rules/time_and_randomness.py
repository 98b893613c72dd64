"""Rule: clocks and random sources are injected, so that everything follows the clock of the cluster, or a stepped one.

What reads the time, sleeps, or calls back later counts, and so does a second real clock, and `clock.real` of the injected
one: what must not follow the cluster is listed here, with its reason. Timeouts of sockets and of threads, which the
libraries have as arguments, do not count: they are real by nature.
"""

import ast
from collections.abc import Iterator, Mapping
from itertools import chain

from tests.architecture.rules.names import Use, forbidden_among, matches, uses
from tests.architecture.source import Finding, Module

_CLOCK = "inject a Clock (component_base/clock.py)"
_REAL = "use the cluster's clock, or list what must be real, and why"
_RANDOMNESS = "inject a seeded source, as the clock is injected"

_VARIABLES: Mapping[str, str] = {
    "*loop.time": _CLOCK,
    "*loop.call_at": _CLOCK,
    "*loop.call_later": _CLOCK,
    "*clock.real": _REAL,
}
"""Attributes of variables, which are known by their names only."""
_ATTRIBUTES = {name.rpartition(".")[2] for name in _VARIABLES}

FORBIDDEN: Mapping[str, str] = {
    **_VARIABLES,
    "time.*": _CLOCK,
    "datetime.datetime.now": _CLOCK,
    "datetime.datetime.utcnow": _CLOCK,
    "datetime.datetime.today": _CLOCK,
    "datetime.date.today": _CLOCK,
    "asyncio.sleep": _CLOCK,
    "asyncio.timeout": _CLOCK,
    "asyncio.timeout_at": _CLOCK,
    "asyncio.wait_for": _CLOCK,
    "asyncio.get_*loop().time": _CLOCK,
    "asyncio.get_*loop().call_at": _CLOCK,
    "asyncio.get_*loop().call_later": _CLOCK,
    "threading.Timer": _CLOCK,
    "aiohttp.helpers.rfc822_formatted_time": _CLOCK,
    "mockube.component_base.clock.RealClock": _REAL,
    "random.*": _RANDOMNESS,
    "secrets.*": _RANDOMNESS,
    "uuid.uuid1": _RANDOMNESS,
    "uuid.uuid4": _RANDOMNESS,
    "os.urandom": _RANDOMNESS,
    "os.getrandom": _RANDOMNESS,
}

_NEW_REAL_CLOCK = "mockube.component_base.clock.RealClock"
_DEADLINE = {"*clock.real": "deadlines of requests and of what a request waits for"}
_DURATION = {"*clock.real": "the duration of work, in metrics"}
_SOCKET = {"*clock.real": "timeouts of connections"}
_FILE = {"*clock.real": "how often a file of this machine, or another server, is read"}

ALLOWED: Mapping[str, Mapping[str, str]] = {
    "apimachinery/randomness.py": {"os.urandom": "it is the source of randomness"},
    "component_base/clock.py": {
        "time.monotonic": "it is the clock",
        "datetime.datetime.now": "it is the clock",
        "asyncio.sleep": "it is the clock",
        "asyncio.get_running_loop().call_later": "it is the clock",
        "*clock.real": "how long a request takes between two steps of an advance, and coalescing in a pause",
    },
    "component_base/process_fork.py": {"loop.call_later": "how often the end of a process is looked for"},
    "extras/python/clocks.py": {
        "random.Random": "the module random of simulated scripts, whose seeds yield what Python's own yield"
    },
    "container_runtime/simulated/work_turns.py": {
        "time.thread_time": "how long commands use the event loop at once, whatever the time of the cluster is"
    },
    # sockets and TLS
    "publisher/publisher.py": {"context.clock.real": "the connections of clients on this machine"},
    "publisher/http_listeners.py": {"context.clock.real": "the connections of clients on this machine"},
    "publisher/service_connections.py": {"context.clock.real": "the connections of clients on this machine"},
    "apiserver/http/backend_connection.py": {_NEW_REAL_CLOCK: "timeouts of connections"},
    "component_base/aiohttp_protocol.py": {
        "self._loop.time": "the idle connection of a client, as aiohttp closes it",
        "self._loop.call_at": "the idle connection of a client, as aiohttp closes it",
    },
    "apiserver/http/response.py": {
        "aiohttp.helpers.rfc822_formatted_time": "the Date of a response, which clients and caches compare with their own time"
    },
    "apiserver/http/server.py": {_NEW_REAL_CLOCK: "timeouts of connections"},
    "apiserver/http/service_proxy.py": {_NEW_REAL_CLOCK: "timeouts of connections, and TLS"},
    "apiserver/parts/outgoing.py": _SOCKET,
    "apiserver/store.py": {
        _NEW_REAL_CLOCK: "TLS of connections to etcd",
        "clock.real": "deadlines of requests to etcd, whose leases have real time, too",
    },
    "client/clock_follower.py": {"*clock.real": "the connection over which the clock is followed"},
    "mockube/embedded/running_fork.py": {"*clock.real": "how long a function of the user is waited for"},
    "apiserver/storage/compaction.py": {"clock.real": "intervals that an advance does not use up"},
    "client/tls.py": {_NEW_REAL_CLOCK: "timeouts of connections, and TLS"},
    "container_runtime/simulated/connections/local_connections.py": _SOCKET,
    "container_runtime/simulated/connections/process_connections.py": _SOCKET,
    "container_runtime/pod_network/name_server.py": _SOCKET,
    "container_runtime/pod_network/network.py": _SOCKET,
    "container_runtime/port_connections.py": _SOCKET,
    "kubelet/server/remote_command.py": _SOCKET,
    # requests
    "apiserver/admission/podsecurity/plugin.py": _DEADLINE,
    "apiserver/parts/health.py": _DEADLINE,
    "apiserver/registry/resource_watchers.py": _DEADLINE,
    "apiserver/request/snapshot_endpoint.py": _DEADLINE,
    "apiserver/storage/cache_lag.py": {"*clock.real": "how far the cache is behind the store"},
    "apiserver/storage/store_reflector.py": {"*clock.real": "the connection to the store"},
    "apiserver/storage/watch_cache.py": _DEADLINE,
    "mockube/embedded/determinism.py": {"*clock.real": "how long a request waits for another program"},
    # durations in metrics and traces
    "apiserver/admission/chain.py": _DURATION,
    "apiserver/admission/image_policy_webhook.py": {"*clock.real": "attempts of a request to a webhook"},
    "apiserver/admission/policies/mutating.py": _DURATION,
    "apiserver/admission/policies/validating.py": _DURATION,
    "apiserver/admission/webhooks/dispatch.py": _DURATION,
    "apiserver/authn/authenticators.py": _DURATION,
    "apiserver/authn/chain.py": {"*clock.real": "attempts of a request to a webhook"},
    "apiserver/authn/page_sessions.py": {
        "*clock.real": "how long a browser may use its tokens: an advance ends no session"
    },
    "apiserver/authz/webhook.py": _DURATION,
    "apiserver/control/advances.py": {
        "*clock.real": "how long another process of the cluster is idle in an advance"
    },
    "apiserver/control/access.py": {"*clock.real": "how long a decision about a watch holds"},
    "apiserver/control/participants.py": {"*clock.real": "how long an advance waits for another program"},
    "apiserver/parts/requests.py": {"*clock.real": "deadlines, durations and connections of requests"},
    "apiserver/parts/registry.py": {"*clock.real": "durations in metrics"},
    "apiserver/parts/ui.py": {"*clock.real": "the sessions of browsers"},
    "apiserver/parts/tracing.py": {"*clock.real": "spans, beside those of other programs"},
    "client/cache/informer.py": _DURATION,
    "client/queue/reconcile_loop.py": _DURATION,
    "client/sender.py": _DURATION,
    "controller_manager/control/runner.py": _DURATION,
    # files, disks and other servers
    "apiserver/authn/oidc/authenticators.py": _FILE,
    "apiserver/authz/configured_authorizers.py": _FILE,
    "etcd/embedded/durable.py": {"*clock.real": "how often a failed disk is tried"},
    # processes
    "apiserver/app.py": {"*clock.real": "timeouts of connections"},
    "apiserver/parts/context.py": {"*clock.real": "restarts of failed tasks"},
    "component_base/interpreter_memory.py": {"loop.call_later": "the garbage collector of the process"},
    "apiserver/running.py": {"*clock.real": "the drain of connections, and files"},
    "apiserver/serve.py": {"*clock.real": "the shutdown of the process"},
    "controller_manager/app.py": {
        "*clock.real": "the wait for a server, the shutdown, and durations in metrics"
    },
    "controller_manager/component_leaders.py": {"*clock.real": "the end of work in progress"},
    "mockube/embedded/process_fork.py": {
        "*clock.real": "how long a fork waits, and when it publishes its address"
    },
    "mockube/one_process/forks.py": {"*clock.real": "the start and the end of a process, and its files"},
    "mockube/one_process/plane.py": {"*clock.real": "restarts of a failed manager, and the shutdown"},
    "container_runtime/process/process_run.py": {"*clock.real": "the output of a process that has ended"},
    "kubelet/probes/prober.py": {"*clock.real": "timeouts of requests to a process"},
}
"""Which file may use what, and why. An entry that is no longer needed is an error, too."""
_USERS_SIDE = "mockube/"
"""Commands, `Cluster` and the clients of tests run in the time of their user; in-process clusters (`embedded/`) do not."""


def check(module: Module, allowed: Mapping[str, Mapping[str, str]] = ALLOWED) -> Iterator[Finding]:
    exempt = allowed.get(module.path, {})
    if module.path.startswith(_USERS_SIDE) and not module.path.startswith(f"{_USERS_SIDE}embedded/"):
        exempt = {_NEW_REAL_CLOCK: "the time of the user", **exempt}
    used = (use for use in _uses_of_time(module) if not matches(use[1], exempt))
    yield from forbidden_among(used, FORBIDDEN)


def idle_exemptions(module: Module, allowed: Mapping[str, Mapping[str, str]] = ALLOWED) -> set[str]:
    exempt = allowed.get(module.path, {})
    return set(exempt) - {matches(name, exempt) for _, name in _uses_of_time(module)}


def _uses_of_time(module: Module) -> Iterator[Use]:
    """Yield the uses of imported names, and those of attributes of variables that are clocks or event loops by their names."""
    return chain(uses(module), _uses_of_variables(module))


def _uses_of_variables(module: Module) -> Iterator[Use]:
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            name = ast.unparse(node)
            if matches(name, _VARIABLES):
                yield node, name
