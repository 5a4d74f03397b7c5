"""onnxruntime's scatter kernels beside those that ndscatter puts in their place."""
