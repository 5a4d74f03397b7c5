"""Compares onnxruntime's scatter kernels with ndscatter's kernels."""
