//! Random numbers and random tensors.

use candle_core::{DType, Device, Result, Tensor};

/// A generator (SplitMix64) with a fixed seed, so that every run tests the same cases.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ (value >> 31)
    }

    /// Returns a number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("below a usize")
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Returns a value between -4 and 4 in steps of 1/16, or between 0 and 8 for integers that may
    /// be unsigned. All types of candle hold these values.
    fn value(&mut self, is_float: bool) -> f64 {
        if is_float {
            (self.below(129) as f64 - 64.0) / 16.0
        } else {
            self.below(9) as f64
        }
    }

    /// Returns a row-major tensor of random values.
    pub(crate) fn tensor(&mut self, dims: &[usize], dtype: DType) -> Result<Tensor> {
        let count = dims.iter().product();
        let values: Vec<f64> = (0..count).map(|_| self.value(dtype.is_float())).collect();
        Tensor::from_vec(values, dims, &Device::Cpu)?.to_dtype(dtype)
    }

    /// Returns a tensor of the same dims and values in another layout: permuted, or a part of a
    /// larger tensor, or both.
    pub(crate) fn relaid(&mut self, tensor: &Tensor) -> Result<Tensor> {
        let mut result = tensor.clone();
        if self.below(2) == 0 && tensor.rank() > 1 {
            let axis = self.below(tensor.rank() - 1);
            let last = tensor.rank() - 1;
            result = result
                .transpose(axis, last)?
                .contiguous()?
                .transpose(axis, last)?;
        }
        if self.below(2) == 0 && tensor.rank() > 0 {
            let axis = self.below(tensor.rank());
            let (before, len) = (self.below(3), tensor.dim(axis)?);
            let mut dims = tensor.dims().to_vec();
            dims[axis] = 3;
            let padding = Tensor::zeros(dims, tensor.dtype(), &Device::Cpu)?;
            let parts = [&padding.narrow(axis, 0, before)?, &result, &padding];
            result = Tensor::cat(&parts, axis)?.narrow(axis, before, len)?;
        }
        Ok(result)
    }
}
