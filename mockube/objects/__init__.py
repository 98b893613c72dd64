"""Requests about objects, for the Python API. A file belongs here if it reads what a user passes, sends a request, or explains a failure."""
