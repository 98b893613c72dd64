"""Resources that are never stored: a client sends a question as an object, and has it back with the answer in it.

A module belongs here if it answers such a question: who somebody is, what he may do, or with which token.
"""
