"""AutoCLUB: clusters by evidence, without constants to set."""
