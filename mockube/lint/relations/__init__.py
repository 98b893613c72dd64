"""Mistakes between objects that a server accepts one by one: a Service without pods, a probe of a port that no container has.

A file belongs here if it decides from several objects of the files, or from several parts of a pod, whether they fit together. What
a server says of one object is in the folder above.
"""
