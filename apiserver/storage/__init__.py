"""Objects over keys and revisions.

A module belongs here if it turns objects into what `mockube.etcd.kv` holds, or keeps what the store holds at hand. It knows
keys, revisions and encoded objects; it knows no verb, no user and no HTTP.
"""
