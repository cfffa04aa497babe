"""
The webhook as it runs in a pod: it finds its cluster without a kubeconfig, and so without the
libraries that read one, which are a quarter of its memory.
"""

import os
import sys

from kube import ClientSettings
from webhook.program import run

if __name__ == "__main__":
    run(os.environ, ClientSettings(server=sys.argv[1]))
