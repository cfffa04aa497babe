"""
The agent as it runs in a pod: it finds its cluster without a kubeconfig, and so without the
libraries that read one, which are a quarter of its memory.
"""

import os
import sys
from pathlib import Path

from agent.program import run
from kube import ClientSettings

if __name__ == "__main__":
    server, authority, token = sys.argv[1:]
    access = ClientSettings(server=server, ca_file=Path(authority), token_file=Path(token))
    run(os.environ, access)
