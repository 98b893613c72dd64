"""Objects as bytes and back: the media types of requests and responses.

A module belongs here if it turns bytes into JSON trees or the reverse. It knows no request, no verb and no store.
"""
