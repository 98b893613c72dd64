"""The verbs over any resource: get, list, watch, create, update, patch, delete, and subresources.

A module belongs here if it implements a verb, or a part that verbs share. It is independent of HTTP: requests and
answers are records, and errors are exceptions.
"""
