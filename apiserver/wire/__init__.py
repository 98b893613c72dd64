"""Objects as bytes and back: the formats a client may send and ask for.

A module belongs here if it turns bytes into JSON trees or the reverse. It knows no request, no verb and no store.
"""
