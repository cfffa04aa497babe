"""
The one place that knows the Kubernetes client.
"""
