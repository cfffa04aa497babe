"""Reports for others' tools: of each fenced namespace, in the words of OpenReports."""
