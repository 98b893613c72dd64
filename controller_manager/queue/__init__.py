"""Work queues, each layer with one idea: each key once, keys that wait, keys that failed.

A module belongs here if it decides when a worker gets a key. It is independent of objects and of the server.
"""
