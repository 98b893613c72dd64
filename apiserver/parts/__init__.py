"""The parts of an API server. Each function makes one from the flags and from the parts that it needs; `app` has their order.

A module belongs here if it makes a part. A new flag is declared in `config`, and read by the part that it changes.
"""
