//! Stores a logical tensor in memory in a chosen layout: permuted, padded, reversed, or with
//! strides of 0. Gaps and margins are filled with marks. A comparison of the whole buffer therefore
//! finds every write outside the tensor.

use ndscatter::{Layout, TensorView, TensorViewMut};

use super::{Tensor, ndindex};

/// The layout of a tensor in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrangement {
    /// Row-major, without gaps.
    Contiguous,
    /// Row-major, without gaps, but made from explicit strides.
    Spelled,
    /// Dimension 0 innermost. The other dimensions keep their order around it.
    Permuted,
    /// Row-major, with a gap of one element after each row and after each slice of an outer
    /// dimension.
    Padded,
    /// Every second element, in all dimensions.
    Stepped,
    /// Every stride is negative.
    Reversed,
    /// Permuted, padded, and every other dimension reversed.
    Mixed,
    /// Stride 0 along the first dimension.
    ZeroFirst,
    /// Stride 0 along the last dimension.
    ZeroLast,
    /// Stride 0 along every dimension except the first.
    ZeroTail,
    /// Every stride is 0: all elements are one element in memory.
    Fill,
}

impl Arrangement {
    /// The arrangements in which every element has separate memory.
    pub(crate) const OUTPUTS: [Self; 7] = [
        Self::Contiguous,
        Self::Spelled,
        Self::Permuted,
        Self::Padded,
        Self::Stepped,
        Self::Reversed,
        Self::Mixed,
    ];

    pub(crate) const INPUTS: [Self; 11] = [
        Self::Contiguous,
        Self::Spelled,
        Self::Permuted,
        Self::Padded,
        Self::Stepped,
        Self::Reversed,
        Self::Mixed,
        Self::ZeroFirst,
        Self::ZeroLast,
        Self::ZeroTail,
        Self::Fill,
    ];

    /// Whether neighbours along the last dimension share one element in memory.
    pub(crate) fn repeats_last(self, rank: usize) -> bool {
        match self {
            Self::ZeroLast | Self::Fill => true,
            Self::ZeroFirst => rank == 1,
            Self::ZeroTail => rank > 1,
            _ => false,
        }
    }

    /// Returns the strides of a tensor of this shape, in elements.
    fn strides(self, shape: &[usize]) -> Vec<isize> {
        let rank = shape.len();
        let mut order: Vec<usize> = (0..rank).collect();
        if matches!(self, Self::Permuted | Self::Mixed) && rank > 0 {
            order.rotate_left(1);
        }
        let mut strides = vec![0; rank];
        let mut step: usize = if self == Self::Stepped { 2 } else { 1 };
        for &axis in order.iter().rev() {
            strides[axis] = step.cast_signed();
            step *= shape[axis].max(1);
            step += match self {
                Self::Padded => 1,
                Self::Mixed => 2,
                Self::Stepped => step,
                _ => 0,
            };
        }
        for (axis, stride) in strides.iter_mut().enumerate() {
            match self {
                Self::Reversed => *stride = -*stride,
                Self::Mixed if axis % 2 == 0 => *stride = -*stride,
                Self::ZeroFirst if axis == 0 => *stride = 0,
                Self::ZeroLast if axis + 1 == rank => *stride = 0,
                Self::ZeroTail if axis > 0 => *stride = 0,
                Self::Fill => *stride = 0,
                _ => {}
            }
        }
        strides
    }
}

/// A tensor in memory, with marked gaps and margins.
#[derive(Clone, Debug)]
pub(crate) struct Strided<T> {
    pub(crate) buffer: Vec<T>,
    /// Position of element `[0, 0, ...]` in the buffer.
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
    contiguous: bool,
}

impl<T: Copy> Strided<T> {
    /// Stores `tensor` in a new buffer, with `margin` marks before and after it. Where elements
    /// share memory, the last value remains. [`Self::read`] returns the resulting tensor.
    pub(crate) fn new(
        tensor: &Tensor<T>,
        arrangement: Arrangement,
        margin: usize,
        mark: T,
    ) -> Self {
        let mut strided = Self::marked(&tensor.shape, arrangement, margin, mark);
        strided.write(tensor);
        strided
    }

    /// Creates a buffer of marks in which a tensor of this shape can be written.
    pub(crate) fn marked(
        shape: &[usize],
        arrangement: Arrangement,
        margin: usize,
        mark: T,
    ) -> Self {
        let shape = shape.to_vec();
        let strides = arrangement.strides(&shape);
        let mut low = 0;
        let is_empty = shape.contains(&0);
        let mut span = usize::from(!is_empty);
        for (&size, &stride) in shape.iter().zip(&strides).filter(|_| !is_empty) {
            let reach = (size - 1) * stride.unsigned_abs();
            span += reach;
            low += if stride < 0 { reach } else { 0 };
        }
        Self {
            buffer: vec![mark; margin + span + margin],
            offset: margin + low,
            shape,
            strides,
            contiguous: arrangement == Arrangement::Contiguous,
        }
    }

    /// Returns the positions of the elements in the buffer, in row-major order of the tensor.
    fn positions(&self) -> Vec<usize> {
        let mut positions = Vec::with_capacity(self.len());
        let rank = self.shape.len();
        let (outer, inner) = self.shape.split_at(rank.saturating_sub(1));
        let (len, step) = match inner {
            [len] => (*len, self.strides[rank - 1]),
            _ => (1, 0),
        };
        for index in ndindex(outer) {
            let outer = index.iter().zip(&self.strides);
            let first: isize = outer.map(|(i, stride)| i.cast_signed() * stride).sum();
            let mut position = self.offset.cast_signed() + first;
            for _ in 0..len {
                positions.push(position.cast_unsigned());
                position += step;
            }
        }
        positions
    }

    /// Returns the logical tensor.
    pub(crate) fn read(&self) -> Tensor<T> {
        if self.contiguous {
            let values = &self.buffer[self.offset..][..self.len()];
            return Tensor::new(&self.shape, values.to_vec());
        }
        let positions = self.positions().into_iter();
        let values = positions.map(|position| self.buffer[position]);
        Tensor::new(&self.shape, values.collect())
    }

    /// Replaces the logical tensor. Gaps and margins keep their values.
    pub(crate) fn write(&mut self, tensor: &Tensor<T>) {
        assert_eq!(self.shape, tensor.shape, "a tensor of the same shape");
        if self.contiguous {
            let len = self.len();
            self.buffer[self.offset..][..len].copy_from_slice(&tensor.values);
            return;
        }
        for (position, &value) in self.positions().into_iter().zip(&tensor.values) {
            self.buffer[position] = value;
        }
    }

    /// Returns a copy in which the logical tensor is replaced.
    pub(crate) fn with(&self, tensor: &Tensor<T>) -> Self {
        let mut copy = self.clone();
        copy.write(tensor);
        copy
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the address of element `[0, 0, ...]`, for tensors of a foreign runtime.
    pub(crate) fn first_mut(&mut self) -> *mut T {
        self.buffer.as_mut_ptr().wrapping_add(self.offset)
    }

    pub(crate) fn layout(&self) -> Layout<'_> {
        if self.contiguous {
            return Layout::contiguous(&self.shape);
        }
        Layout::strided(&self.shape, &self.strides).expect("one stride per dimension")
    }

    pub(crate) fn view(&self) -> TensorView<'_, T> {
        let view = if self.contiguous {
            let elements = &self.buffer[self.offset..][..self.len()];
            TensorView::contiguous(elements, &self.shape)
        } else {
            TensorView::strided(&self.buffer, self.offset, &self.shape, &self.strides)
        };
        view.expect("the buffer contains the tensor")
    }

    pub(crate) fn view_mut(&mut self) -> TensorViewMut<'_, T> {
        let len = self.len();
        let view = if self.contiguous {
            let elements = &mut self.buffer[self.offset..][..len];
            TensorViewMut::contiguous(elements, &self.shape)
        } else {
            TensorViewMut::strided(&mut self.buffer, self.offset, &self.shape, &self.strides)
        };
        view.expect("the buffer contains the tensor, and no elements overlap")
    }
}
