"""ndscatter beside the scatters of six runtimes, on the same arrays."""
