"""
The serving certificate: read from a folder, checked, and swapped while connections live on.
"""

from webhook.tls.pair import Certificate, PairError, read_certificate
from webhook.tls.watch import CertificateWatch

__all__ = ["Certificate", "CertificateWatch", "PairError", "read_certificate"]
