"""Go's regular expressions: their syntax and error texts, and matching in linear time.

A module belongs here if it knows what a pattern is; what is matched, and what for, it does not know.

parser       a pattern as Go reads it, or the error that Go returns
operands     the parser's record of a part of a pattern
escapes      escape sequences and character classes
unicode      names of Unicode classes
engine       RE2
matcher      whether a text contains a match
"""
