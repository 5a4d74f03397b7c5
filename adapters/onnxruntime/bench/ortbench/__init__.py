"""Measures the speed of onnxruntime's scatter kernels and of ndscatter's kernels in the same
models."""
