"""What users control of a running server and see of it: the kinds of the group control.mockube.dev.

A module belongs here if it is one of these kinds (faults, requests, changes, marks, the clock, rewinds, forks, snapshots, explanations,
controllers), or what one of them does: a hook in the chain of filters, what selects the requests for it, the tokens of the page.
`mockube.Cluster` and the command line are clients of it.
"""
