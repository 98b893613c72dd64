"""The limits of simulated commands.

The attack: whoever may create a pod, or exec into one, writes commands, and the controller manager interprets them on its event
loop, beside the commands of all other pods, the leases of the nodes and all controllers. Without limits a loop stops
everything, a few nested parentheses exceed the stack of Python, and a doubled variable takes the memory of the process. With them
a command ends with an error that names the limit; scripts of real images stay far below. What a container does in all is bounded in
`containers/program.py`. A constant of another module is a limit of the program that is simulated, such as the redirects of curl.
"""

from typing import Final

# --- Depth: each level is a few calls of Python, whose stack has 1,000.

MAX_NESTED_COMMANDS: Final = 40
"""Nested commands and expansions."""
MAX_NESTED_ARITHMETIC: Final = 20
MAX_NESTED_BRACES: Final = 10
MAX_NESTED_CONDITIONS: Final = 40
MAX_NESTED_FIND: Final = 40
"""Parentheses of an expression of find."""
MAX_NESTED_AWK: Final = 60
"""Statements and operands of awk."""
MAX_SUBSHELLS: Final = 40
MAX_FUNCTION_CALLS: Final = 40
MAX_AWK_CALLS: Final = 40
MAX_SOURCES: Final = 20
"""Files that source each other."""
MAX_EXPR_WORDS: Final = 60
"""Words of an expression: each may be a parenthesis, which nests calls."""

# --- Time: what a program does in all, of which it does no more at once than a few commands take (`process.slices`, `process.count_work`),
# and what cannot be divided, in which nothing else of the process runs.

MAX_LINES: Final = 200_000
"""Lines that a program processes one by one."""
MAX_SORTED_LINES: Final = 400_000
MAX_VERSION: Final = 4096
"""The characters of a version that sort compares."""
MAX_SORTED_FIELDS: Final = 50_000
"""The characters of a line in which sort finds the fields that are its key."""
MAX_READ_LINES: Final = 100_000
"""Lines of mapfile, and fields of read."""
MAX_COMPARED: Final = 600
"""Lines of each file that diff compares, unless the files are the same: it compares all pairs."""
MAX_GREP_STEPS: Final = 200_000_000
"""The product of the instructions of a pattern and the characters of all input."""
MAX_MATCH_STEPS: Final = 200_000_000
"""The same product for one text in which matches are searched."""
MAX_PATTERN: Final = 256 * 1024
"""The characters of a pattern of the shell with wildcards."""
MAX_MATCHES: Final = 100_000
"""Matches in a text."""
MAX_SCANNED: Final = 300_000_000
"""Characters in all searches for matches of any length: each of them may reach the end of the text."""
MAX_EXPRESSION: Final = 8192
"""The characters of all patterns of grep."""
MAX_SED_STEPS: Final = 1_000_000
"""Executed commands."""
MAX_SED_WORK: Final = 1_000_000_000
"""The sum of the lengths of the pattern spaces of all executed commands."""
MAX_AWK_STEPS: Final = 20_000
"""Statements and operands for a record."""
MAX_DIGITS: Final = 12
"""Digits of a number that factor factors, and of the microseconds that usleep sleeps."""
MAX_PROCESS_PATTERN: Final = 200
"""Characters of a pattern of pgrep."""
MAX_TEMPLATE_PARTS: Final = 20_000
"""Texts and iterations after which the output of a template of kubectl ends."""

# --- Programs: what is parsed before anything runs.

MAX_SCRIPT: Final = 256 * 1024
MAX_ARITHMETIC: Final = 1000
MAX_ARITHMETIC_IN_ALL: Final = 3_000
"""Characters of an expression with the values of its variables, which are expressions, too."""
MAX_AWK_PROGRAM: Final = 64 * 1024
MAX_SED_COMMANDS: Final = 2_000
MAX_TEMPLATE: Final = 10_000
"""Characters of a template of kubectl."""

# --- Memory: what a command keeps, in characters or bytes unless a line says otherwise.

MAX_VALUE: Final = 8 << 20
"""The value of a variable."""
MAX_KEPT: Final = 128 << 20
"""What all processes of a command keep: variables, what they have read to its end, values of Python and awk."""
MAX_CAPTURED: Final = 1 << 28
"""The output of a command substitution that is read, of which at most a value is kept: a container may have less memory."""
MAX_EXPANDED: Final = 1 << 20
"""What the words of a command are expanded to: 1 for each 8 characters, and 5 for each part of a word."""
MAX_VARIABLES: Final = 64 << 20
"""All variables together."""
MAX_BRACE_STEPS: Final = 200_000
"""The characters of a word with braces times the words, or the braces."""
MAX_BRACE_WORDS: Final = 10_000
"""Words that braces expand to."""
MAX_DIRECTORY_STACK: Final = 1000
MAX_PROCESSES: Final = 2_000
MAX_CALLS: Final = 64
"""The calls of programs that may listen which are kept of a command."""
"""Processes of a container at a time."""
MAX_FILE_BYTES: Final = 16 << 20
"""All files in one file system together; of large ones above that, only the size is kept."""
MIN_UNKEPT_BYTES: Final = 1 << 20
"""The size from which on a file counts as a large one."""
MAX_FILES: Final = 100_000
MAX_INPUT: Final = 4 << 20
"""What a program reads before it writes."""
MAX_PADDING: Final = 16 << 20
"""What widths and precisions of a format of printf add."""
MAX_ARCHIVE: Final = 2 * MAX_FILE_BYTES
"""A decompressed archive, which a few compressed kilobytes may become."""
MAX_ARCHIVE_MEMBERS: Final = 20_000
MAX_DUMP: Final = 1 << 20
"""The input of od and xxd, whose output is four times as long."""
MAX_ARGUMENT: Final = 1 << 17
"""An argument of a program, as in Linux, which executes no program with a longer one."""
MAX_ARGUMENTS: Final = 1 << 21
"""All arguments and variables of a program, as in Linux."""
MAX_XARGS_ARGUMENTS: Final = 5_000
MAX_SED_SPACE: Final = 1 << 20
"""The pattern space or the hold space."""
MAX_AWK_VALUE: Final = 1 << 20
MAX_AWK_OUTPUT: Final = 16 << 20
MAX_AWK_ELEMENTS: Final = 200_000
"""Elements of an array."""
MAX_AWK_FIELDS: Final = 20_000
"""Fields of a record."""
MAX_AWK_REPLACED: Final = 1 << 20
"""The result of a replacement."""

# --- Requests: what a program sends over the simulated network.

MAX_MANIFESTS: Final = 3 << 20
"""What kubectl sends: the API server refuses larger bodies, too."""
MAX_UPLOAD: Final = 4 << 20
"""The body that curl sends."""
MAX_SENT: Final = 1 << 20
"""What nc sends, or a script through /dev/tcp."""
