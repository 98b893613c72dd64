"""The verbs over any resource: get, list, watch, create, update, patch, delete, and subresources.

A module belongs here if it carries out a verb, or a part that verbs share. It knows no HTTP: a request comes in as a record, an answer goes out as one, and errors are raised as what they are.
"""
