"""
A program as it runs in a pod: it finds its cluster without a kubeconfig, and so without the
libraries that read one, which are a quarter of its memory.

`python -m tests.support.in_pod PROGRAM SERVER [AUTHORITY TOKEN]`
"""

import importlib
import os
import sys
from pathlib import Path

from kube import ClientSettings

if __name__ == "__main__":
    program, server, *files = sys.argv[1:]
    authority, token = map(Path, files) if files else (None, None)
    access = ClientSettings(server=server, ca_file=authority, token_file=token)
    importlib.import_module(f"{program}.program").run(os.environ, access)
