"""What a client is told of an object that is not refused: fields that are deprecated, ignored, or do not mean what they
seem to.

A module belongs here if it says such things of a kind or of a part of one. What is refused is in `validation/`.
"""
