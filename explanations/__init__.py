"""Why an object is in its state, and why a request was refused: pure functions over objects and records.

An explanation reads `Facts`, and nothing else: the API server collects them, with the rights of whoever asks, and serves the
result as an object of the kind Explanation. What belongs here explains the objects of a kind, or a kind of refusal. Where the facts do not say what the cause is, an explanation says that.
"""
