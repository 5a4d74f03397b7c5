"""Scatter for CPUs: parallel, SIMD, and the same bits at every thread count."""

from ._native import __version__
