"""HTTP/1.1 without I/O: bytes become heads, pieces of bodies and their ends, and heads become bytes.

A module belongs here if it knows the protocol and neither sockets nor what the messages are about. `states` has the table of states,
`heads` parses start lines and headers, `reading` reads messages, `writing` encodes them.
"""
