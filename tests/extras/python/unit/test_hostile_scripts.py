"""Hostile Python scripts: what takes long is divided or refused before it begins, what is large is refused, and nothing of this process is in reach."""

import ast

import pytest

from mockube.container_runtime.simulated.shell.memory import OutOfMemory
from mockube.container_runtime.simulated.shell.process import UnknownProgram
from mockube.extras.python import costs, limits, source, syntax
from tests.extras.python.support.scripts import run

DEEP = "x = ()\nfor i in range(500): x = (x,)\n"
SHARED = "x = (1,)\nfor i in range(60): x = (x, x)\n"
LARGE = 2**200_000


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("script", "message"),
    [
        # what would take too long at once
        ("'a'.join(['b'] * 900_000)", "bytes"),
        ("x = 'ab' * 400_000 + 'c'\nx.title()", "an operation on values of this size"),
        ("x = 'a' * 900_000 + 'b'\nx.rfind('b' + 'a' * 400_000 + 'c')", "an operation on values of this size"),
        ("x = 'a' * 20_000 + 'b'\nx.find('a' * 10_000 + 'c')", "an operation on values of this size"),
        ("('a' * 900_000 + 'b').strip('c' * 50_000 + 'a')", "an operation on values of this size"),
        ("a = set(range(101_000))\nb = set(range(101_000))\na | b", "an operation on values of this size"),
        ("import random\nx = list(range(100_000))\nrandom.shuffle(x)", "an operation on values of this size"),
        ("import math\nmath.fsum([1e308, 1.0] * 300_000)", "an operation on values of this size"),
        ("pow(7, 3**50_000, 3**50_001)", "an operation on values of this size"),
        ("import math\nmath.gcd(3**160_000, 7)", "a number of"),
        ("import math\nmath.factorial(10**6)", "math.factorial"),
        ("import json\njson.loads('[' + '[], ' * 200_000 + '1]')", "an operation on values of this size"),
        ("import random\nrandom.betavariate(float('nan'), 1)", "random.betavariate"),
        ("from datetime import datetime\ndatetime.strptime(' ' * 1000, ' ' * 1000)", "strptime"),
        ("('\\xe9' * 1000).encode('idna')", "this encoding"),
        ("b'%999999999d' % 1", "the operator % of Python for bytes"),
        ("import itertools\nitertools.product([1], repeat=10**9)", "itertools.product"),
        # what is too large
        ("x = 2\nwhile True: x = x * x", "a number of"),
        ("1 << 10**8", "a value of 12500000 bytes"),
        ("int('f' * 100_000, 16)", "a number with so many digits"),
        ("int.from_bytes(b'a' * 10**6, 'big')", "a number of this size"),
        ("'%999999999d' % 1", "a value of 999999999 bytes"),
        ("x = 'a' * 10**6\nx.replace('a', 'aaaaaa')", "a value of 6000000 bytes"),
        ("('\\t' * 1000).expandtabs(10**5)", "a value of"),
        ("('a' * 10_000).translate({97: 'b' * 1000 + 'c'})", "a value of"),
        ("x = 'ab' * 3_000_000 + 'c'\nprint(x[0])", "the contents of a value of 6000001 bytes"),
        ("x = [0] * 10**9\nx.sort()", "sort"),
        ("list(range(10**8))", "a container of 100000000 elements"),
        # what other keys or classes make slow
        ("d = {}\nfor i in range(10_000): d[i * (2**61 - 1)] = 1", "have the same hash"),
        ("set([(i, j) for i in range(2_000) for j in (-1, -2)])", "have the same hash"),
        (DEEP + "{x: 1}", "a key of this size"),
        (DEEP + "x in {1: 1}", "a key of this size"),
        (DEEP + "{}.get(x)", "a key of this size"),
        (DEEP + "set().union([x])", "a key of this size"),
        (DEEP + "{1: 1}.keys() & [x]", "a key of this size"),
        (DEEP + "dict.fromkeys([x])", "a key of this size"),
        (DEEP + "import os\nos.environ[x]", "a key of this size"),
        (DEEP + "from collections import Counter\nCounter([x])", "a key of this size"),
        (SHARED + "hash(x)", "a key of this size"),
        (SHARED + "isinstance(1, x)", "a tuple of so many classes"),
        ("class A:\n    def __hash__(self): return 1\n{A(): 1}", "__eq__ or __hash__"),
        ("class A: pass\nfor i in range(300):\n    class A(A): pass", "a class in Python with so many bases"),
        ("def g():\n    yield from g()\nlist(g())", "generators that read from each other"),
        # what is too long to be parsed
        ("x = [" + "1," * 10_000 + "]", "too long"),
        ("-" * 20_000 + "1", "too long"),
        ("a" + "\u0301\u0316" * 500 + " = 1", "too long"),
        ("x = 1\n" * 60_000, "too long"),
    ],
)  # fmt: skip
def test_an_operation_that_takes_too_long_is_refused_by_name(script, message):
    with pytest.raises(UnknownProgram, match=message):
        run(script, max_commands=20_000)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "script",
    [
        SHARED + "print(x)",
        SHARED + "y = (1,)\nfor i in range(60): y = (y, y)\nx == y",
        SHARED + "import json\njson.dumps(x)",
        "x = list(range(300_000))\nx.sort(key=lambda v: -v)",
        "x = [1.5] * 900_000\nwhile True: 2 in x",
        "x = [1.5] * 900_000\nwhile True: x.index(1.25) if 1.25 in x else x.count(2)",
        "x = [0] * 900_000\nfor i in range(10**6): x.insert(0, 1)",
        "x = [0] * 900_000\nfor i in range(800_000): del x[0]",
        "x = [0] * 900_000\ny = [0.0] * 900_000\nwhile True: x == y",
        "x = 3**80_000\ni = 0\nwhile True:\n    i += 1\n    y = x * (x + i)",
        "x = 'a ' * 300_000\ni = 0\nwhile True:\n    i += 1\n    y = x.split()",
        "print(('%%' * 300_000) % ())",
        "print(('{}' * 300_000).format(*range(300_000)))",
        "import hashlib\ni = 0\nwhile True:\n    i += 1\n    x = hashlib.sha512(b'a' * 4_000_000)",
        "import random\nrandom.choices([1, 2], k=900_000)",
        "sum(range(10**9))",
        "print(len([a for a in range(10**4) for b in range(10**4)]))",
        "for i in range(10**12): x = [i]",
        "def g():\n    while True: yield 1\nsum(g())",
        "class A:\n    def __iter__(self): return self\n    def __next__(self): return 1\nlist(A())",
        "x = [1]\nfor y in x: x.append(y)",
        "i = 0\nwhile True:\n    i += 1\n    [" + "+".join("a" * 900) + " for a in []]",
        "i = 0\nwhile True:\n    i += 1\n    try: 1 / 0\n    except Exception: pass",
        "import sys\ni = 0\nwhile True:\n    i += 1\n    try: sys.exit(i)\n    finally: continue",
    ],
)  # fmt: skip
def test_endless_work_is_divided(script):
    result = run(script, max_commands=600)
    assert (result.code, result.commands) == (None, 600)


@pytest.mark.parametrize(
    "script",
    ["while True: pass", "while True: print()", "while True:\n    try: input()\n    except EOFError: pass"],
)
def test_a_loop_that_changes_nothing_is_skipped(script):
    result = run(script)
    assert (result.code, result.commands < 10) == (None, True)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("def f(): f()\nf()", "RecursionError"),
        ("def f():\n    try: 1 / 0\n    except Exception: f()\nf()", "RecursionError"),
        ("x = []\nfor i in range(1200): x = [x]\nrepr(x)", "RecursionError"),
        ("x = []\ny = []\nfor i in range(1200): x, y = [x], [y]\nx == y", "RecursionError"),
        ("a = {}\na['a'] = a\nb = {}\nb['a'] = b\na == b", "RecursionError"),
        ("import json\nx = []\nfor i in range(1200): x = [x]\njson.dumps(x)", "RecursionError"),
        ("import json\nx = {}\nx['a'] = x\njson.dumps(x)", "Circular reference"),
        ("class A: pass\nA.__call__ = A()\nA()()", "RecursionError"),
        ("class A:\n    def __getattr__(self, name): return getattr(self, name)\nA().x", "RecursionError"),
        ("class A:\n    def __eq__(self, other): return A() == other\nA() == 1", "RecursionError"),
        ("int('9' * 10**6)", "Exceeds the limit"),
        ("'a'.ljust(10**9)", "MemoryError"),
        ("10**10**10", "MemoryError"),
        ("class E(Exception):\n    def __str__(self): raise E\nraise E", "exception str() failed"),
        ("e = ValueError(1)\ne.__dict__.clear()\nraise e", "ValueError"),
        ("e = ValueError(1)\ne.args = 5\nraise e", "ValueError"),
        ("print('\\ud800')", "UnicodeEncodeError"),
        ("from datetime import datetime\ndatetime.fromtimestamp(10**18)", "Error"),
        ("import os\nos.listdir(5)", "TypeError"),
        ("chr(-1)", "ValueError"),
        ("d = {1: 1}\nfor k in d: d[k + 1] = 1", "RuntimeError"),
        ("import threading\nwhile True: threading.Thread(target=lambda: None).start()", "can't start new thread"),
        ("yield 1", "'yield' outside function"),
        ("if 1:\n    break", "'break' outside loop"),
        ("print(1)\0", "null bytes"),
    ],
)  # fmt: skip
def test_a_script_that_python_does_not_run_either_ends_with_its_error(script, error):
    result = run(script, max_commands=20_000)
    assert (result.code, error in result.stderr) == (1, True), result.stderr


@pytest.mark.parametrize(
    "expression",
    [
        "().__class__.__bases__", "().__class__.__base__", "print.__self__", "[].append.__self__", "(lambda: 0).__globals__",
        "(lambda: 0).__code__", "(lambda: 0).__closure__", "(x for x in []).gi_frame", "(x for x in []).gi_code", "''.format.__self__",
        "'{0.__globals__}'.format(print)", "'{0.__class__.__mro__}'.format(1)", "'%(a.b)s' % {}", "print.call", "print.__module__.__dict__",
        "getattr(print, 'call')", "type(print).__subclasses__", "int.host", "str.call", "ValueError.__subclasses__", "ValueError.namespace",
        "ValueError(1).trace", "ValueError(1).cls", "__builtins__", "__loader__", "object.__subclasses__", "super.__init__.__globals__",
        "type.__getattribute__", "[].__reduce__", "[].__reduce_ex__(2)", "{}.__init_subclass__", "1 .__add__", "slice(1).__class__.__base__",
    ],
)  # fmt: skip
def test_nothing_of_this_process_is_in_reach(expression):
    result = run(f"print({expression})")
    assert (result.code, "Error: " in result.stderr.splitlines()[-1]) == (1, True), result.stdout


@pytest.mark.parametrize(
    "script",
    [
        "eval('1')", "exec('1')", "compile('1', '', 'eval')", "__import__('os')", "breakpoint()", "type('A', (), {})",
        "import ctypes", "import pickle", "import marshal", "import subprocess", "import builtins", "import gc\ngc.get_objects()",
        "import os\nos.system('id')", "import os\nos.popen('id')", "import sys\nsys._getframe()", "import sys\nsys.settrace(None)",
        "import json\njson.codecs", "import random\nrandom._os", "import threading\nthreading._os", "import os\nos.__loader__",
    ],
)  # fmt: skip
def test_a_function_that_could_reach_more_is_refused_by_name(script):
    with pytest.raises(UnknownProgram):
        run(script)


def test_the_classes_of_errors_are_the_same_for_all_scripts():
    assert "immutable type" in run("ValueError.__str__ = lambda self: 'x'").stderr
    assert run("import json\njson.JSONDecodeError.__str__ = lambda self: 'x'").code == 1


@pytest.mark.thorough
def test_the_values_of_a_script_take_the_memory_of_its_container():
    script = "x = []\nwhile True: x.append([1] * 200_000)"
    with pytest.raises(OutOfMemory):
        run(script, limit=30 << 20, max_commands=40_000)
    with pytest.raises(UnknownProgram, match="whose values take more than 64 MiB"):
        run(script, max_commands=40_000)


def test_values_that_nothing_refers_to_any_more_take_no_memory():
    result = run("i = 0\nwhile True:\n    i += 1\n    x = [1] * 200_000", limit=16 << 20, max_commands=1_000)
    assert result.code is None


def test_a_long_list_that_repeats_values_is_not_stored():
    result = run("x = [1, 2] * 10**8\nprint(len(x), x[-1], x[4])")
    assert (result.stdout, result.memory[0]) == ("200000000 2 1\n", 1_600_000_000)


def test_a_loop_of_python_has_fewer_effects_than_one_of_the_shell():
    python = (
        "import time\ni = 0\nwhile True:\n    i += 1\n    print(f'line {i}', flush=True)\n    time.sleep(1)"
    )
    shell = "i=0; while true; do i=$((i+1)); echo line $i; sleep 1; done"
    assert run(python).stdout == run(argv=("sh", "-c", shell)).stdout
    assert run(python).effects < run(argv=("sh", "-c", shell)).effects


# --- what operations cost


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (costs.method("split", "a " * 10, []), costs.method("split", "a " * 1000, [])),
        (costs.method("find", "a" * 1000, ["ab"]), costs.method("find", "a" * 100_000, ["ab"])),
        (costs.method("rfind", "a" * 1000, ["a" * 10]), costs.method("rfind", "a" * 10_000, ["a" * 100])),
        (costs.method("extend", [], [[1] * 10]), costs.method("extend", [], [[1] * 1000])),
        (costs.method("union", {1}, [[1] * 10]), costs.method("union", {1}, [[1] * 1000])),
        (costs.method("copy", {1: 1}, []), costs.method("copy", dict.fromkeys(range(100)), [])),
        (costs.operation("*", 2**100, 2**100), costs.operation("*", LARGE, LARGE)),
        (costs.operation("//", 2**100, 2**50), costs.operation("//", LARGE, 2**100_000)),
        (costs.operation("|", {1}, {2}), costs.operation("|", {1}, set(range(100)))),
        (costs.operation("+", [1], [2]), costs.operation("+", [1], [2] * 100)),
        (costs.modular_power(3, 2**100), costs.modular_power(LARGE, 2**100)),
    ],
)
def test_the_cost_of_an_operation_grows_with_its_operands(small, large):
    assert 0 < 10 * small <= large


def test_an_operation_on_keys_that_are_tuples_costs_what_their_comparison_does():
    assert costs.of_keys({(1, 2), (3, 4)}) < costs.of_keys({((1, 2), 3), ((3, 4), 5)})
    assert costs.of_keys([((1,), index) for index in range(6_000)]) > limits.MAX_WORK


# --- the division of a script


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n" * 3_000,
        "@a\n@b\ndef f():\n    return (1,\n2)\nif x:\n    y\nelse:\n    z\n" * 300,
        "x = '''\na = 1\n'''\ny = [\n1,\n2]\n# a\nz = \"\\\"\" 'b' \\\n+ 1\n" * 300,
        "try:\n    a\nexcept B:\n    c\nfinally:\n    d\ndef f(): return f'{a!r:>{b}}' f\"{c['d']}\"\n" * 200,
    ],
)
def test_a_script_in_parts_is_the_same_as_the_whole(text):
    found = [part for part in source.parts(text) if part is not None]
    statements = [statement for part in found for statement in ast.parse(part.text).body]
    whole = ast.parse(text)
    assert len(found) > 1
    assert ast.dump(ast.Module(statements, []), include_attributes=True) == ast.dump(
        whole, include_attributes=True
    )
    assert syntax.misplaced(statements) is None


def test_a_script_lets_others_run_while_it_is_divided():
    assert [*source.parts("a = 1; " * 1000)].count(None) > 4
