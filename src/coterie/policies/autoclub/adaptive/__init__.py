"""What AutoCLUB adapts to as it goes: users who change, and the units of columns."""
