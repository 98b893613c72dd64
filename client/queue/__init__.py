"""Work queues.

A module belongs here if it determines when a worker gets a key. It is independent of objects and of the server.
"""
