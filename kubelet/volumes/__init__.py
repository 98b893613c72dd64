"""The volumes of pods on their nodes: whether they are attached, exist on the node, and can be mounted. Pure."""
