"""Process ids, signals and traps are those of dash and bash."""

import pytest

from judges.differential.shell.shells import run_simulated
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.only_program import only_program


@pytest.mark.parametrize(
    ("script", "output"),
    [
        pytest.param("kill -0 $$; echo $?", "0\n", id="the shell itself"),
        pytest.param("(kill -0 $$; echo $?) | cat", "0\n", id="from a pipeline"),
        pytest.param("kill -0 $$ & wait $!; echo $?", "0\n", id="from a job"),
        pytest.param("kill -0 0; echo $?", "0\n", id="its group"),
        pytest.param("kill -0 999 2>/dev/null; echo $?", "1\n", id="nobody"),
        pytest.param("a=$$; b=$(sh -c 'echo $PPID'); [ $a = $b ]; echo $?", "0\n", id="the parent"),
        pytest.param("sh -c 'kill -0 $PPID; echo $?'", "0\n", id="the parent by its id"),
        pytest.param("sleep 9 & sleep 9 & kill 0; echo no", "", id="a signal to the group"),
    ],
)
def test_signal_reaches_process(script, output):
    assert run_simulated(script).output == output


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_signal_that_was_ignored_at_start_cannot_be_trapped(shell):
    result = run_simulated("trap '' TERM; sh -c 'trap \"echo no\" TERM; kill $$; echo alive'", shell)
    assert (result.output, result.code) == ("alive\n", 0)


@pytest.mark.parametrize(("shell", "output"), [("sh", ""), ("bash", "bye 0\n")])
def test_trap_for_exit_runs_in_bash_alone_when_signal_ends_it(shell, output):
    result = run_simulated("trap 'echo bye $?' EXIT; kill -TERM $$; echo no", shell)
    assert (result.output, result.code) == (output, 143)


@pytest.mark.parametrize(
    ("shell", "message"),
    [
        ("sh", "Cannot fork\n"),
        ("bash", "fork: retry: Resource temporarily unavailable\n"),
    ],
)
@pytest.mark.parametrize("command", ["true | true", "true &", "sh -c true", "(true | true)"])
def test_command_for_which_there_are_too_many_processes_ends_the_shell(monkeypatch, shell, message, command):
    monkeypatch.setattr(limits, "MAX_PROCESSES", 6)
    result = run_simulated(
        f"for i in 1 2 3 4 5 6; do sleep 9 & done\n{command}\n[ $? = 0 ] && echo no", shell
    )
    assert result.output == ""
    assert result.errors.endswith(message)


def test_pipeline_that_starts_itself_ends_for_want_of_processes(monkeypatch):
    monkeypatch.setattr(limits, "MAX_PROCESSES", 20)
    monkeypatch.setattr(limits, "MAX_SUBSHELLS", 1000)
    assert "Cannot fork" in run_simulated("f() { f | f; }; f").errors


def test_folder_behind_a_link_is_listed_as_a_folder():
    script = "mkdir -p /tmp/d/x; ln -s x /tmp/d/l; ls -la /tmp/d/l/; ls -ld /tmp/d/l"
    *rows, link = run_simulated(script).output.splitlines()[1:]
    assert [(row[0], row.split()[-1]) for row in rows] == [("d", "."), ("d", "..")]
    assert link.startswith("l")


@pytest.mark.parametrize(
    ("columns", "output"),
    [
        ("pid,comm", "PID   COMMAND\n    1 sh\n    6 ps\n"),
        (
            "user,args",
            "USER     COMMAND\nroot     sh -c true; ps -o user,args sh\nroot     ps -o user,args\n",
        ),
        ("pid=,comm=", "    1 sh\n    6 ps\n"),
        ("pid=ID", "ID\n    1\n    6\n"),
    ],
)
def test_ps_prints_the_columns_that_are_asked_for(columns, output):
    assert run_simulated(f"true; ps -o {columns}").output == output


def test_ps_refuses_a_column_of_which_nothing_is_known():
    result = run_simulated("ps -o pid,vsz")
    assert (result.code, result.output) == (1, "")
    assert "column is not simulated: vsz" in result.errors


@pytest.mark.parametrize(
    ("script", "argv"),
    [
        ("nginx -g 'daemon off;'", ("nginx", "-g", "daemon off;")),
        ("exec  nginx -c /etc/a.conf  # comment\n", ("nginx", "-c", "/etc/a.conf")),
        ("/bin/server --port=80 > /dev/stdout", ("/bin/server", "--port=80")),
        ("A=1 nginx", ()),
        ("nginx $OPTIONS", ()),
        ("nginx *.conf", ()),
        ("nginx {a,b}", ()),
        ("nginx '*.conf'", ("nginx", "*.conf")),
        ("nginx; true", ()),
        ("nginx\ntrue", ()),
        ("nginx &", ()),
        ("nginx | cat", ()),
        ("cd /tmp", ()),
        ("exec", ()),
        ("if", ()),
        ("", ()),
        ("true a\n" * 100_000, ()),
    ],
)
def test_only_program_of_a_script_is_executed_by_its_shell(script, argv):
    assert only_program(script, is_bash=False) == argv
