"""What the agent looks after beside the fence: a folder each, which only `agent.program` names."""
