"""ValidatingAdmissionPolicy: expressions that administrators wrote decide about writes.

A module belongs here if it is a part of this plugin: which policy is concerned, what its expressions see, what follows from
what they return.
"""
