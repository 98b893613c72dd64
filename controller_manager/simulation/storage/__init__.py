"""What stands for storage: a provisioner of volumes that hold nothing, and a class that asks for them."""
