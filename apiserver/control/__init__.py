"""What changes or observes a running server: faults that are injected into requests, and the record of requests.

A module belongs here if it adds a hook to the chain of filters, or selects the requests that a hook applies to. What it is
told to do is plain data that JSON can hold; the methods of `mockube.Cluster` are one client of it.
"""
