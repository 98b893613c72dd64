"""Error recovery of the parser, which finds the syntax errors of an expression and their messages.

The messages, and the tokens at which parsing continues, are those of ANTLR's default error strategy, with cel-go's limits.
"""

import re
from typing import Final, NamedTuple

from . import grammar
from .grammar import ATNState, RuleParser, StateKind
from .lexer import EOF, SKIPPED, Token
from .prediction import NoViableAlternative, predict
from .source import NO_LOCATION, Issue

MAX_RECOVERIES: Final = 30
MAX_LOOKAHEAD: Final = 256
MAX_REPORTS: Final = 100
"""The limits of cel-go (parser/parser.go)."""
_KEYWORD_AS_NAME = re.compile("no viable alternative at input '.(true|false|null)'")


class _Frame(NamedTuple):
    """A rule that is being parsed: the state that called it, and its precedence."""

    caller: ATNState | None
    precedence: int


class _Error(Exception):
    """Ends a rule; `RecoveringParser.call` reports the message."""

    def __init__(self, message: str, token: Token) -> None:
        super().__init__(message)
        self.token = token


class _Stop(Exception):
    """Ends the parsing, because a limit is reached."""


class RecoveringParser(RuleParser):
    """A parser of the tokens that reports syntax errors and continues after them."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.position = 0
        self.issues: list[Issue] = []
        self.frames: list[_Frame] = []
        self.state: ATNState | None = None
        self.recovering = False
        self.last_error_at = -1
        self.last_error_states: set[ATNState | None] = set()
        self.attempts = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def consume(self) -> None:
        if self.token.kind != EOF:
            self.position += 1

    def report(self, message: str, token: Token) -> None:
        if len(self.issues) >= MAX_REPORTS:
            self.issues.append(_issue(token, f"More than {MAX_REPORTS} syntax errors", self.text))
            raise _Stop
        if "no viable alternative" in message:
            message = _KEYWORD_AS_NAME.sub(r"mismatched input '\1' expecting IDENTIFIER", message)
        self.issues.append(_issue(token, message, self.text))

    def begin_error(self) -> bool:
        """Begin error recovery; return whether to report the error: during recovery, no further errors are reported."""
        begins = not self.recovering
        self.recovering = True
        return begins

    def report_match(self) -> None:
        self.recovering = False
        self.last_error_at = -1
        self.last_error_states = set()

    def call(self, state: ATNState | None, rule: str, precedence: int) -> None:
        self.state = state
        start = self.token
        self.frames.append(_Frame(state, precedence))
        try:
            grammar.network().rules[rule].run(self)
        except _Error as error:
            if self.begin_error():
                self.report(str(error), error.token)
            self.recover()
            if rule == "escapeIdent":
                self.issues.append(Issue(start.start, "unsupported ident kind"))
        self.frames.pop()
        self.state = state

    def match(self, state: ATNState, tokens: frozenset[str]) -> None:
        self.state = state
        if self.token.kind in tokens:
            self.report_match()
            self.consume()
            return
        self.check_attempts()
        if self.delete_token():
            self.consume()
        elif not self.insert_token(state):
            raise self.mismatch()

    def next_is(self, tokens: frozenset[str]) -> bool:
        return self.token.kind in tokens

    def predict(self, state: ATNState) -> int:
        try:
            return predict(state, self.tokens, self.position, self.frames[-1].precedence)
        except NoViableAlternative as error:
            input_text = EOF if self.token.kind == EOF else self.text_to(error.position)
            message = f"no viable alternative at input {_quote(input_text)}"
            raise _Error(message, self.tokens[error.position]) from None

    def text_to(self, last: int) -> str:
        """Return the text from the current token to another token, without invalid text between tokens."""
        text = ""
        for i in range(self.position, last + 1):
            token = self.tokens[i]
            if token.kind == EOF:
                break
            end = token.start + len(token.text)
            after = self.tokens[i + 1].start if i < last else end
            text += token.text + "".join(SKIPPED.findall(self.text[end:after]))
        return text

    def sync(self, state: ATNState) -> None:
        """Delete or skip tokens that do not match, before a decision; ANTLR's `sync`."""
        self.state = state
        if self.recovering:
            return
        following = grammar.next_tokens(state)
        if grammar.EPSILON in following or self.token.kind in following:
            return
        if state.kind in (StateKind.BLOCK_START, StateKind.STAR_ENTRY):
            if not self.delete_token():
                raise self.mismatch()
        elif state.kind in (StateKind.STAR_BACK, StateKind.PLUS_BACK):
            self.report_extraneous_token()
            self.consume_until(self.expected_tokens() | self.recovery_set(), None)

    def mismatch(self) -> _Error:
        return _Error(
            f"mismatched input {_quote(self.token.text)} expecting {grammar.format_tokens(self.expected_tokens())}",
            self.token,
        )

    def report_extraneous_token(self) -> None:
        if self.begin_error():
            expected = grammar.format_tokens(self.expected_tokens())
            self.report(f"extraneous input {_quote(self.token.text)} expecting {expected}", self.token)

    def delete_token(self) -> bool:
        """Delete the current token if the next one matches; ANTLR's single-token deletion."""
        after = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if after.kind not in self.expected_tokens():
            return False
        self.report_extraneous_token()
        self.consume()
        self.report_match()
        return True

    def insert_token(self, state: ATNState) -> bool:
        """Return whether the current token can follow a missing one, and report that; ANTLR's single-token insertion."""
        if self.token.kind not in self.following(state.edges[0].target):
            return False
        if self.begin_error():
            message = f"missing {grammar.format_tokens(self.expected_tokens())} at {_quote(self.token.text)}"
            self.report(message, self.token)
        return True

    def expected_tokens(self) -> frozenset[str]:
        assert self.state is not None
        return self.following(self.state)

    def following(self, state: ATNState) -> frozenset[str]:
        """Return the tokens that can follow a state, in the rules that are being parsed."""
        tokens = set(grammar.next_tokens(state))
        for frame in reversed(self.frames):
            if grammar.EPSILON not in tokens or frame.caller is None:
                break
            tokens.remove(grammar.EPSILON)
            tokens |= grammar.next_tokens(frame.caller.edges[0].target)
        if grammar.EPSILON in tokens:
            tokens.remove(grammar.EPSILON)
            tokens.add(EOF)
        return frozenset(tokens)

    def recovery_set(self) -> frozenset[str]:
        tokens: set[str] = set()
        for frame in self.frames:
            if frame.caller is not None:
                tokens |= grammar.next_tokens(frame.caller.edges[0].target)
        return frozenset(tokens - {grammar.EPSILON})

    def check_attempts(self) -> None:
        if self.attempts == MAX_RECOVERIES:
            self.report(f"error recovery attempt limit exceeded: {MAX_RECOVERIES}", self.token)
            raise _Stop
        self.attempts += 1

    def recover(self) -> None:
        """Skip the tokens that no rule that is being parsed can continue with."""
        self.check_attempts()
        remaining_lookahead = MAX_LOOKAHEAD
        if self.last_error_at == self.position and self.state in self.last_error_states:
            self.consume()
            remaining_lookahead -= 1
        self.last_error_at = self.position
        self.last_error_states.add(self.state)
        self.consume_until(self.recovery_set(), remaining_lookahead)

    def consume_until(self, tokens: frozenset[str], limit: int | None) -> None:
        while self.token.kind != EOF and self.token.kind not in tokens:
            if limit == 0:
                message = f"error recovery token lookahead limit exceeded: {MAX_LOOKAHEAD}"
                self.issues.append(Issue(NO_LOCATION, message))
                raise _Stop
            limit = limit - 1 if limit is not None else None
            self.consume()


def _quote(text: str) -> str:
    text = text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{text}'"


def _issue(token: Token, message: str, text: str) -> Issue:
    return Issue(token.start, f"Syntax error: {message}", None if text else (1, -1))


def syntax_errors(text: str, tokens: list[Token]) -> list[Issue]:
    """Return the syntax errors of tokens that are not an expression."""
    recovery = RecoveringParser(text, tokens)
    try:
        recovery.call(None, "start", 0)
    except _Stop:
        pass
    except RecursionError:
        recovery.issues.append(Issue(NO_LOCATION, "expression recursion limit exceeded: 250"))
    return recovery.issues
