"""ValidatingAdmissionPolicy: expressions that administrators wrote decide about writes.

A module belongs here if it is a part of this plugin: which policy matches, the variables of its expressions, what follows from
what they return.
"""
