"""
What runs first in the plugin that has its own Python: programs that it starts, to log in or to show
a page, get the machine's libraries again and not those that came along.
"""

import os

if "LD_LIBRARY_PATH_ORIG" in os.environ:
    os.environ["LD_LIBRARY_PATH"] = os.environ.pop("LD_LIBRARY_PATH_ORIG")
else:
    os.environ.pop("LD_LIBRARY_PATH", None)
