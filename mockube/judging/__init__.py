"""The test that every operator should pass: twelve judgements, how each is made, and the reports of their findings.

A module belongs here if it makes a judgement of an operator, or says what was judged. What runs an operator and compares what it
leaves is in `mockube.operators`, for other commands, too.
"""
