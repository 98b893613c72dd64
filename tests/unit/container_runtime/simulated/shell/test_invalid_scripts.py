"""Scripts that are no scripts, or use what is not simulated, end with a message and an exit code other than 0."""

import pytest

from judges.differential.shell.shells import run_simulated


@pytest.mark.parametrize(
    ("script", "message", "code"),
    [
        ("if true; then :", 'sh: 1: Syntax error: end of file unexpected (expecting "fi")', 2),
        ("echo a; ;", 'sh: 1: Syntax error: ";" unexpected', 2),
        ("x=$((1 +))", 'sh: 1: arithmetic expression: expecting primary: "1 +"', 2),
        ("echo ${x!y}", "sh: 1: Bad substitution", 2),
        ("for i in a; { :; }", 'sh: 1: Syntax error: "{" unexpected (expecting "do")', 2),
        ("for i in a; if :", 'sh: 1: Syntax error: "if" unexpected (expecting "do")', 2),
        ("! ! true", 'sh: 1: Syntax error: "!" unexpected', 2),
        ("select x in a; do :; done", "sh: 1: select is not simulated", 2),
        ("coproc cat", "sh: 1: coproc is not simulated", 2),
        ("alias ll=ls", "sh: 1: alias: aliases are not simulated", 1),
        ("ln a.txt b", "ln: hard links are not simulated", 1),
        ("awk 'BEGIN{system(\"x\")}'", "awk: system() is not simulated", 2),
        ("sed 's/\\(a\\)\\1/b/' a.txt", "sed: backreferences are not simulated", 1),
        ("sort --nosuch", "sort: unrecognized option: nosuch", 2),
        ("tar x --nosuch", "tar: unrecognized option: nosuch", 1),
        ("f() { f; }; f", "sh: 1: f: functions are nested too deeply", 2),
        ("set -Z", "sh: 1: set: Illegal option -Z", 2),
        ("ln -s a '/no/{x}/b'", "ln: /no/{x}/b: No such file or directory", 1),
        ("dd if=a.txt bs=9999999999G conv=sync", "dd: more than 16 MiB are not simulated", 1),
        ("nosuch", "sh: 1: nosuch: not found", 127),
        ("./a.txt", "sh: 1: ./a.txt: Permission denied", 126),
    ],
)
def test_script_ends_with_message(script, message, code):
    result = run_simulated(script)
    assert (result.errors.splitlines()[:1], result.code) == ([message], code)


@pytest.mark.parametrize("script", ['set ""; echo $#', 'x=; set "$x" a; echo $#'])
def test_empty_argument_of_set_is_a_parameter(script):
    assert run_simulated(script).output in ("1\n", "2\n")


def test_indirect_expansion_of_unset_variable_is_an_error():
    result = run_simulated('echo "${!missing}"; echo no\necho next', "bash")
    assert (result.output, result.code) == ("next\n", 0)


@pytest.mark.parametrize("seconds", ["999999999999999999", "9223372036854775807"])
def test_time_out_of_range_is_an_error(seconds):
    result = run_simulated(f"printf '%(%Y)T' {seconds}", "bash")
    assert (result.errors, result.code) == (f"sh: line 1: printf: {seconds}: time out of range\n", 1)


@pytest.mark.parametrize("command", ["((1/0))", "let 1/0", "[[ 1/0 -eq 0 ]]"])
def test_invalid_expression_does_not_end_bash_with_nounset(command):
    result = run_simulated(f"set -u; {command}; echo $?", "bash")
    assert (result.output, result.code) == ("1\n", 0)


@pytest.mark.parametrize("command", ["((missing))", "let missing", "[[ missing -eq 0 ]]"])
def test_unset_variable_in_expression_ends_bash_with_nounset(command):
    result = run_simulated(f"set -u; {command}; echo $?", "bash")
    assert (result.output, result.code) == ("", 127)


def test_interactive_shell_continues_after_error():
    assert run_simulated("printf 'fi\\necho a\\n' | sh; echo $?").output == "2\n"


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("a=([3]=x [7]=y [9]=z); echo ${a[@]:4} - ${a[@]:7:1} - ${a[@]: -3:1}", "y z - y - y\n"),
        ("set -- a b c; echo ${@:2} - ${@: -2:1} - ${@: -9}", "b c - b -\n"),
    ],
)
def test_slice_of_array_begins_at_index(script, output):
    assert run_simulated(script, "bash").output == output


@pytest.mark.parametrize(
    ("shell", "errors"),
    [
        (
            "bash",
            "bash: line 2: nosuch: command not found\nmain: line 4: cd: /none: No such file or directory\n",
        ),
        ("sh", "sh: 2: nosuch: not found\nsh: 4: cd: can't cd to /none\n"),
    ],
)
def test_messages_about_input_have_its_lines(shell, errors):
    script = "echo a\nnosuch\nf() {\ncd /none\n}\nf\n"
    result = run_simulated(f"cat > in.sh <<'E'\n{script}E\n{shell} < in.sh")
    assert (result.output, result.errors) == ("a\n", errors)


@pytest.mark.parametrize(("shell", "output"), [("sh", "hidden\nx\n"), ("bash", "x\n")])
def test_value_of_assignment_has_redirections_of_its_command_in_posix_shell_alone(shell, output):
    assert run_simulated('z="$(echo hidden >&2)" echo x 2>&1', shell).output == output


LONG = "x=$(printf '%0131072d' 1); "


@pytest.mark.parametrize(
    ("script", "shell", "errors", "output"),
    [
        (f"{LONG}env $x; echo $?", "sh", "sh: 1: env: Argument list too long\n", "126\n"),
        (
            f"{LONG}/bin/sleep $x; echo $?",
            "bash",
            "sh: line 1: /bin/sleep: Argument list too long\n",
            "126\n",
        ),
        (f"{LONG}export x; env; echo $?", "sh", "sh: 1: env: Argument list too long\n", "126\n"),
        ("env -- $(seq 1 150000); echo $?", "sh", "sh: 1: env: Argument list too long\n", "126\n"),
        (
            "x=$(printf '%065537d' 1); env ${x//0/é}1; echo $?",
            "sh",
            "sh: 1: env: Argument list too long\n",
            "126\n",
        ),
        (f"{LONG}echo $x $(seq 1 100000) | wc -w", "sh", "", "100001\n"),
        (f"{LONG}: ${{x%1}}; x=${{x%1}}; sleep 0 $x; echo $?", "sh", "", "0\n"),
    ],
)
def test_program_with_longer_arguments_than_the_kernel_takes_is_not_executed(script, shell, errors, output):
    result = run_simulated(script, shell)
    assert (result.errors, result.output) == (errors, output)


@pytest.mark.parametrize("pattern", ["[$x]", "*$x", '?"$z"', "$x"])
def test_pattern_is_not_longer_than_it_may_be(pattern):
    result = run_simulated(
        f"x=$(yes 'ab?' | head -9000); z=$(printf '%0300000d' 1); case a in {pattern}) ;; esac"
    )
    assert "the pattern " in result.errors


def test_quoted_wildcards_of_a_pattern_are_none():
    result = run_simulated("x=$(yes '*[a]' | head -7000); case $x in \"$x\") echo y ;; esac")
    assert (result.errors, result.output) == ("", "y\n")
