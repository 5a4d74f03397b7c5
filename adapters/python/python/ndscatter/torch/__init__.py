"""ndscatter under PyTorch."""
