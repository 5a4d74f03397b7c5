"""Scatters of numbers as loops of numpy, in the order of the updates and in the type of the data."""

from __future__ import annotations

import numpy as np

UFUNCS = {
    "sum": np.add,
    "sub": np.subtract,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def apply(output, at, updates, reduction):
    """Combine `updates` with the elements `output[at]`, in order."""
    if reduction == "none":
        for place, update in zip(zip(*(part.ravel() for part in at)), updates.reshape(at[0].size, -1)):
            output[place] = update.reshape(np.shape(output[place]))
    else:
        UFUNCS[reduction].at(output, at, updates)


def scatter_nd(data, indices, updates, reduction="none"):
    output = data.copy()
    at = tuple(indices[..., axis] for axis in range(indices.shape[-1]))
    apply(output, at, updates, reduction)
    return output


def scatter_update(data, indices, updates, axis):
    output = np.moveaxis(data.copy(), axis, 0)
    updates = np.moveaxis(updates, range(axis, axis + indices.ndim), range(indices.ndim))
    updates = updates.reshape(indices.size, *output.shape[1:])
    for index, update in zip(indices.ravel(), updates):
        output[index] = update
    return np.moveaxis(output, 0, axis)


def scatter_elements(data, indices, updates, axis, reduction="none", use_init_val=True):
    output = data.copy()
    at = list(np.indices(indices.shape))
    at[axis] = np.where(indices < 0, indices + data.shape[axis], indices)
    at = tuple(at)
    if not use_init_val and reduction != "none":
        identities = {"sum": 0, "mean": 0, "prod": 1}
        if data.dtype.kind == "f":
            identities |= {"min": np.inf, "max": -np.inf}
        else:
            limits = np.iinfo(data.dtype)
            identities |= {"min": limits.max, "max": limits.min}
        output[at] = identities[reduction]
    if reduction != "mean":
        apply(output, at, updates, reduction)
        return output
    apply(output, at, updates, "sum")
    counts = np.full(data.shape, int(use_init_val))
    np.add.at(counts, at, 1)
    touched = np.zeros(data.shape, bool)
    touched[at] = True
    divide = np.divide if data.dtype.kind == "f" else np.floor_divide
    output[touched] = divide(output[touched], counts[touched].astype(data.dtype))
    return output
