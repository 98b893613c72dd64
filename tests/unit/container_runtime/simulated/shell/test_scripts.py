"""Output and exit codes of scripts and programs in simulated containers."""

import shlex

import pytest

from mockube.container_runtime.images.programs import programs_of_image
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import Host, Output, UnknownProgram
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry, FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support import shell_scripts
from tests.support.images import IMAGES
from tests.support.shell_scripts import NOW

FILES = {
    "/etc/config/colour": FileEntry(data=b"blue\n", read_only=True),
    "/etc/config/size": FileEntry(data=b"7", read_only=True),
    "/data": FileEntry(mode=0o755),
}


def container(**options):
    return Host(
        hostname="web-1",
        files=FileSystem(FILES),
        now=lambda: NOW,
        programs=PROGRAMS,
        address="10.1.2.3",
        **options,
    )


def run(*argv, host=None, **options):
    return shell_scripts.run(*argv, host=host or container(), **options)


def script(text, **options):
    return run("sh", "-c", text, **options)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("echo a  b", "a b\n"),
        ("echo 'a  b' \"c $NAME\" d\\ e", "a  b c kube d e\n"),
        ("echo -n a; echo -e 'b\\tc'", "ab\tc\n"),
        ("x=1; x=$((x + 2)); echo $x ${x} ${#NAME} ${y:-none} ${NAME%be} ${NAME#k}", "3 3 4 none ku ube\n"),
        ("for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done", "1\n3\n"),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done", "1\n2\n3\n"),
        ("until false; do echo once; break; done", "once\n"),
        ("if [ -f /etc/config/colour ]; then cat /etc/config/colour; else echo no; fi", "blue\n"),
        ("case $NAME in a|b) echo ab;; k*) echo k;; *) echo other;; esac", "k\n"),
        ('f() { echo "$1 of $#"; return 3; }; f x y; echo $?', "x of 2\n3\n"),
        ("echo $(echo inner; echo more) `hostname`", "inner more web-1\n"),
        ("seq 1 100 | tail -n 2 | wc -l", "2\n"),
        ("yes | head -n 2", "y\ny\n"),
        ("awk 'BEGIN {while (1) print 1}' | head -n 3 | grep -c 1", "3\n"),
        ("printf '%s=%03d\\n' a 1 b 22", "a=001\nb=022\n"),
        ("echo out > /data/f; echo more >> /data/f; cat < /data/f", "out\nmore\n"),
        ("echo hidden > /dev/null; echo seen 2>&1", "seen\n"),
        ("(cd /data; pwd); pwd", "/data\n/\n"),
        ("ls /etc/config; cd /etc/config; echo *", "colour\nsize\ncolour size\n"),
        ("mkdir -p /data/a/b; touch /data/a/c; ls /data/a; rm -r /data/a; ls /data", "b\nc\n"),
        ("date -u +%Y-%m-%dT%H:%M:%SZ", "2030-01-02T03:04:05Z\n"),
        ("sleep 2; date +%S", "07\n"),
        ("env | grep NAME; A=1 printenv A", "NAME=kube\n1\n"),
        (
            "echo b c a | tr ' ' '\\n' | sort | head -n1; echo abc | cut -c2; echo a:b | cut -d: -f2",
            "a\nb\nb\n",
        ),
        (
            "printf abc | base64; echo YWJj | base64 -d; hostname -i; basename /a/b.txt .txt",
            "YWJj\nabc10.1.2.3\nb\n",
        ),
        ("set -- a 'b c'; for x in \"$@\"; do echo $x; done", "a\nb c\n"),
        ("sh -c 'echo $0 $1' zero one; cat /data/../etc/config/size", "zero one\n7"),
        ("# a comment\necho a # another\n\necho b", "a\nb\n"),
        ("! false && echo yes; false || echo or; true && false; echo $?", "yes\nor\n1\n"),
        ("eval 'echo evaluated'; { echo in; echo braces; } | wc -l", "evaluated\n2\n"),
        ("timeout 1 sleep 5; echo $?", "124\n"),
        ("printf 'k1=v\\nbad\\nx\\n' | grep 'k\\|bad'", "k1=v\nbad\n"),
        ("printf 'aab\\na+b\\nb\\n' | grep 'a\\+b'; printf 'aab\\na?b\\n' | grep '^aa\\?b'", "aab\naab\n"),
        (
            "echo aab | sed 's/a\\+\\|x/Y/; s/c\\?b/Z/'; expr ab : 'x\\|a'; expr aab : 'c\\?a\\+'",
            "YZ\n1\n2\n",
        ),
        ("echo hello > /data/f; cksum /data/f; cksum < /data/f", "3015617425 6 /data/f\n3015617425 6\n"),
        ("seq 3 | grep -B 9999999999G 2; seq 3 | grep -A 9999999999G 2", "1\n2\n2\n3\n"),
        (f"cd /data; touch a10 a9 {'٣' * 200}; ls -v", f"a9\na10\n{'٣' * 200}\n"),
        (
            "x=/data/$(printf %0300d 1); test -e $x; echo $?; cat $x 2>&1 | tr -d 0; (: > $x) 2>&1 | tr -d 0; echo $x* | tr -d 0",
            "1\ncat: can't open '/data/1': File name too long\nsh: 1: cannot create /data/1: File name too long\n/data/1*\n",
        ),
        ("seq 3 > /data/f; tail -n 1 --pid 99 -f /data/f; tail -n 1 --pid=99 -f /data/f", "3\n3\n"),
        (
            "(seq 3 | sort <&-; echo b | grep b <&-; echo $?; echo b | wc -l <&-) 2> /dev/null; wc -l <&- 2>&1 | cat",
            "1\n0\n0\nwc: standard input: Bad file descriptor\n",
        ),
        ("x=$(echo a & wait; echo b); echo $x; x=$( (sleep 1; echo c) & echo d); echo $x", "a b\nd c\n"),
        ("x=$(sleep 9 > /dev/null & echo a); echo $x", "a\n"),
        ("cksum < /dev/null; seq 1 20000 | cksum", "4294967295 0\n3231941463 108894\n"),
    ],
)
def test_script_output(text, output):
    written, errors, code, _ = script(text)
    assert (written, errors, code) == (output, "", 0)


@pytest.mark.parametrize(
    ("text", "output", "errors"),
    [
        ("declare -A a; a=(x 1 y '2 3' z); echo ${a[x]}, ${a[y]}, ${#a[@]}", "1, 2 3, 3\n", ""),
        ("declare -A a=(x 1); a+=(y 2); echo ${a[x]} ${a[y]}", "1 2\n", ""),
        (
            "declare -A a; a=([x]=1 y); echo ${!a[@]}",
            "x\n",
            "bash: line 1: a: y: must use subscript when assigning associative array\n",
        ),
    ],
)
def test_associative_array_has_keys_and_values_in_turn(text, output, errors):
    written, reported, code, _ = run("bash", "-c", text)
    assert (written, reported, code) == (output, errors, 0)


@pytest.mark.parametrize(
    ("text", "errors", "code"),
    [
        ("exit 3", "", 3),
        ("make all", "sh: 1: make: not found\n", 127),
        ("cat <&-", "cat: read error: Bad file descriptor\n", 1),
        ("md5sum <&-", "md5sum: standard input: Bad file descriptor\n", 1),
        ("cat /none", "cat: can't open '/none': No such file or directory\n", 1),
        (
            "echo x > /etc/config/colour",
            "sh: 1: cannot create /etc/config/colour: Read-only file system\n",
            2,
        ),
        ("rm /etc/config/colour", "rm: can't remove '/etc/config/colour': Read-only file system\n", 1),
        ("set -e; false; echo never", "", 1),
        ("echo 'open", "sh: 1: Syntax error: Unterminated quoted string\n", 2),
        ("echo $((1/0))", 'sh: 1: arithmetic expression: division by zero: "1/0"\n', 2),
        ("echo a\n\nif x; fi", 'sh: 3: Syntax error: "fi" unexpected (expecting "then")\n', 2),
        ("cd /none", "sh: 1: cd: can't cd to /none\n", 2),
        ("[ a -eq b ]", "sh: 1: [: Illegal number: a\n", 2),
        ("test -d /etc/config/size", "", 1),
        ("echo to errors >&2; false", "to errors\n", 1),
    ],
)
def test_script_failure(text, errors, code):
    written, found, ended, _ = script(text)
    assert (written, found, ended) == ("a\n" if text.startswith("echo a") else "", errors, code)


def test_bash_reports_an_index_before_the_first_element():
    problem = "bash: line 1: arr: bad array subscript\n"
    assert run("bash", "-c", "arr=(a); echo [${arr[-1]}${arr[-2]}]")[:3] == ("[a]\n", problem, 0)
    assert run("bash", "-c", "set -e; echo ${arr[-1]}; echo never")[:3] == ("", problem, 1)


def test_shell_reads_commands_from_stdin():
    written, errors, code, _ = run(
        "sh", sent=b"x=4\nif true; then\necho $x\nfi\nread y\nhello\necho $y\nexit 2\n"
    )
    assert (written, errors, code) == ("4\nhello\n", "", 2)


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("! ( = = a )", 0),
        ("( = )", 1),
        ("( ! = a )", 2),
        ("! = !", 0),
        ("! ( a )", 1),
        ("! = = x -a y", 0),
        ("a -a !", 0),
        ("! -nt -a ! !", 1),
        ("-f = -f -a a", 0),
        ("( ( = ( ) -a b", 2),
        ("-o -o -o", 0),
        ("! ( a", 2),
        ("-o a", 2),
        ("a b", 2),
    ],
)
def test_condition_is_read_by_the_number_of_its_arguments(condition, code):
    assert run("test", *condition.split(" "))[2] == code


def test_reader_of_endless_lines_ends_them():
    assert script("yes | head -c 3000000 | wc -c; yes no | head -n 300 | tail -n 1")[:3] == (
        *("3000000\nno\n", ""),
        0,
    )


def test_lines_without_reader_are_endless():
    for text in ("yes", "yes > /dev/null"):
        with pytest.raises(AssertionError):
            script(text, maximum=200)


def test_busy_loop_takes_simulated_time():
    assert script("i=0; while [ $i -lt 5 ]; do i=$((i+1)); done")[3] == pytest.approx(0.005)


def test_tar_archives_carry_files_between_containers():
    source, target = container(), container()
    script("mkdir -p /data/d; echo one > /data/d/f; chmod 600 /data/d/f", host=source)
    running = run_command(source, ["tar", "cf", "-", "-C", "/data", "d"], {})
    archive = b"".join(effect.data for effect in running if isinstance(effect, Output))
    assert run("tar", "-xmf", "-", "-C", "/tmp", sent=archive, host=target)[2] == 1
    assert run("tar", "-xmf", "-", "-C", "/data", sent=archive, host=target)[1:3] == ("", 0)
    assert target.files.read("/data/d/f") == b"one\n"
    assert target.files.entry("/data/d/f").mode == 0o600
    assert run("tar", "tf", "-", sent=archive)[0] == "d/\nd/f\n"
    assert run("tar", "xf", "-", sent=b"nonsense" * 100)[1:3] == ("tar: invalid tar magic\n", 1)


def test_files_are_limited_in_size():
    files = container().files
    files.write("/data/a", b"x" * (limits.MAX_FILE_BYTES - 100))
    with pytest.raises(FileError, match="No space left on device"):
        files.write("/data/b", b"x" * 200)
    files.remove("/data/a")
    files.write("/data/b", b"x" * 200)


@pytest.mark.thorough
def test_files_may_be_many():
    files = container().files
    for number in range(20_000):
        files.write(f"/data/{number}", b"")
    assert len(list(files.children("/data"))) == 20_000


def test_unsimulated_program_is_named():
    with pytest.raises(UnknownProgram, match="mysqld"):
        run("mysqld", "--console")
    with pytest.raises(UnknownProgram, match="make"):
        script("make", host=container(is_strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "a=x; for i in $(seq 40); do a=$a$a; done",
        "f() { f; }; f",
        "echo $(yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)",
        "((((((((((" * 9,
        "${",
        "$((((1",
    ],
)
def test_unbounded_growth_is_refused(text):
    _, errors, code, _ = script(text)
    assert errors
    assert code != 0


def test_mount_lists_file_systems():
    output, _, code, _ = run("mount", "-t", "cgroup2")
    assert (output, code) == ("cgroup on /sys/fs/cgroup type cgroup2 (ro,nosuid,nodev,noexec,relatime)\n", 0)
    assert len(run("mount")[0].splitlines()) == 4
    with pytest.raises(UnknownProgram, match="mount /dev/sda /mnt"):
        run("mount", "/dev/sda", "/mnt")


def test_sysctl_prints_the_parameters_of_the_pod():
    host = container()
    host.files.inodes.put("/proc/sys/kernel/shm_rmid_forced", FileEntry(data=b"1\n", read_only=True))
    result = run("sysctl", "kernel.shm_rmid_forced", "kernel.other", host=host)
    assert result[:3] == (
        "kernel.shm_rmid_forced = 1\n",
        "sysctl: error: 'kernel.other' is an unknown key\n",
        1,
    )
    with pytest.raises(UnknownProgram):
        run("sysctl", "-w", "kernel.shm_rmid_forced=0")


@pytest.mark.parametrize(
    ("path", "code"),
    [("/etc/config/none", 1), ("/etc/config/size", 0), ("/etc/other", 0), ("/tmp/none", 1), ("/removed", 1)],
)
def test_files_of_image_may_exist_outside_of_volumes(path, code):
    files = {**FILES, "/etc/config": FileEntry(read_only=True)}
    host = Host(
        hostname="web-1", files=FileSystem(files, is_partial=True), now=lambda: NOW, programs=PROGRAMS
    )
    assert script(f"rm -f /removed; [ -f {path} ]", host=host)[2] == code


@pytest.mark.parametrize(
    ("groups", "output"),
    [((2000,), "yes\n0 2000\nroot 2000\n"), ((), "no\n0\nroot\n")],
)
def test_supplementary_groups_may_read_files_of_group(groups, output):
    files = {"/etc/config/key": FileEntry(data=b"1", mode=0o440, group=2000)}
    host = Host(
        hostname="web-1",
        files=FileSystem(files),
        now=lambda: NOW,
        programs=PROGRAMS,
        user=7,
        other_groups=groups,
    )
    text = "[ -r /etc/config/key ] && echo yes || echo no; id -G; groups"
    assert script(text, host=host)[0] == output


def test_cp_and_mv_say_which_file_they_make():
    text = "mkdir -p /data/d; echo x > /data/a; cp -v /data/a /data/d/; mv -v /data/a /data/b"
    assert script(text)[0] == "'/data/a' -> '/data/d/a'\n'/data/a' -> '/data/b'\n"


@pytest.mark.parametrize(
    ("image", "command", "output", "errors"),
    [
        ("busybox", "tail -n+1 -F /data/x", "a\n", ["can't open '/data/x': No such file or directory", "/data/x has appeared; following end of new file"]),
        ("debian", "tail -n+1 -F /data/x", "a\n", ["cannot open '/data/x' for reading: No such file or directory", "'/data/x' has appeared;  following new file"]),
        ("busybox", "tail -f /data/x", "", ["can't open '/data/x': No such file or directory", "no files"]),
        ("debian", "tail -f /data/x", "", ["cannot open '/data/x' for reading: No such file or directory", "no files remaining"]),
    ],
)  # fmt: skip
def test_tail_waits_for_a_file_that_it_follows_by_name(image, command, output, errors):
    host = container(installed=programs_of_image(IMAGES, image))
    written, messages, *_ = script(f"{command} & sleep 2; echo a > /data/x; sleep 2; kill $! 2>&-", host=host)
    assert (written, messages.splitlines()[: len(errors)]) == (output, [f"tail: {line}" for line in errors])


@pytest.mark.parametrize(
    ("hosts", "command", "output"),
    [
        ("10.1.2.3\tweb-1.s.n.svc.cluster.local\tweb-1\n", "hostname -f", "web-1.s.n.svc.cluster.local\n"),
        ("10.1.2.3\tweb-1.s.n.svc.cluster.local\tweb-1\n", "hostname -d", "s.n.svc.cluster.local\n"),
        ("10.1.2.3\tweb-1.s.n.svc.cluster.local\tweb-1\n", "dnsdomainname", "s.n.svc.cluster.local\n"),
        ("10.1.2.3\tweb-1.s.n.svc.cluster.local\tweb-1\n", "hostname; hostname -s", "web-1\nweb-1\n"),
        ("10.1.2.3\tweb-1\n", "hostname -f; hostname -d; dnsdomainname; hostname -s", "web-1\nweb-1\n"),
    ],
)
def test_hostname_has_the_domain_of_the_hosts_file(hosts, command, output):
    host = container()
    host.files.inodes.put("/etc/hosts", FileEntry(data=hosts.encode()))
    assert script(command, host=host)[0] == output


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("x=$(head -c 3000000 /dev/zero | tr '\\0' a); y=$x$x; echo ${#x} ${#y}", "3000000 6000000\n"),
        ("head -c 100000000 /dev/zero | wc -c", "100000000\n"),
        ("seq 1 300000 | sort -rn | head -n 1", "300000\n"),
        ("seq 1 30000 | tr '\\n' ' ' | wc", "        0     30000    168894\n"),
        ("for i in $(seq 1 600); do sleep 1 & done; wait; echo done", "done\n"),
    ],
)
def test_much_work_is_done(text, output):
    assert script(text, maximum=2_000_000)[:3] == (output, "", 0)


LINKED = "mkdir -p /t/d; echo two > /t/d/f; cd /t; ln -s d/f lf; ln -s d ld; ln -s .. d/up; "


@pytest.mark.parametrize(
    ("image", "command", "output"),
    [
        ("busybox:1.36", "grep -r two .", "./d/f:two\n./lf:two\n"),
        ("debian:12", "grep -r two .", "./d/f:two\n"),
        ("debian:12", "grep -R two . | sort", "./d/f:two\n./ld/f:two\n./lf:two\n"),
        ("debian:12", "grep -r two ld lf", "ld/f:two\nlf:two\n"),
    ],
)
def test_recursive_grep_follows_links_as_its_project_does(image, command, output):
    """The files of a ConfigMap are links, through one that leads to their folder."""
    host = container(installed=programs_of_image(IMAGES, image))
    assert script(LINKED + command, host=host)[:2] == (output, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("if true", 'unexpected end of file (expecting "then")'),
        ("for i in a; echo", 'unexpected word (expecting "do")'),
        ("for i in a; { :; }", 'unexpected "{" (expecting "do")'),
        ("echo a\nif", 'unexpected end of file (expecting "then")'),
        (")", 'unexpected ")"'),
        ("echo a;; b", 'unexpected ";;"'),
        ("cat <<", "unexpected end of file"),
        ("echo $(if)", 'unexpected ")"'),
        ("echo 'abc", "unterminated quoted string"),
        ("echo ${x", "missing '}'"),
        ("echo $((1+", "missing '))'"),
        ("echo `echo", "EOF in backquote substitution"),
        ("for 1 in a; do :; done", "bad for loop variable"),
        ("echo ${x!}; echo no", "bad substitution"),
    ],
)
def test_shell_of_busybox_words_syntax_errors_in_its_way(text, message):
    host = container(installed=programs_of_image(IMAGES, "busybox"))
    errors, code = script(text, host=host)[1:3]
    assert (errors, code) == (f"sh: syntax error: {message}\n", 2)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("eval if", "sh: eval: line 0"),
        ("echo if > /data/a; sh /data/a", "/data/a: line 2"),
    ],
)
def test_shell_of_busybox_says_where_a_syntax_error_is(text, place):
    host = container(installed=programs_of_image(IMAGES, "busybox"))
    errors = script(text, host=host)[1]
    assert errors == f'{place}: syntax error: unexpected end of file (expecting "then")\n'


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("x=abc; echo ${x/b/[&]}", "a[b]c"),
        ("x=abc; echo ${x/b/[\\&]}", "a[&]c"),
        ('x=abc; echo "${x/b/[&]}"', "a[b]c"),
        ('x=abc; echo "${x/b/[\\&]}"', "a[&]c"),
        ("x=abc; echo ${x/b/'&'}", "a&c"),
        ('x=abc; r="[&]"; echo ${x/b/$r}', "a[b]c"),
        ('x=abc; r="[&]"; echo ${x/b/"$r"}', "a[&]c"),
        ("x=abc; r='[\\&]'; echo ${x/b/$r}", "a[&]c"),
        ("x=abab; echo ${x//b/<&&>}", "a<bb>a<bb>"),
        ("x=abc; echo ${x/#a/&&} ${x/%c/&&}", "aabc abcc"),
        ("x=abc; r='a\\b&'; echo ${x/b/$r}", "aa\\bbc"),
        ("x=abc; r='a\\\\b'; echo ${x/b/$r}", "aa\\bc"),
        ("x=abc; echo ${x/b?/-&-}", "a-bc-"),
        ("set -- ab cb; echo ${@/b/&&}", "abb cbb"),
        ("x=abc; shopt -u patsub_replacement; echo ${x/b/[&]}", "a[&]c"),
        ("shopt patsub_replacement sourcepath", "patsub_replacement\ton\nsourcepath\ton"),
    ],
)
def test_ampersand_in_replacement_of_bash_is_the_match(text, output):
    assert script(f"bash -c {shlex.quote(text)}")[0] == f"{output}\n"
