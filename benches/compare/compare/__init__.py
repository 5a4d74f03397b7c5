"""Compares ndscatter with the scatters of six runtimes, on the same arrays."""
