"""Each rule finds a violation on its line, and accepts correct code."""

import pytest

from tests.architecture.rules import (
    authors,
    coroutines,
    docstrings,
    imports,
    kinds,
    libraries,
    module_names,
    public_names,
    stale_names,
    suppressions,
    tasks,
    testing,
    time_and_randomness,
    wiring,
)
from tests.architecture.source import Module


def lines(check, path, code):
    return [finding.line for finding in check(Module.of(path, code))]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("import time\nx = time.monotonic()", [2], id="function of the module"),
        pytest.param("from time import time as now\nx = now()", [2], id="alias"),
        pytest.param("import datetime as d\nx = d.datetime.now()", [2], id="alias of the module"),
        pytest.param("from datetime import datetime\nf = datetime.now", [2], id="reference without a call"),
        pytest.param(
            "import asyncio\nt = asyncio.get_running_loop().time()", [2], id="the event loop's clock"
        ),
        pytest.param("def f(self):\n    return self._loop.time()", [2], id="event loop in an attribute"),
        pytest.param("def f(loop):\n    loop.call_later(1, f)", [2], id="timer of an event loop"),
        pytest.param("def f(self):\n    return self._clock.real.now()", [2], id="real time of the clock"),
        pytest.param(
            "from mockube.component_base.clock import RealClock\nclock = RealClock()", [2], id="second clock"
        ),
        pytest.param(
            "from aiohttp.helpers import rfc822_formatted_time\nx = rfc822_formatted_time()",
            [2],
            id="header Date",
        ),
        pytest.param("import random\n\nx = random.choice([1])\ny = random.random()", [3, 4], id="random"),
        pytest.param("import os, uuid\nx = os.urandom(4), uuid.uuid4()", [2, 2], id="system randomness"),
        pytest.param("def f(clock):\n    return clock.now(), clock.time()", [], id="injected clock"),
        pytest.param("from datetime import datetime\nx = datetime(2030, 1, 1)", [], id="constant time"),
        pytest.param(
            "import os, uuid\nx = os.path, uuid.UUID('0' * 32)", [], id="other functions of the modules"
        ),
    ],
)
def test_time_and_randomness(code, expected):
    assert lines(time_and_randomness.check, "etcd/planted.py", code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("import asyncio\nt = asyncio.create_task(f())", [2], id="function of the module"),
        pytest.param("from asyncio import create_task as go\nt = go(f())", [1], id="alias"),
        pytest.param("t = loop.create_task(f())", [1], id="event loop"),
        pytest.param(
            "g.create_task(f())\nh = group.create_task", [1, 2], id="task group, called and referenced"
        ),
        pytest.param("import asyncio\nasyncio.ensure_future(f())", [2], id="ensure_future"),
        pytest.param("import asyncio\nt = asyncio.Task(f())", [2], id="Task class"),
        pytest.param(
            "import asyncio\nt: asyncio.Task[None] = start('a', f())", [], id="Task in an annotation"
        ),
    ],
)
def test_tasks(code, expected):
    assert sorted(lines(tasks.check, "etcd/planted.py", code)) == expected
    assert not lines(tasks.check, "component_base/supervision.py", code)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        pytest.param("self.loop.on_change = self.queue.add", [6], id="callback of another object"),
        pytest.param("loop.on_change = enqueue", [6], id="callback that was passed"),
        pytest.param("self.loop.observe = self.handle", [6], id="method"),
        pytest.param("loop.observe, loop.size = handle, 4", [6], id="function, in a tuple"),
        pytest.param("self.loop.observe = lambda: None", [6], id="lambda"),
        pytest.param("self.loop.observe = partial(handle, 4)", [6], id="partial"),
        pytest.param("self.loop.owner = self", [6], id="the object itself"),
        pytest.param("self.observe = self.handle", [], id="attribute of its own"),
        pytest.param("self.loop = Loop(on_change=self.handle)", [], id="constructor"),
        pytest.param("self.loop.add_handler(self.handle)", [], id="method that adds a handler"),
        pytest.param("self.loop.size = self.size", [], id="data of a property"),
        pytest.param("self.loop.size = handle()", [], id="result of a function"),
        pytest.param("loop.user = request.user", [], id="data of another object"),
    ],
)
def test_wiring(statement, expected):
    code = "\n".join(
        (
            "def handle(): ...",
            "class A:",
            "    @property",
            "    def size(self): ...",
            "    def handle(self, enqueue, loop, request):",
            f"        {statement}",
        )
    )
    assert lines(wiring.check, "kubelet/planted.py", code) == expected
    assert not lines(wiring.check, "apiserver/http/adapter.py", code)


def test_users_side_may_have_a_real_clock_and_embedded_cluster_may_not():
    code = "from mockube.component_base.clock import RealClock\nclock = RealClock()"
    assert lines(time_and_randomness.check, "mockube/cli/planted.py", code) == []
    assert lines(time_and_randomness.check, "mockube/embedded/planted.py", code) == [2]


def test_exemption_applies_to_one_file_and_name():
    allowed = {"etcd/dice.py": {"random.*": "it is the dice"}}
    dice = Module.of("etcd/dice.py", "import random, time\nx = random.random()\ny = time.time()")
    assert [finding.line for finding in time_and_randomness.check(dice, allowed)] == [3]
    assert time_and_randomness.idle_exemptions(dice, allowed) == set()
    assert time_and_randomness.idle_exemptions(Module.of("etcd/dice.py", "x = 4"), allowed) == {"random.*"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("controller_manager/controllers/planted/controller.py", [1]),
        ("controller_manager/workloads/planted.py", [1]),
        ("controller_manager/controllers/reading/calls.py", []),
        ("controller_manager/control/planted.py", []),
    ],
)
def test_coroutines_of_controllers(path, expected):
    module = Module.of(path, "async def reconcile(): ...")
    runnables = {"reading/": "it reads from the server"}
    assert [finding.line for finding in coroutines.check(module, runnables)] == expected


@pytest.mark.parametrize(
    ("path", "code", "expected"),
    [
        pytest.param("apiserver/planted.py", "await self._kv.txn(t)", [1], id="transaction"),
        pytest.param("apiserver/planted.py", "x = 1\nawait backend.kv.put(p)", [2], id="put"),
        pytest.param("apiserver/planted.py", "await kv.delete(d)", [1], id="deletion"),
        pytest.param("apiserver/planted.py", "await kv.revoke(lease)", [1], id="deletion of a lease's keys"),
        pytest.param("apiserver/planted.py", "await kv.range(r)\nqueue.put(x)", [], id="others"),
        pytest.param("apiserver/storage/journal.py", "await kv.txn(t)", [], id="the journal"),
        pytest.param("etcd/planted.py", "await kv.txn(t)", [], id="not of the server"),
    ],
)
def test_authors(path, code, expected):
    assert lines(authors.check, path, f"async def f():\n {code.replace(chr(10), chr(10) + ' ')}") == [
        line + 1 for line in expected
    ]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("if kind == 'Pod': f()", [1], id="name"),
        pytest.param("x = obj['kind'] != 'Pod'", [1], id="subscript"),
        pytest.param("x = 'Pod' == obj.get('kind', '')", [1], id="get() on the right side"),
        pytest.param("x = owner.kind in ('ReplicaSet', 'Job')", [1], id="membership test"),
        pytest.param("match owner_kind:\n    case 'Pod' | 'Job':\n        f()", [1], id="match statement"),
        pytest.param("A = 'Pod'\nx = kind == A", [2], id="constant of the module"),
        pytest.param("A: Final = ('Pod', 'Job')\nx = kind in A", [2], id="constant with several kinds"),
        pytest.param("A = GroupKind('batch', 'Job')\nx = kind == A", [2], id="constant with a group"),
        pytest.param("A = 'Pod'\nB = frozenset({A})\nx = kind in B", [3], id="constant of constants"),
        pytest.param("x = kind == PODS.kind", [1], id="kind of a resource"),
        pytest.param("x = owner['kind'] != kinds.PODS.kind", [1], id="kind of an imported resource"),
        pytest.param("x = kind == other.kind", [], id="comparison of two kinds"),
        pytest.param("A = 'AdmissionReview'\nx = kind == A", [], id="constant with the kind of a body"),
        pytest.param("x = kind == EOF", [], id="another constant"),
        pytest.param("x = token.kind == 'identifier'", [], id="kind of something other than an object"),
        pytest.param("x = {'kind': 'Pod'}", [], id="building an object"),
        pytest.param("x = answer['kind'] == 'Status'", [], id="kind of a response"),
    ],
)
def test_kinds(code, expected):
    assert lines(kinds.check, "apiserver/registry/planted.py", code) == expected


@pytest.mark.parametrize(
    "path",
    ["apiserver/kinds/core/pod/strategy.py", "controller_manager/workloads/adapters.py", "a/adapters/b.py"],
)
def test_kinds_where_they_are_at_home(path):
    assert lines(kinds.check, path, "x = kind == 'Pod'") == []


@pytest.mark.parametrize(
    ("path", "code", "expected"),
    [
        pytest.param("etcd/planted.py", "x = 1", [1], id="module without docstring"),
        pytest.param("etcd/planted.py", '"""Owns x."""\nx = 1', [], id="module with docstring"),
        pytest.param("etcd/__init__.py", '"""A package."""', [1], id="package without membership rule"),
        pytest.param("etcd/__init__.py", "", [1, 1], id="an empty package"),
        pytest.param("etcd/__init__.py", '"""What belongs here."""\nx = f()', [2], id="a package with logic"),
        pytest.param(
            "etcd/__init__.py", '"""belongs here"""\nfrom a import b\n__all__ = ["b"]', [], id="exports"
        ),
    ],
)
def test_docstrings(path, code, expected):
    assert lines(docstrings.check, path, code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("x = 1  # noqa", [1], id="noqa"),
        pytest.param("x = 1  # NOQA because", [1], id="noqa with text"),
        pytest.param("# ruff: noqa\nx = 1", [1], id="noqa of a file"),
        pytest.param("x = 1  # type: ignore", [1], id="type"),
        pytest.param("# mypy: ignore-errors\nx = 1", [1], id="types of a file"),
        pytest.param("x = 1  # noqa: E501 - a reason", [], id="noqa with code"),
        pytest.param("x = 1  # type: ignore[arg-type]", [], id="type with code"),
        pytest.param("x = '# noqa'", [], id="in a string"),
    ],
)
def test_suppressions(code, expected):
    assert lines(suppressions.check, "etcd/planted.py", code) == expected


@pytest.mark.parametrize(
    ("path", "code", "expected"),
    [
        pytest.param("etcd/embedded/planted.py", "import aiohttp", [1], id="the embedded store"),
        pytest.param("apiserver/registry/planted.py", "from aiohttp.web import Response", [1], id="registry"),
        pytest.param(
            "client/verbs.py",
            "import aiohttp.web as w",
            [1],
            id="other module of the client",
        ),
        pytest.param("client/transport.py", "import aiohttp", [], id="transport"),
        pytest.param(
            "controller_manager/http_endpoints.py",
            "from aiohttp import web",
            [],
            id="health endpoints of the manager",
        ),
        pytest.param("apiserver/http/adapter.py", "from aiohttp import web", [], id="the HTTP server"),
        pytest.param("etcd/remote/watch.py", "import aiohttp", [], id="the client of a real etcd"),
        pytest.param(
            "apiserver/registry/planted.py", "from mockube.etcd.kv import KV", [], id="mockube.etcd"
        ),
        pytest.param("apiserver/request/handler.py", "import aiohttp", [1], id="the request handler"),
        pytest.param("apiserver/request/tracing.py", "import grpc", [1], id="the spans of requests"),
        pytest.param("apiserver/tracing/exporter.py", "import grpc", [], id="the exporter of spans"),
    ],
)
def test_libraries(path, code, expected):
    assert lines(libraries.check, path, code) == expected


@pytest.mark.parametrize(
    ("path", "code", "expected"),
    [
        pytest.param("etcd/hub.py", "from .embedded import hub", [], id="another module of the same name"),
        pytest.param("etcd/hub.py", "from . import hub as own", [1], id="self-import"),
        pytest.param("mockube/cli/up.py", "from . import up", [1], id="self-import in mockube/"),
        pytest.param(
            "apiserver/http/a.py",
            "from mockube.etcd import b, c\nfrom mockube.etcd import b as d",
            [2],
            id="two aliases",
        ),
        pytest.param(
            "apiserver/http/a.py",
            "from mockube.etcd import b\nfrom mockube.etcd.b import c",
            [],
            id="module and a name in it",
        ),
        pytest.param(
            "etcd/embedded/a.py",
            "from . import b\nfrom .c import d\nfrom mockube.etcd import e",
            [],
            id="forms",
        ),
        pytest.param(
            "etcd/embedded/a.py", "from mockube.etcd.embedded.b import c", [1], id="absolute in its folder"
        ),
        pytest.param(
            "etcd/embedded/a.py", "from mockube.etcd.embedded import b", [1], id="absolute of its folder"
        ),
        pytest.param("etcd/embedded/a.py", "from ..kv import b", [1], id="relative above its folder"),
        pytest.param(
            "etcd/embedded/a.py", "from .kv import b\nfrom .kv import b as c", [2], id="relative twice"
        ),
    ],
)
def test_imports(path, code, expected):
    assert lines(imports.check, path, code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("import etcd\nfrom etcd.kv import Txn", [1, 2], id="by its folder"),
        pytest.param("from mockube import etcd\nfrom .etcd import kv", [], id="in the namespace"),
    ],
)
def test_packages_are_imported_in_the_namespace(code, expected):
    assert lines(imports.check_namespace, "apiserver/a.py", code) == expected


@pytest.mark.parametrize(
    ("path", "code", "expected"),
    [
        pytest.param("tests/unit/a.py", "from mockube.packs.kruise import pack", [1], id="a pack"),
        pytest.param("tests/unit/a.py", "import tests.packs.kruise.support", [1], id="its tests"),
        pytest.param("tests/unit/a.py", "from mockube.component_base.packs import Pack", [], id="the record"),
        pytest.param("tests/unit/a.py", "from tests.support.packs import install", [], id="packs of tests"),
        pytest.param("tests/packs/a.py", "from mockube.packs.kruise import pack", [], id="in its tests"),
    ],
)
def test_packs_are_imported_by_their_tests(path, code, expected):
    assert lines(imports.check_packs, path, code) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("etcd/utils.py", [1], id="a module"),
        pytest.param("apiserver/common/keys.py", [1], id="a package"),
        pytest.param("controller_manager/app.py", [], id="generic word in a longer name"),
    ],
)
def test_module_names(path, expected):
    assert lines(module_names.check, path, "") == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("def _told(): ...\ndef f():\n    async def given(): ...", [1, 3], id="functions"),
        pytest.param("class Pod:\n    def _asked(self): ...", [2], id="a method"),
        pytest.param(
            "class _Told: ...\ndef f():\n    class World: ...", [1, 3], id="private and inner classes"
        ),
        pytest.param("def f(taken, *what, made_=1): ...\nkey = lambda it: it", [1, 1, 1, 2], id="parameters"),
        pytest.param("class Pod:\n    kept: int\n    shown = 1", [2, 3], id="fields"),
        pytest.param("def _tell(world): ...\nself._fleet = home = 1", [1, 1, 2, 2], id="metaphors"),
        pytest.param("def f(self):\n    self._wanted = 1\n    cls.made += 1", [2, 3], id="attributes"),
        pytest.param(
            "def f():\n    made = 1\n    a, (b, where) = p\n    held: int", [2, 3, 4], id="variables"
        ),
        pytest.param("for given in f(): ...\n[why for why in x]", [1, 2], id="loops"),
        pytest.param("with f() as held:\n    if (it := f()): ...", [1, 2], id="blocks"),
        pytest.param("try: ...\nexcept E as gone: ...\nimport os as which", [2, 3], id="errors and imports"),
        pytest.param(
            "match x:\n case [*shown]: ...\n case {**said}: ...\n case int() as told: ...",
            [2, 3, 4],
            id="patterns",
        ),
        pytest.param(
            "made_pods = pod.given\nother.told = f(what=1)\nNOTHING = 1", [], id="longer and outer names"
        ),
    ],
)
def test_names(code, expected):
    assert sorted(lines(public_names.check, "etcd/planted.py", code)) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("import time\ntime.sleep(1)", [2], id="time"),
        pytest.param("from asyncio import sleep\nawait_(sleep(0.1))", [2], id="asyncio"),
        pytest.param("import asyncio\nf(pause=asyncio.sleep)", [2], id="reference without a call"),
        pytest.param("from unittest.mock import patch\nwith patch('a.b'): f()", [2], id="a mock"),
        pytest.param("async def test(clock):\n    await clock.sleep(5)", [], id="a stepped clock"),
    ],
)
def test_testing(code, expected):
    assert lines(testing.check, "tests/test_planted.py", code) == expected


@pytest.mark.parametrize(
    ("path", "code", "expected"),
    [
        ("tests/unit/test_a.py", "from time import thread_time\ndef test_a():\n    thread_time()", [3]),
        (
            "tests/unit/test_a.py",
            "import time\n@pytest.mark.timed\ndef test_a():\n    time.thread_time()",
            [],
        ),
        ("tests/unit/a.py", "import time\ntime.thread_time()", []),
        ("tests/cli/test_a.py", "import time\ntime.thread_time()", []),
    ],
    ids=["not marked", "marked", "a helper", "a test that make test leaves out"],
)
def test_timed(path, code, expected):
    assert lines(testing.check_timed, path, code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("from mockube.etcd.kv import Nothing", [1], id="imported name"),
        pytest.param("from mockube.etcd import nothing", [1], id="module of a package"),
        pytest.param("import mockube.etcd.nothing.kv", [1], id="dotted module"),
        pytest.param("from mockube.etcd import kv\nx = kv.Nothing", [2], id="attribute"),
        pytest.param("import mockube.etcd.kv as e\ne.nothing()\ne.KV", [2], id="alias"),
        pytest.param("import mockube.etcd.kv\nx = mockube.etcd.kv.Nothing", [2], id="chain of modules"),
        pytest.param(
            "from mockube.etcd import kv\nclass A:\n    def f(self):\n        return kv.Nothing",
            [4],
            id="method",
        ),
        pytest.param(
            "def f():\n    from mockube.etcd import kv\n    kv.Nothing", [3], id="import in a function"
        ),
        pytest.param(
            "from mockube.etcd import kv\ndef f(kv):\n    kv.nothing", [], id="parameter of that name"
        ),
        pytest.param("from mockube.etcd import kv\nfor kv in x:\n    kv.KV", [], id="names that exist"),
        pytest.param("from mockube import Cluster\nCluster.nothing()\nCluster.start", [2], id="class"),
        pytest.param(
            "from mockube import Cluster\nCluster(nodes=1, nothing=2)", [2], id="keyword of a class"
        ),
        pytest.param(
            "from mockube.etcd.kv import prefix_end as f\nf(nothing=2)", [2], id="keyword of a function"
        ),
        pytest.param(
            "from mockube.etcd.kv import Range\nRange(key=b'', nothing=2)", [2], id="keyword of a structure"
        ),
        pytest.param("from os import nothing\nimport json\njson.nothing", [], id="other libraries"),
    ],
)
def test_stale_names(code, expected):
    assert sorted(lines(stale_names.check, "benchmarks/planted.py", code)) == expected
