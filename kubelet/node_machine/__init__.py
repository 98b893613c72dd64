"""What a simulated kubelet and systemd know of the machine of a node, for its programs: containers, units, the journal, tokens.

A module belongs here if it answers a program of a node. The programs and the files of the machine are the run-time's.
"""
