"""Services, and the Endpoints behind them.

A module belongs here if it holds the rules of one of them or of a part of a Service. Addresses as such are in
`addresses`, and EndpointSlices in `discovery`.

    services      a Service, its ports and what they lead to        cluster_ips   its own addresses, and their families
    traffic       how traffic gets to it, and from where            endpoints     Endpoints
"""
