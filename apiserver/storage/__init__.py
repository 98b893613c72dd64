"""Objects over keys and revisions.

A module belongs here if it converts objects to values of `mockube.etcd.kv`, or caches the store's content. It handles
keys, revisions and encoded objects, and is independent of verbs, users and HTTP.
"""
