"""What `kubectl get` prints: for each kind its columns, and the cells of one object.

A module belongs here if it holds the printers of one API group, by kind in its `PRINTERS`, or what several of them
print alike. A printer sees an object and the time, nothing else. A kind without a printer here has upstream's default.
"""
