"""Objects over keys and revisions.

A module belongs here if it converts objects to values of `mockube.etcd.kv`, or caches the store's content. It knows
keys, revisions and encoded objects; it knows no verb, no user and no HTTP.
"""
