"""The verbs, free of transport: get, list, watch, create, update, patch, delete, and subresources.

A module belongs here if it carries out what a client asked for, on objects. It knows no HTTP: a call comes in as a
record, an answer goes out as one, and errors are raised as what they are.
"""
