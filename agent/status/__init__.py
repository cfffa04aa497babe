"""
The plain port: /healthz, /metrics and /v1/snapshot, for kubelet, Prometheus and the plugin.

Anybody in the cluster may knock, so the server keeps little, waits briefly and believes nothing.
"""
