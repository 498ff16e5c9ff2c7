"""LinUCB and linear Thompson sampling: users share statistics by labels that never change."""
