"""What the controller knows of the cluster, kept true by watches."""
