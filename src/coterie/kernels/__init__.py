"""The room kernels."""
