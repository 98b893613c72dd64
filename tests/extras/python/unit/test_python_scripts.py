"""Python scripts in simulated containers: the same output, tracebacks and exit codes as those of Python's own interpreter."""

from pathlib import Path

import msgspec
import pytest

from mockube.container_runtime.simulated.shell.memory import OutOfMemory
from mockube.container_runtime.simulated.shell.process import UnknownProgram
from tests.extras.python.support.scripts import NAME, run

RECORDS = [
    msgspec.json.decode(line)
    for line in (Path(__file__).parent / "recorded_scripts.jsonl").read_text().splitlines()
]
"""Scripts with the exit code and the output of Python 3.11.7, which ran them as `/scripts/app.py`."""


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["script"][:40])
def test_a_script_does_what_pythons_own_interpreter_does(record):
    result = run(record["script"])
    assert (result.code, result.stdout, result.stderr) == (record["code"], record["stdout"], record["stderr"])


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("10**10**10", "MemoryError"),
        ('"%1000000000d" % 1', "MemoryError"),
        ('f"{1:1000000000}"', "MemoryError"),
        ("().__class__.__bases__", "AttributeError: type object 'tuple' has no attribute '__bases__'"),
        ('"{0.__class__.__mro__}".format(1)', "AttributeError"),
        ("(lambda: 0).__code__", "AttributeError"),
        ("print.__self__", "AttributeError"),
        ("(" * 5000, "SyntaxError: too many nested parentheses"),
        ("x = []\nfor i in range(2000): x = [x]\nprint(x)", "RecursionError"),
        ("import json\nx = []\nx.append(x)\njson.dumps(x)", "ValueError: Circular reference detected"),
    ],
)
def test_a_hostile_script_ends_with_an_error_of_python(script, expected):
    result = run(script)
    assert (result.code, expected in result.stderr.splitlines()[-1]) == (1, True), result.stderr


@pytest.mark.thorough
@pytest.mark.parametrize(
    "script",
    [
        "while True: pass",
        "for i in range(10**12): pass",
        "print(sum(range(10**12)))",
        "x = [0]\nfor i in range(40): x = [x, x]\nprint(x)",
        "def f(): return f2()\ndef f2(): return 1\nwhile True: f()",
    ],
)
def test_a_script_without_an_end_lets_others_run(script):
    assert run(script).code is None


@pytest.mark.parametrize("script", ["list(range(10**9))", "print(*range(10**10))"])
def test_values_that_no_node_has_memory_for_end_as_out_of_memory(script):
    with pytest.raises(OutOfMemory):
        run(script)


def test_a_long_text_takes_the_memory_of_the_container_and_not_that_of_this_process():
    result = run('x = "a" * 10**9\nprint(len(x))\nimport time\ntime.sleep(5)')
    assert (result.code, result.stdout) == (0, "1000000000\n")
    assert result.elapsed > 5


def test_a_text_that_nothing_refers_to_any_more_frees_its_memory():
    assert run("import time\nx = 'a' * 10**9\ntime.sleep(5)\nx = None\ntime.sleep(5)").memory == [10**9, 0]


def test_a_file_of_random_bytes_takes_the_disk_of_the_container_and_not_the_memory_of_this_process():
    script = "import os\nfor i in range(2):\n    with open('/a', 'ab') as f: f.write(os.urandom(600 << 20))\nprint(os.path.getsize('/a'))"
    assert run(script).stdout == "1258291200\n"


def test_output_is_collected_unless_the_script_or_an_option_flushes_it():
    endless = "import time\nprint('a'{})\nwhile True: time.sleep(9)"
    assert run(endless.format("")).stdout == ""
    assert run(endless.format(", flush=True")).stdout == "a\n"
    assert run(endless.format(""), argv=("python3", "-u", NAME)).stdout == "a\n"


def test_time_passes_only_in_sleep():
    script = "import time\nfrom datetime import datetime\nfor _ in range(3):\n    print(datetime.now())\n    time.sleep(1.5)"
    result = run(script)
    assert result.stdout == "2026-01-02 03:04:05\n2026-01-02 03:04:06.500000\n2026-01-02 03:04:08\n"


def test_random_numbers_are_the_same_in_each_run():
    script = "import random, uuid\nprint(random.random(), uuid.uuid4())"
    assert run(script).stdout == run(script).stdout


@pytest.mark.parametrize(
    ("image", "version", "marks"),
    [("python:3.9-slim", "Python 3.9.", False), ("docker.io/library/python:3.12.4", "Python 3.12.4", True)],
)
def test_the_tag_of_the_image_says_the_version(image, version, marks):
    assert run(argv=("python3", "--version"), image=image).stdout.startswith(version)
    assert ("~^~" in run("x = 1/0", image=image).stderr) is marks


def test_a_package_is_not_found_in_the_image_of_python():
    result = run("import requests", image="python:3.9-slim")
    assert (result.code, result.stderr.splitlines()[-1]) == (
        1,
        "ModuleNotFoundError: No module named 'requests'",
    )
    with pytest.raises(UnknownProgram, match="the Python module requests"):
        run("import requests", image="example.org/shop:1")


def test_a_module_that_is_not_simulated_is_named():
    with pytest.raises(UnknownProgram, match="the Python module subprocess"):
        run("import subprocess")
    result = run("print(1)\nimport subprocess", strict=False)
    text = "python: the Python module subprocess is not simulated\n"
    assert (result.code, result.stdout, result.stderr) == (127, "1\n", text)


def test_a_script_reads_and_writes_files_of_the_container():
    script = 'import helper\nhelper.save("/data.txt")\nprint(open("/data.txt").read(), end="")'
    helper = "def save(path):\n    with open(path, 'w') as f:\n        f.write('one\\n')\n    with open(path, 'a') as f:\n        f.write('two\\n')\n"
    assert run(script, files={"/scripts/helper.py": helper}).stdout == "one\ntwo\n"


@pytest.mark.parametrize(
    ("argv", "stdin", "expected"),
    [
        (("python3", "-c", "import sys; print(sys.argv)", "x"), b"", "['-c', 'x']\n"),
        (("python3",), b"print('from input')\n", "from input\n"),
        (("python3", "-"), b"print(1)\n", "1\n"),
        (("python3", "-m", "json.tool"), b'{"a":1}', '{\n    "a": 1\n}\n'),
        (("python3", "-c", "print(input() + '!')"), b"hello\n", "hello!\n"),
        (("sh", "-c", "python3 - <<EOF\nprint(2)\nEOF"), b"", "2\n"),
    ],
)
def test_a_script_may_be_an_argument_or_the_input(argv, stdin, expected):
    assert run(argv=argv, stdin=stdin).stdout == expected


def test_a_missing_script_is_reported():
    result = run(argv=("python3", "/nope.py"))
    assert (result.code, result.stderr) == (
        2,
        "python3: can't open file '/nope.py': [Errno 2] No such file or directory\n",
    )


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("class A: pass\n''.join([A()])", "sequence item 0: expected str instance, A found"),
        ("''.join([len])", "sequence item 0: expected str instance, builtin_function_or_method found"),
        ("class A: pass\n'a'.replace(A(), 'b')", "replace() argument 1 must be str, not A"),
        ("import time\ntime.sleep('a' * 10 ** 8)", "'str' object cannot be interpreted as an integer"),
        ("[1]['a' * 10 ** 8]", "list indices must be integers or slices, not object"),
        ("open([0] * 10 ** 8)", "expected str, bytes or os.PathLike object, not list"),
    ],
)
def test_errors_name_the_types_of_python(script, message):
    assert run(script).stderr.splitlines()[-1] == f"TypeError: {message}"


def test_long_texts_are_joined():
    assert run("print(len(''.join(['x' * 500000, 'y', 'x' * 500000])))").stdout == "1000001\n"
