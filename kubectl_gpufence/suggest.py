"""
PURE. From what was measured back to a limit: the share rule the other way round.
"""

from __future__ import annotations

from typing import Final

from gpufence.quantity import MIB
from gpufence.share import FACTOR_TENTHS, ShareTerms, smallest_limit

_STEP: Final = 64 * MIB
_HEADROOM_TENTHS: Final = 11


def suggested_limit(peak_bytes: int, processes: int, reserve_bytes: int) -> int:
    """
    Return a limit under which a peak and a tenth would fit, in steps of 64 MiB.

    A process may allocate seven tenths of its part and holds its context besides (gpufence.share):
    whatever was measured, less the contexts, must be no more than those seven tenths.
    """
    count = max(processes, 1)
    wanted = -(-peak_bytes * _HEADROOM_TENTHS // 10)
    allocated = max(wanted - count * reserve_bytes, 0)
    least = smallest_limit(ShareTerms(reserve_bytes, count))
    return -(-max(wanted, -(-allocated * 10 // FACTOR_TENTHS), least) // _STEP) * _STEP
