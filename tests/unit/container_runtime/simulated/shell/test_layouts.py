"""Here-documents and arrays that begin or end at odd places have the results of real shells."""

import pytest

from judges.differential.shell.shells import run_simulated


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("delimiter", "end", "output"),
    [
        ("E$l", "E$l", "$x\n"),
        ("\\E$l", "E$l", "$x\n"),
        ("'E l'", "E l", "$x\n"),
        ('a"b"c', "abc", "$x\n"),
        ('"a\\$b"', "a$b", "$x\n"),
        ("E`x`", "E`x`", "\n"),
        ("${l}", "${l}", "\n"),
    ],
)
def test_delimiter_of_a_here_document_is_not_expanded(shell, delimiter, end, output):
    text = "$x" if output == "\n" or "\\" in delimiter or "'" in delimiter or '"' in delimiter else "\\$x"
    result = run_simulated(f"cat <<{delimiter}\n{text}\n{end}\necho b\n", shell)
    assert (result.output, result.errors, result.code) == (f"{output}b\n", "", 0)


def test_line_that_goes_on_in_a_here_document_begins_behind_the_tabs():
    assert run_simulated("cat <<-E\n\\\n\ta\n\\\n\tE\necho b\n").output == "a\nb\n"
    script = "cat <<-E\n\t\\\n\ta\n\tx\\\n\ty\n\t\\\n\tE\necho b\n"
    assert run_simulated(script, "bash").output == "a\nx\ty\nb\n"


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo $(cat <<E; echo q)\nin\nE\necho after\n", "in q\nafter\n"),
        ("cat < <(cat <<E; echo q)\nin\nE\necho after\n", "in\nq\nafter\n"),
        ("cat < <(cat <<E; echo q) <<F\nin\nE\nf\nF\necho after\n", "f\nafter\n"),
        ("cat <<F - <(cat <<E; echo q)\nf\nF\nin\nE\necho after\n", "echo after\nf\nF\nin\nq\n"),
    ],
)
def test_here_document_that_is_open_at_the_end_of_a_substitution_begins_at_the_next_line(script, output):
    assert run_simulated(script, "bash").output == output


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ('a=(x y)b; echo "${a[@]}" ${#a[@]}\n', "(x y)b 1\n"),
        ("a=(x 'y z')# note; echo c\necho \"$a\"\n", "c\n\n"),
        ('a=(\nx # note\ny\n)#b\necho "$a"\n', "(x y)#b\n"),
        ('declare a=(x y)b; echo "$a"\n', "(x y)b\n"),
        ("a=(x y)&& echo ${a[1]}\n", "y\n"),
    ],
)
def test_array_with_something_behind_its_parenthesis_is_a_text(script, output):
    assert run_simulated(script, "bash").output == output


def test_carriage_return_is_a_part_of_words():
    assert run_simulated("echo ~\r\ncat <<E\r\na\nE\r\n").output == "~\r\na\n"


def test_grep_of_busybox_reads_a_folder_as_an_empty_file():
    result = run_simulated("grep -c x /; echo $?")
    assert (result.output, result.errors) == ("0\n1\n", "")


@pytest.mark.parametrize(
    ("script", "output", "errors", "code"),
    [
        ("[[ abc =~ ^a(\nb|c)+$ ]]; echo $?", "1\n", "", 0),
        ("[[ abc =~ ^a(b|c ;# note\n)+$ ]]; echo $?", "1\n", "", 0),
        ("[[ 'a\nb' =~ a(\n)b ]]; echo $?", "0\n", "", 0),
        ("!", "", "", 1),
        ("!\necho $?", "1\n", "", 0),
        ("! ! ; echo $?", "0\n", "", 0),
        ("if ! # note\nthen echo a; else echo b; fi", "b\n", "", 0),
        ("false || ! ; echo $?", "1\n", "", 0),
        ("for i in a;\n\n{ echo $i; }", "a\n", "", 0),
        ("for i in a; do :;\ndone; for 1\\\nx; do\n:\ndone\necho $?", "1\n", "sh: line 5: `1x': not a valid identifier\n", 0),
        ("for (( i = 0 ; ; )); do echo $i; break; done", "0\n", "", 0),
        ("for ((i=0; i<2; i++) ); do echo $i; done; echo b", "", "", 0),
        ("echo a\nfalse\nfor ((i=0; # note (\n i<2; i++)); do echo $i; done", "a\n", "", 1),
        (
            "for ((i=0; i<2; i++@)); do\n echo $i; done; echo $?",
            "0\n1\n",
            'sh: line 1: ((: i++@: syntax error: invalid arithmetic operator (error token is "@")\n',
            0,
        ),
        (
            "for ((i=0; i<2)); do :; done",
            "",
            "sh: -c: line 1: syntax error: arithmetic expression required\nsh: -c: line 1: syntax error: `((i=0; i<2))'\n",
            2,
        ),
        ("a=(x); echo ${a[@@]}\necho b", "", 'sh: line 1: @@: syntax error: operand expected (error token is "@@")\n', 1),
        ("declare -A m=(\r [k]=v [l]=w); echo ${#m[@]}", "2\n", "", 0),
    ],
)  # fmt: skip
def test_layout_has_result_of_bash(script, output, errors, code):
    result = run_simulated(script, "bash")
    assert (result.output, result.errors, result.code) == (output, errors, code)


@pytest.mark.parametrize(
    "script",
    ["!", "!\necho a", "! ; echo a", "! # note", "for i in a; { :; }", "for ((i=0; i<2; i++)); do :; done"],
)
def test_negation_of_nothing_and_other_loops_are_for_bash_alone(script):
    assert run_simulated(script).code == 2


@pytest.mark.parametrize("blank", ["\r", "\v", "\f", "\xa0"])
def test_only_space_tab_and_newline_are_blanks_of_expressions(blank):
    message = f'1{blank}: syntax error: invalid arithmetic operator (error token is "{blank}")'
    for script in (f"echo $((1{blank}))", f"x='1{blank}'; echo $((x))", f"a=(x); echo ${{a[1{blank}]}}"):
        assert run_simulated(script, "bash").errors == f"sh: line 1: {message}\n"
    assert run_simulated("((\n1\n+\t1 )); echo $? $((x\n=\n3))", "bash").output == "0 3\n"
    assert run_simulated(f"echo $((1{blank}))").code == 2
    assert run_simulated(f"x='{blank}1{blank}'; echo $((x))").code == (2 if blank == "\xa0" else 0)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("declare -A", 'declare -A BASH_ALIASES=()\ndeclare -A BASH_CMDS=()\ndeclare -A m=([k]="v" )\n'),
        ("declare -ai", 'declare -ai b=([0]="2")\n'),
        ("declare -aA; readonly -A", ""),
        ("declare -l -u; readonly", 'declare -l l="x"\ndeclare -r r="5"\n'),
        ("f() { local y=1 z; local -a q=(1); local -i; }; f", 'declare -a q=([0]="1")\ndeclare -- y="1"\ndeclare -- z\n'),
        ("declare | grep '^[nmbcl]='", "b=([0]=\"2\")\nc='p q'\nl=x\nm=([k]=\"v\" )\nn=1\n"),
    ],
)  # fmt: skip
def test_declare_lists_variables_that_have_an_attribute(command, output):
    script = f"declare -i n=1; declare -ai b=(2); declare -A m=([k]=v); declare -l l=X; c='p q'; readonly r=5; {command}"
    assert run_simulated(script, "bash").output == output


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("c \\\n a", 2),
        ("c a \\\n b \\\n d", 1),
        ("c a\\\nb", 2),
        ("c \\\n", 2),
        ("c 'x\ny' \\\n b", 2),
        ("x=1 \\\n c \\\n a", 1),
        (">o c \\\n a", 1),
        ("c > \\\n o", 1),
        ("c \\\n > o", 2),
    ],
)
def test_line_of_a_command_of_bash_is_that_of_the_token_behind_its_first_word(script, line):
    assert run_simulated(script, "bash").errors == f"sh: line {line}: c: command not found\n"
    assert run_simulated(script).errors == "sh: 1: c: not found\n"


@pytest.mark.parametrize("script", ["\n\nx=`c`", "echo `c` \\\n `c`", "x=`c\n\n`"])
def test_lines_of_backquotes_begin_with_1_in_a_posix_shell(script):
    assert set(run_simulated(script).errors.splitlines()) == {"sh: 1: c: not found"}
