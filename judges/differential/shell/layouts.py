"""Valid scripts, each with layout at one of its places, or at several: blanks, comments, newlines, line continuations, here-documents."""

from functools import cache

from judges.differential.shell.scripts import Scripts

PIECES = (
    " ",
    "\t",
    "\n",
    "\\\n",
    " \\\n ",
    "\n\n \n",
    " # it's a `note` \\\n",
    "# note",
    "\n# note; (\n",
    "; ",
    " ;# note\n",
    "&\nwait\n",
    "\r\n",
)
DOCUMENTS = ((" <<E ", "in $x `echo q`\\\n'\"\nE"), ("<<-\\E", "\tin $x \\\n\tE"))
SCRIPTS = (
    ":; ",
    "echo a b",
    "x=1 y=2; echo $x $y",
    "echo a; echo b",
    ": & wait; echo a",
    ": && echo a || echo b",
    "! [ a ] || echo n",
    "echo ab | cat | grep a",
    "echo a > o; cat < o 2>&1 >> p; cat p",
    "{ echo e >&2; echo a; } 2> o; cat o",
    "if :; then echo a; fi",
    "if ! :; then :; elif [ a ]; then echo b; else echo c; fi",
    "while read l; do echo $l; done < a.txt",
    "until ! read l; do\necho $l\ndone < a.txt; echo u",
    "for i in a b; do echo $i; done",
    "for i in a b\ndo echo $i\ndone | cat",
    "set -- p q; for i do echo $i; done",
    "set -- p q; for i; do echo $i; done",
    "case b in a) echo A;; b|c) echo B;; *) echo C; esac",
    "case b in\n(a) echo A ;;\n(b) echo B\n;;\nesac",
    "case a in esac; echo a",
    "(echo a; echo b)",
    "( (echo a) | (cat) )",
    "{ echo a; echo b; }",
    "{ echo a; } > o; cat o",
    "f() { echo f $1; }; f x",
    "f() (echo s); f",
    "f () if :; then echo i; fi\nf",
    "cat <<E\na $x\nE\necho b",
    "cat <<-E && echo c\n\ta\n\tE\necho b",
    "cat <<'E' | grep a\na $x\nE\n",
    "cat <<A - 3<<B\na\nA\nb\nB\n",
    'while read l; do echo "<$l>"; done <<E\n1\n2\nE',
    "x=$(cat <<E\nin\nE\n); echo $x",
    "if cat <<E; then\na\nE\necho b; fi",
    'echo $(echo a; echo b) "$(echo c)"',
    'echo `echo a` "`echo b; echo c`"',
    'echo "$(echo `echo a` "b $(echo \'c\')")"',
    'echo ${x:-d} "${x:-e f}" ${#x} ${x+y}',
    "x=abcb; echo ${x%b} ${x##a} \"${x%%'b'*}\" $x",
    "echo $((1 + 2 * (3))) $(( x ))",
    "echo 'a b' \"c d\" e\\ f\\\\",
    "x='a\nb'; echo \"$x\" $x",
    "echo a # note\necho b#c",
    "# only\necho a\n",
    "#!/bin/sh\nset -e\necho a\n\nexit 0\n",
    "if :; then for i in 1 2; do case $i in 1) { echo one; };; *) (echo other);; esac; done; fi",
    "eval 'echo a; '; echo b",
    "echo a; sh -c 'echo b; # c'",
    'set -- a b; echo $1 $# "$@" ${1}',
    ". ./lib.sh; lib x",
    "exec 3> o; echo a >&3; exec 3>&-; cat o",
    "echo ~ | grep -c /",
    "echo *.txt [ab].txt",
    "x=`echo a\\`echo b\\``; echo $x",
)
BASH_SCRIPTS = (
    "[[ a == a && ( b != c || -f a.txt ) ]] && echo y",
    "[[ -n $x ]] || ! [[ a < b ]] || echo n",
    "[[ abc =~ ^a(b|c)+$ ]] && echo ${BASH_REMATCH[0]}",
    "((1 + 1)) && echo y",
    "for ((i=0; i<2; i++)); do echo $i; done",
    "for i in a b; { echo $i; }",
    "a=(x 'y z' $x); echo ${a[1]} ${#a[@]}",
    'a=(\nx # note\ny\n)\necho "${a[@]}"',
    "declare -A m=([k]=v [l]=w); m[o]=p; echo ${m[k]} ${#m[@]}",
    "function f { echo f; }; f",
    "function f() { echo $1; }\nf x",
    "f-x() { local y=1 z; echo $y; }; f-x",
    "cat <<< word; cat <<<'a b'",
    "cat < <(echo p; echo q)",
    "cat a.txt |& cat; echo a &> o; cat o",
    "echo {a,b}c {1..3}",
    "echo $'a\\tb' $\"c\"",
    "case a in a) echo 1;;& a*) echo 2;& *) echo 3;; esac",
    "x=abc; x+=d; echo ${x:1:2} ${x/b/c} ${x^^}",
    "if [[ a = a ]]; then echo a; fi",
)


def _insert(script, position, piece):
    return script[:position] + piece + script[position:]


def _insert_document(script, position, document):
    """Insert the beginning of a here-document at a position, and its text behind the line."""
    begin, text = document
    end = script.find("\n", position)
    if end < 0:
        script, end = f"{script}\n", len(script)
    return _insert(_insert(script, end + 1, f"{text}\n"), position, begin)


def _with_layout(script, position):
    """Yield the variants, but for those with a here-document whose command goes to the background: nobody waits for it."""
    has_document = "<<" in script
    if has_document and script[max(position - 1, 0) : position + 1] == "&&":
        return
    pieces = (piece for piece in PIECES if not (has_document and piece.startswith("&")))
    yield from (_insert(script, position, piece) for piece in pieces)
    yield from (_insert_document(script, position, document) for document in DOCUMENTS)


@cache
def single_layouts(*, is_bash):
    """Return the variants of each script that have one more piece of layout, at each place."""
    return [
        variant
        for script in (*SCRIPTS, *(BASH_SCRIPTS if is_bash else ()))
        for position in range(len(script) + 1)
        for variant in _with_layout(script, position)
    ]


class Layouts(Scripts):
    """A generator of a script with several pieces of layout."""

    def script(self):
        script = self.pick(
            self.pick(*SCRIPTS, *(BASH_SCRIPTS if self.is_bash else ())),
            "\n".join(self.statement() for _ in range(self.random.randint(1, 2))),
        )
        for _ in range(self.random.randint(1, 5)):
            script = self.pick(*_with_layout(script, self.random.randint(0, len(script))))
        return script
