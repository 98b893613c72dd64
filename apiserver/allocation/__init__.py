"""What no two Services may hold: cluster IPs and node ports, given out and taken back in the Service's own transaction.

A module belongs here if it decides which addresses and ports a Service gets, or keeps the record of what is given
out. The record is upstream's: an IPAddress object for each cluster IP, and one RangeAllocation with a bit for each
node port. Both are compared and changed in the transaction that writes the Service, so several servers over one store
never give anything out twice, and nothing is lost when one of them dies.
"""
