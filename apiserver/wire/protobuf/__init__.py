"""Kubernetes' protobuf, both ways: JSON trees in, bytes out, and back.

A module belongs here if it knows wire numbers. What others need is in `envelope.py`; `errors.py` says what can go wrong.

    envelope   the magic, the kind, watch events in frames
    decode     a message's bytes → its JSON tree            encode   the reverse
    tables     what each message is made of, from `messages.json.gz` (derived by `tools/minors/protobuf_table.py`)
    forms      messages that JSON writes as something else than an object: Time, Quantity, IntOrString …
    scalars    strings, numbers, bytes                      varint   the bytes of numbers and lengths
"""
