"""The room datasets."""
