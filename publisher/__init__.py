"""What a cluster serves on this machine: node ports, load balancers, Ingresses and Gateways.

It stands for the kube-proxy of the nodes, a cloud's load balancers and a controller of Ingresses. A module belongs here if it decides
where something is published, listens there, or leads a connection from there into the network of the cluster. It connects to pods
only, by the run-time of their containers: never to an address that an object names, since that may be one of this machine.
"""
