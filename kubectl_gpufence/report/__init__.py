"""
PURE. `report`: what owners of GPU pods took since the agents started, and which limit would do.
"""

from kubectl_gpufence.report.owners import Owner, owners, since
from kubectl_gpufence.report.write import CAUTION, report_csv, report_json, report_table

__all__ = [
    "CAUTION",
    "Owner",
    "owners",
    "report_csv",
    "report_json",
    "report_table",
    "since",
]
