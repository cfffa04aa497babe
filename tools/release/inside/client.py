"""
Stands in for `kubernetes.client` inside the plugin's archive, where kubeconfigs are read and no
more: models and their compiled libraries, nine tenths of the package, stay outside.
"""

from __future__ import annotations

import urllib3
from kubernetes.client.configuration import Configuration

__all__ = ["ApiClient", "Configuration"]


class ApiClient:
    """The one request that a login by OIDC makes of the client, when its token has expired."""

    def __init__(self, configuration: Configuration) -> None:
        self._certificates = "CERT_REQUIRED" if configuration.verify_ssl else "CERT_NONE"
        self._ca_file = configuration.ssl_ca_cert

    def call_api(self, method: str, url: str) -> urllib3.BaseHTTPResponse:
        with urllib3.PoolManager(cert_reqs=self._certificates, ca_certs=self._ca_file) as pool:
            return pool.request(method, url)
