"""Random programs of simulated containers that cost much: pipes, expansions, loops and literals, of the shell and of Python; and how long they stall the loop."""

import asyncio
import gc
from datetime import UTC, datetime
from math import inf
from time import process_time

from mockube.apimachinery.randomness import SeededRandom
from mockube.component_base.interpreter_memory import THRESHOLD
from mockube.container_runtime.simulated.client_pace import ClientPace
from mockube.container_runtime.simulated.execution import run_to_end
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.memory import Memory, OutOfMemory
from mockube.container_runtime.simulated.shell.process import Host, UnknownProgram
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.syntax import ShellSyntaxError
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.event_loop import yield_to_loop
from tests.support.hostile.loop_time import measuring_callbacks
from tests.support.instant_clock import InstantClock

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
MEMORY = 1 << 30

SOURCES = (
    "yes", "yes ab,cd", "cat /dev/zero", "head -c {n} /dev/zero", "head -c {n} /dev/urandom", "cat /dev/urandom", "seq 1 {n}", "seq -w 1 {n}",
    "seq 0 0.001 {n}", "printf '%{n}d' 1", "printf '%s\\n' $(seq 1 {n})", "printf '%099999d%099999d' $(seq 1 {n})", "echo {{1..{n}}}", "echo {{a,b}}{{c,d}}{{e,f}}{{1..{n}}}",
    "cat /files/lines", "cat /files/line", "cat /files/random", "cat /files/lines /files/line /files/lines", "find /", "ls -lR /", "env", "dd if=/dev/zero bs=1M count={n}",
    "dd if=/dev/urandom bs={n} count=3", "awk 'BEGIN {{ for (i = 0; i < {n}; i++) print i, i * i }}'", "awk 'BEGIN {{ while (1) printf \"%0{n}d\", 1 }}'",
    "python3 -c 'for i in range({n}): print(i)'", "yes '{text}' | head -{n}", "yes {text} | head -{n} | tr -d '\\n'", "tar cf - /files", 'echo "$(seq 1 {n})"',
)  # fmt: skip
FILTERS = (
    "cat", "cat -n", "head -{n}", "head -c {n}", "head -n -3", "tail -{n}", "tail -c {n}", "tail -n +3", "wc", "wc -L", "wc -w", "sort", "sort -n", "sort -rn", "sort -u", "sort -V",
    "sort -t, -k2,2n", "sort -k1.2", "uniq", "uniq -c", "uniq -d", "cut -c1-3", "cut -d, -f2-", "tr a-z A-Z", "tr -d '\\n'", "tr '\\0' '\\n'", "tr '\\0' a", "tr -cs a-z '\\n'", "tr -s '\\n '",
    "sed 's/a/bb/g'", "sed -n '$p'", "sed ':a;N;$!ba;s/\\n/,/g'", "sed y/abc/xyz/", "sed 's/\\(a*\\)*b/x/'", "sed G", "sed -n 'H;${{x;p}}'", "sed 's/./&&/g'", "grep -c a", "grep -E '(a*)*b'",
    "grep -o .", "grep -v x", "grep -n '' ", "grep -iw ab", "grep -E '(a|aa)+$'", "grep -A3 -B3 1", "awk '{{ print $1 }}'", "awk '{{ gsub(/a/, \"bb\"); print }}'", "awk '{{ gsub(/[a-z]/, \"<&>\") }} 1'",
    "awk '{{ n[$1]++ }} END {{ for (k in n) print k, n[k] }}'", "awk '{{ s = s $0 }} END {{ print length(s) }}'", "awk -F, '{{ $3 = \"x\" }} 1'", "awk '{{ print toupper($0), substr($0, 2), index($0, \"b\") }}'",
    "awk '{{ n = split($0, a, \"\") }} END {{ print n }}'", "awk 'function f(n) {{ return n < 2 ? n : f(n - 1) + f(n - 2) }} {{ print f(30) }}'", "awk 'BEGIN {{ RS = \"\" }} {{ print NF }}'", "base64", "base64 -w0", "base64 -d",
    "md5sum", "sha512sum", "cksum", "gzip", "gzip | gunzip", "od", "od -c", "xxd", "xxd -p", "hexdump -C", "tac", "rev", "nl", "fold -w 1", "fold -sw {n}", "paste -sd,", "paste - - -", "paste - /files/lines",
    "expand -t {n}", "split -l 10 - /dev/shm/p", "split -b 100 - /dev/shm/q", "tee /dev/shm/t", "xargs echo", "xargs -n1 echo", "xargs -I{{}} echo {{}} {{}}", "xargs -0 echo", "xargs -d, echo", "xargs -P4 -n1 sh -c 'echo $0'",
    "while read x; do echo $x; done", "while read -r a b; do :; done", "while read x; do y=$y$x; done", "dd bs=1", "dd bs={n} count=3", "comm - /files/lines", "diff - /files/lines", "cmp -l - /files/lines", "cmp - /files/line",
    "timeout 5 cat", "sh", "python3 -c 'import sys\nfor l in sys.stdin: print(l.split())'", "python3 -c 'import sys\nprint(len(sys.stdin.read()))'", "factor", "tar xf - -C /dev/shm", "tar tf -", "cat > /dev/shm/{n}", "cat >> /dev/shm/log",
)  # fmt: skip
USES = (
    "${{x//a/bb}}", "${{x//[ab]/c}}", "${{x//?/cd}}", "${{x//a*b/c}}", "${{x%%*b}}", "${{x%b*}}", "${{x##*a}}", "${{x#*1*2*3}}", "${{x/#*a/b}}", "${{x/%a*/b}}", "${{x:100:5}}", "${{x: -5}}", "${{#x}}", "${{x^^}}", "${{x,,[a-m]}}",
    "${{x@Q}}", "${{x:-$x$x}}", '"$x"', "$x", "$x$x$x", '$(echo "$x")', '$(cat <<< "$x")', "{{$x,$x}}", "${{x//1/$x}}", "$((${{#x}} * {n}))", "*$x*", "[$x]", "~$x",
)  # fmt: skip
STATEMENTS = (
    "echo {use} | wc", "y={use}; x=$y", "set -- {use}; echo $# $*", "set -- {use}; while [ $# -gt 0 ]; do shift; done", "for i in {use}; do :; done", 'for i in {use}; do z="$z $i"; done', "case {use} in *a*b*c) echo y;; esac",
    "case $x in {use}) ;; esac", "[[ $x =~ (a*)*b ]]", "[[ $x =~ ^(a|b)*$ ]]", "[[ $x == *a*b*c* ]]", "[ {use} = a ]", "a=({use}); echo ${{#a[@]}}", "a+=({use})", 'a=($x); b=("${{a[@]/1/2}}"); echo "${{b[*]}}" | wc -c', "a=($x); unset 'a[3]'; echo ${{!a[@]}} | wc",
    'read -ra y <<< "$x"; echo ${{#y[@]}}', "IFS=,; echo {use} | wc", 'mapfile -t m <<< "$x"; echo ${{#m[@]}}', "printf -v y '%s,' {use}; echo ${{#y}}", "printf '%s' {use} | wc", "cat <<X | wc\n{use}\nX", "declare -A h; for i in {use}; do h[$i]=$i; done",
    "expr \"$x\" : '.*a'", "echo $((x + {n}))", "(( y = {n} ** {n} )); echo $y", "echo {use} > /dev/shm/f; cat /dev/shm/f /dev/shm/f > /dev/shm/g; cp /dev/shm/g /dev/shm/h", "echo {use} | {filter} | wc", "eval \"y='{text}'; {statement}\"", "f() {{ local v=$1; {statement}; }}; f 1; f 2",
    "while :; do {statement}; done", "until false; do {statement}; done", "for ((i = 0; i < {n}; i++)); do {statement}; done", "for i in $(seq 1 {n}); do {statement}; done", "( {statement} ) | {filter}", "{statement} & {statement} & wait", "y=$( {statement} )", "f() {{ f | f & }}; f",
    "f() {{ f $1$1; }}; f ab", "f() {{ f | f; }}; f", "while :; do sleep 100 & done", "while :; do sleep 100 | cat & done", "for i in $(seq 1 {n}); do echo $i > /dev/shm/$i; done; cat /dev/shm/* | wc; rm -r /dev/shm/*", "mkdir -p /dev/shm/$(echo $x | cut -c1-500 | tr 0-9 /); find / -name '*a*'", "trap '{statement}' EXIT",
    "a=b+b+b+b b=c+c+c+c+c c=d+d+d+d+d d=e+e+e+e e=f+f+f+f f=g+g+g+g+g; echo $((a))", "eval \"$(yes ':;' | head -{n})\"", "eval \"$(yes '(' | head -{n} | tr -d '\\n')\"", "eval \"echo $(yes '{{' | head -{n} | tr -d '\\n')\"", "exec 3< /files/line; while read -n 1 y <&3; do :; done",
    "export $(seq 1 {n} | sed 's/.*/v&=&/'); env | wc", "test {use} -a {use}", "getopts a:b: o {use}", "sort /files/lines /files/lines | uniq -c | sort -n | tail -3", "sleep {n}; {statement}", "grep -E \"$(yes '(a|b)' | head -{n} | tr -d '\\n')\" /files/lines", "grep -f /files/lines /files/lines",
    "echo /*/*/* | wc; echo {use}* | wc", "kill -USR1 $$ & {statement}", "time {statement}", "set -x; {statement}", "diff /files/lines /files/random | wc", "cmp /files/line /files/random", "tar czf /dev/shm/t.gz /files; tar xzf /dev/shm/t.gz -C /dev/shm", "date -d @{n}; seq {n} | shuf | head",
)  # fmt: skip
VALUES = (
    "10 ** {n}", "1 << {n}", "'a' * {n}", "'ab,' * {n}", "b'ab' * {n}", "[1] * {n}", "[[1, 2]] * {n}", "list(range({n}))", "[str(i) for i in range({n})]", "{{i: str(i) for i in range({n})}}", "set(range({n}))", "tuple(range({n}))", "range({n})", "3 ** {n}", "bytearray({n})",
    "'-' * {n} + '1'", "[i * i for i in range({n}) if i % 3]", "''.join(chr(i % 5000) for i in range({n}))", "(i for i in range({n}))", "dict.fromkeys(range({n}), [])", "'%0{n}d' % 7", "f'{{7:{n}}}'", "[] if {n} else 0", "frozenset('abc')", "float({n})", "'\\u00e9' * {n}",
    "-" * 3_000 + "1", "(" * 60 + "1" + ")" * 60, "1 + " * 2_000 + "1", "[" * 80 + "]" * 80,
)  # fmt: skip
OPERATIONS = (
    "str(v)", "repr(v)[:9]", "len(str(v))", "v == v", "v + v", "v * 3", "v * v", "v in [v]", "sorted(v)", "sorted(v, key=str, reverse=True)", "max(v)", "sum(v)", "list(v)", "set(v)", "tuple(v)", "len(v)", "hash(v)", "v[::-1]", "v[1:-1]", "str(v).split(',')", "str(v).replace('a', 'bb')",
    "str(v).find('b' * 50)", "str(v).upper()", "str(v).count('1')", "''.join(v)", "','.join(map(str, v))", "v // 7", "v % 10 ** 50", "pow(3, v, 10 ** 30)", "list(zip(v, v))", "list(map(str, v))", "list(filter(None, v))", "dict(enumerate(v))", "{{**dict(enumerate(v)), 1: 2}}", "v | v", "v & v", "v ^ v",
    "json.dumps(v)", "json.loads(json.dumps(v))", "hashlib.sha512(str(v).encode()).hexdigest()", "base64.b64encode(str(v).encode())", "[x for x in v for y in v]", "list(reversed(v))", "v.append(v)", "v.extend(v)", "v.insert(0, 1)", "v.sort()", "v.index(3)", "'%s' % v", "f'{{v!r:>{n}}}'", "str(v).zfill({n})", "copy.deepcopy(v)",
    "str(v).encode().hex()", "int(str(v))", "str(v).translate({{97: 'bbb'}})", "str(v).splitlines()", "str(v).strip('a1')", "list(itertools.product(v, v))", "list(itertools.chain(v, v))", "collections.Counter(v).most_common(3)", "random.sample(v, 100)", "random.shuffle(v)", "math.factorial(v)", "math.gcd(v, 3 ** 500)", "functools.reduce(lambda a, b: a + b, v)",
)  # fmt: skip
BLOCKS = (
    "v = {value}\nprint({operation})", "v = {value}\nwhile True:\n    w = {operation}", "v = {value}\nfor i in range({n}):\n    v = {operation}", "v = {value}\nx = []\nwhile True: x.append({operation})", "def f(v): return [f(v), {operation}]\nf({value})", "v = {value}\nd = {{}}\nfor i in range({n}): d[i] = {operation}",
    "v = {value}\ntry:\n    {operation}\nexcept Exception as e: print(e)", "def g():\n    v = {value}\n    while True: yield {operation}\nfor x in g(): print(x)", "class A:\n    v = {value}\n    def __eq__(self, o): return [A() for _ in range({n})] == o\nprint(A() == 1)", "v = {value}\nprint(v, v, v)", "v = {value}\nw = {operation}\nprint({operation} == w)",
)  # fmt: skip
IMPORTS = "import json, hashlib, base64, copy, itertools, collections, random, math, functools\n"
NUMBERS = (1, 3, 20, 300, 5_000, 70_000, 900_000, 4_000_000, 30_000_000, 10**9)
TEXTS = ("a", "aa", "ab", "a,b", "1", "x y z", "aaaaaaaaaaaaaaaaaaaab", "é", "a=b", "-")


class _Choices:
    def __init__(self, seed):
        self._random = SeededRandom(seed)

    def below(self, end):
        return int.from_bytes(self._random.bytes(4), "big") % end

    def choice(self, options):
        return options[self.below(len(options))]


def costly_program(seed):
    """Return the command line of a program."""
    choices = _Choices(seed)
    if choices.below(10) < 3:
        return ["python3", "-c", IMPORTS + _filled(choices, choices.choice(BLOCKS))]
    name = choices.choice(("sh", "bash", "bash"))
    if choices.below(10) < 4:
        return [name, "-c", _pipeline(choices)]
    statements = [_filled(choices, choices.choice(STATEMENTS)) for _ in range(1 + choices.below(3))]
    return [name, "-c", f"x=$({_pipeline(choices)})\n" + "\n".join(statements)]


def _pipeline(choices):
    filters = [_filled(choices, choices.choice(FILTERS)) for _ in range(choices.below(5))]
    return " | ".join([_filled(choices, choices.choice(SOURCES)), *filters])


def _filled(choices, template, depth=0):
    def statement():
        return _filled(choices, choices.choice(STATEMENTS), depth + 1) if depth < 3 else ":"

    return template.format(
        n=choices.choice(NUMBERS),
        text=choices.choice(TEXTS),
        use=choices.choice(USES).format(n=choices.choice(NUMBERS)) if "{use}" in template else "",
        filter=_filled(choices, choices.choice(FILTERS)) if "{filter}" in template else "",
        statement=statement() if "{statement}" in template else "",
        value=choices.choice(VALUES).format(n=choices.choice(NUMBERS)) if "{value}" in template else "",
        operation=choices.choice(OPERATIONS).format(n=choices.choice(NUMBERS))
        if "{operation}" in template
        else "",
    )


class _Output:
    stdin = None

    async def write(self, stream, data):
        pass


class _Clock(InstantClock):
    async def sleep(self, seconds):
        if seconds == inf:
            await asyncio.get_running_loop().create_future()
        await super().sleep(seconds)


FILES = {
    "/files/lines": "".join(f"{number},a{number % 7},b\n" for number in range(20_000)).encode(),
    "/files/line": b"ab1 " * 250_000,
    "/files/random": bytes((number * 7919 + number // 256) % 256 for number in range(300_000)),
}


def longest_stall(argv, turns, files=None):
    """Return the seconds of CPU time for which a program uses the loop at most in one of its turns, of which it gets so many."""
    gc.disable()
    try:
        return run_for(argv, turns, files)[1]
    finally:
        gc.enable()


def run_for(argv, turns, files=None):
    """Run a program for so many turns of a loop, with more files; return its end, and the longest CPU time in one of them."""
    entries = {path: FileEntry(data=data) for path, data in FILES.items()}
    host = Host(
        hostname="pod",
        files=FileSystem({**entries, "/dev/shm/keep": FileEntry(data=b""), **(files or {})}),
        now=lambda: NOW,
        programs=PROGRAMS,
        image="python:3.11.7",
        memory=Memory(lambda: MEMORY),
    )
    pace = ClientPace(_Clock())

    async def run():
        with measuring_callbacks() as slices:
            execution = run_command(host, argv, {"PATH": "/usr/bin"})
            running = asyncio.create_task(run_to_end(execution, _Output(), pace, None))
            for _ in range(turns):
                await yield_to_loop()
                if running.done():
                    break
            running.cancel()
            ended = (await asyncio.gather(running, return_exceptions=True))[0]
        expected = (
            int,
            OutOfMemory,
            UnknownProgram,
            ShellSyntaxError,
            RecursionError,
            asyncio.CancelledError,
        )
        assert isinstance(ended, expected), (argv, ended)
        return ended, slices.max_seconds

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(run())


def longest_collection(argv, turns):
    """Return the longest CPU time of a collection of garbage in the manager while a program runs for so many turns."""
    began, longest, before = 0.0, 0.0, gc.get_threshold()

    def measure(phase, _):
        nonlocal began, longest
        if phase == "start":
            began = process_time()
        else:
            longest = max(longest, process_time() - began)

    gc.freeze()
    gc.set_threshold(*THRESHOLD)
    gc.callbacks.append(measure)
    try:
        run_for(argv, turns)
    finally:
        gc.callbacks.remove(measure)
        gc.set_threshold(*before)
    return longest
