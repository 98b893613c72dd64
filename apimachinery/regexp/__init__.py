"""Go's regular expressions: syntax, error messages, and matching in linear time.

A module belongs here if it parses or matches patterns, independent of their use.

parser       Go's parser of patterns, with its errors
operands     the parser's records of the parts of a pattern
escapes      escape sequences and character classes
unicode      names of Unicode classes
engine       RE2
matcher      matching, with limits and a cache of programs
captures     matches with their groups, for the patterns of configurations
literals     many literal texts, found in one pass
perl         the syntax and the messages of PCRE2, as far as the engine has them
"""
