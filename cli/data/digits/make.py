"""Writes the UCI handwritten digits as the .npy files of a scatter that adds up images by label.

    pip install numpy==2.4.6
    pip download --no-deps scikit-learn==1.9.1
    python make.py scikit_learn-1.9.1-*.whl

README.md in the folder of this script describes the four .npy files and the source of the digits.
"""

import gzip
import hashlib
import sys
import zipfile
from pathlib import Path

import numpy as np

MEMBER = "sklearn/datasets/data/digits.csv.gz"
SHA256 = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
HERE = Path(__file__).resolve().parent

packed = zipfile.ZipFile(sys.argv[1]).read(MEMBER)
if hashlib.sha256(packed).hexdigest() != SHA256:
    sys.exit(f"{MEMBER} is not the file this script was written for")

# Each row describes one image: 64 pixels with values from 0 to 16, then the label, from 0 to 9.
rows = np.loadtxt(gzip.decompress(packed).decode().splitlines(), delimiter=",")
updates = rows[:, :64].reshape(-1, 8, 8).astype(np.float32)
indices = rows[:, 64:].astype(np.int64)
data = np.zeros((10, 8, 8), np.float32)

expected = data.copy()
np.add.at(expected, indices[:, 0], updates)

arrays = {"data": data, "indices": indices, "updates": updates, "expected": expected}
for name, array in arrays.items():
    np.save(HERE / f"{name}.npy", array, allow_pickle=False)
