"""What stands for machines: nodes, and the pods that live on them."""
