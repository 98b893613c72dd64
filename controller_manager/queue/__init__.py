"""Work queues, each layer with one idea: each key once, keys that wait, keys that failed.

A module belongs here if it decides when a key is handed to a worker. It knows no object and no server.
"""
