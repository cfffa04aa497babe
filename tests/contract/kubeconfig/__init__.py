"""
Our reader of plain kubeconfigs, held against the Kubernetes client's.
"""
