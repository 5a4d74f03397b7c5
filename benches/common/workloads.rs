//! Defines the workloads: typical scatters of language models, graph networks, point clouds
//! and array code. Data is f32 and indices are i64. Histograms have other element types.

#![allow(
    clippy::cast_possible_wrap,
    reason = "sizes of workloads are far from the limits of i64"
)]

use ndscatter::{DType, Reduction};

use super::random::Random;

/// Shapes, reduction and indices of one workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) operator: Operator,
    pub(crate) data: &'static [usize],
    pub(crate) indices: &'static [usize],
    pub(crate) reduction: Reduction,
    pub(crate) pattern: Pattern,
    /// Whether data is negative infinity everywhere, so that every update exceeds it. Otherwise
    /// data is random.
    pub(crate) starts_lowest: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operator {
    Nd,
    Update { axis: usize },
}

/// Distribution of destinations.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pattern {
    /// Distinct destinations, in random order.
    Unique,
    /// Uniformly random destinations.
    Uniform,
    /// Random destinations. Lower numbers are much more frequent.
    Zipf,
    /// All destinations, with equal frequency, in random order.
    Even,
    /// For each position on the first axis, consecutive positions on the second axis from a
    /// random start on.
    Stretches,
}

#[rustfmt::skip] // A table.
pub(crate) const WORKLOADS: [Workload; 15] = {
    use Pattern::{Even, Stretches, Uniform, Unique, Zipf};
    use Reduction::{Add, Max, None};
    [
        // Overhead of a call, and a small call with some work.
        nd("tiny", &[8], &[4, 1], None, Unique),
        nd("small_add", &[256, 64], &[128, 1], Add, Uniform),
        // KV cache of a language model: one token per sequence, then one prompt per sequence.
        nd("kv_decode", &[16, 2048, 1024], &[16, 2], None, Stretches),
        nd("kv_prefill", &[4, 4096, 1024], &[4, 2048, 2], None, Stretches),
        // An embedding table, and its gradient.
        nd("emb_update", &[500_000, 64], &[65_536, 1], None, Unique),
        nd("emb_grad_add", &[200_000, 64], &[262_144, 1], Add, Zipf),
        // Messages along the edges of a graph.
        nd("gnn_add", &[169_343, 64], &[1_166_243, 1], Add, Uniform),
        nd("gnn_max", &[169_343, 64], &[1_166_243, 1], Max, Uniform),
        // A mixture of experts: four updates of every row.
        nd("moe_add", &[2048, 2048], &[8192, 1], Add, Even),
        // Points of a cloud, combined into voxels.
        nd("voxel_max", &[100_000, 64], &[400_000, 1], Max, Uniform).starting_lowest(),
        // Single elements.
        nd("elem_unique", &[16_777_216], &[4_194_304, 1], None, Unique),
        nd("elem_random_add", &[16_777_216], &[4_194_304, 1], Add, Uniform),
        nd("histogram_add", &[1024], &[4_194_304, 1], Add, Uniform),
        // The examples in OpenVINO's specification of the operators. The second has a tenth of
        // the repetitions.
        nd("seed_nd", &[1000, 256, 10, 15], &[25, 125, 3], None, Unique),
        update("seed_update", &[100, 256, 10, 15], &[125, 20], 1, None, Uniform),
    ]
};

pub(crate) const fn nd(
    name: &'static str,
    data: &'static [usize],
    indices: &'static [usize],
    reduction: Reduction,
    pattern: Pattern,
) -> Workload {
    Workload {
        name,
        operator: Operator::Nd,
        data,
        indices,
        reduction,
        pattern,
        starts_lowest: false,
    }
}

pub(crate) const fn update(
    name: &'static str,
    data: &'static [usize],
    indices: &'static [usize],
    axis: usize,
    reduction: Reduction,
    pattern: Pattern,
) -> Workload {
    Workload {
        operator: Operator::Update { axis },
        ..nd(name, data, indices, reduction, pattern)
    }
}

impl Workload {
    const fn starting_lowest(self) -> Self {
        Self {
            starts_lowest: true,
            ..self
        }
    }

    /// Returns the axes of `data` that a tuple addresses.
    pub(crate) fn indexed_axes(&self) -> std::ops::Range<usize> {
        match self.operator {
            Operator::Nd => 0..*self.indices.last().expect("rank 1 or more"),
            Operator::Update { axis } => axis..axis + 1,
        }
    }

    /// Returns the shape of the list of tuples.
    pub(crate) fn tuple_shape(&self) -> &'static [usize] {
        match self.operator {
            Operator::Nd => &self.indices[..self.indices.len() - 1],
            Operator::Update { .. } => self.indices,
        }
    }

    pub(crate) fn tuples(&self) -> usize {
        self.tuple_shape().iter().product()
    }

    /// Returns the number of repetitions: how many times every tuple is applied.
    pub(crate) fn repetitions(&self) -> usize {
        self.data[..self.indexed_axes().start].iter().product()
    }

    /// Returns the number of destinations of one repetition.
    pub(crate) fn slices(&self) -> usize {
        self.data[self.indexed_axes()].iter().product()
    }

    /// Returns the elements of a window.
    pub(crate) fn window(&self) -> usize {
        self.data[self.indexed_axes().end..].iter().product()
    }

    pub(crate) fn updates_shape(&self) -> Vec<usize> {
        let axes = self.indexed_axes();
        [
            &self.data[..axes.start],
            self.tuple_shape(),
            &self.data[axes.end..],
        ]
        .concat()
    }

    /// Makes one index set.
    pub(crate) fn coordinates(&self, random: &mut Random) -> Vec<i64> {
        let (tuples, slices) = (self.tuples(), self.slices());
        let numbers = match self.pattern {
            Pattern::Unique => random.distinct(tuples, slices),
            Pattern::Uniform => random.uniform(tuples, slices),
            Pattern::Zipf => random.zipf(tuples, slices, 1.2),
            Pattern::Even => (random.distinct(tuples, tuples).into_iter())
                .map(|number| number % slices)
                .collect(),
            Pattern::Stretches => self.stretches(random),
        };
        let sizes = &self.data[self.indexed_axes()];
        let mut indices = vec![0; tuples * sizes.len()];
        for (number, tuple) in numbers.iter().zip(indices.chunks_exact_mut(sizes.len())) {
            let mut rest = *number;
            for (index, size) in tuple.iter_mut().zip(sizes).rev() {
                *index = (rest % size) as i64;
                rest /= size;
            }
        }
        indices
    }

    fn stretches(&self, random: &mut Random) -> Vec<usize> {
        let (sequences, positions) = (self.data[0], self.data[1]);
        let len = self.tuples() / sequences;
        (0..sequences)
            .flat_map(|sequence| {
                let first = sequence * positions + random.below(positions - len + 1);
                first..first + len
            })
            .collect()
    }
}

/// A workload that counts keys in few bins, or keeps the largest value of each bin. Partial
/// results of its type merge to the bits of the reference loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Histogram {
    pub(crate) dtype: DType,
    pub(crate) workload: Workload,
}

/// Sums and maxima. Bins are few, or fill part of a second-level cache. Their frequencies are
/// even or skewed.
pub(crate) const HISTOGRAMS: [Histogram; 8] = {
    use DType::{I32, I64, U8, U32};
    use Pattern::{Uniform, Zipf};
    use Reduction::{Add, Max};
    [
        histogram("histogram_u8", U8, &[256], Add, Uniform),
        histogram("histogram_u8_zipf", U8, &[256], Add, Zipf),
        histogram("histogram_u32", U32, &[1000], Add, Uniform),
        histogram("histogram_u32_zipf", U32, &[1000], Add, Zipf),
        histogram("histogram_u32_many", U32, &[65_536], Add, Uniform),
        histogram("histogram_i64", I64, &[1000], Add, Uniform),
        histogram("maxima_i32", I32, &[1000], Max, Uniform),
        histogram("maxima_i32_many", I32, &[65_536], Max, Uniform),
    ]
};

const fn histogram(
    name: &'static str,
    dtype: DType,
    bins: &'static [usize],
    reduction: Reduction,
    pattern: Pattern,
) -> Histogram {
    Histogram {
        dtype,
        workload: nd(name, bins, &[4_000_000, 1], reduction, pattern),
    }
}
