//! The table of cases. Each function is a group of rows and becomes one test.
//!
//! A row sets only the fields that differ from another row. The defaults are in `PLAIN`: a one-shot
//! sum over contiguous tensors. To test a new dtype, reduction, operator, or threshold of a
//! schedule, add a row, or add an entry to the `values` of a row.

use ndscatter::Reduction::{Add, Max, Mean, Min, Mul, Sub};
use ndscatter::{Accumulate, Bounds, CacheMode, Reduction, Schedule};

use crate::common::api::DType::{
    self, BF16, Bool, Complex64, Complex128, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64,
};
use crate::common::destinations::{Destinations, index_types};
use crate::common::elements::Palette;
use crate::common::layouts::Arrangement;
use crate::common::operators::Operator::{self, Cache, Elements, Nd, Update};

use Destinations::{Consecutive, Distinct, Few, One, Random, Skewed, Spread, Together};

/// The reduction that replaces elements.
const NONE: Reduction = Reduction::None;

/// Amount of work of a case. It decides which calls run the case: see [`super::runner`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Size {
    /// One of hundreds of cases, for calls that are not divided among workers.
    Tiny,
    /// Numbers of tuples, rows and columns that can be below the number of workers.
    Small,
    /// Some milliseconds per run.
    Medium,
    /// Large enough that the crate divides the work.
    Large,
    /// Larger than the caches.
    Huge,
}

/// A scatter, without the values of its tensors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) operator: Operator,
    pub(super) data: &'static [usize],
    pub(super) indices: &'static [usize],
    /// Reductions and dtypes. Each entry is one case over the same indices.
    pub(super) values: &'static [(Reduction, DType)],
    pub(super) size: Size,
    pub(super) destinations: Destinations,
    /// Number of leading dims along which the indices of `scatter_elements` differ. Along the other
    /// dims, each index is repeated.
    pub(super) differ: usize,
    /// Number of elements near the end that differ although the row repeats one index.
    pub(super) exceptions: usize,
    /// Layout of data, updates and output.
    pub(super) layout: Arrangement,
    pub(super) indices_layout: Arrangement,
    pub(super) index: DType,
    /// One of this many indices counts from the end. 0: no index does.
    pub(super) from_end: usize,
    /// Rule for indices out of bounds. If they are not an error, one index in 20 is out of bounds.
    pub(super) bounds: Bounds,
    pub(super) include_self: bool,
    pub(super) accumulate: Accumulate,
    /// Kind of values. `None`: values that suit the reduction and the dtype.
    pub(super) palette: Option<Palette>,
    /// Number of workers, and the schedule and the number of tasks that the crate must choose in
    /// place. Huge cases check the choice out of place too.
    pub(super) chosen: Option<(usize, Schedule, usize)>,
}

const PLAIN: Case = Case {
    operator: Nd,
    data: &[],
    indices: &[],
    values: &[(Add, F32)],
    size: Size::Small,
    destinations: Skewed,
    differ: usize::MAX,
    exceptions: 0,
    layout: Arrangement::Contiguous,
    indices_layout: Arrangement::Contiguous,
    index: I32,
    from_end: 0,
    bounds: Bounds::Error,
    include_self: true,
    accumulate: Accumulate::Native,
    palette: None,
    chosen: None,
};

// Many sizes of small cases are primes, so that no number of workers divides them.

/// Rows of more than a cache line.
pub(super) const ROWS: Case = Case {
    data: &[211, 67],
    indices: &[1009, 1],
    values: &[
        (Add, F32),
        (NONE, F64),
        (Max, I16),
        (Mean, F32),
        (Add, BF16),
    ],
    ..PLAIN
};

/// Rows of less than a cache line.
pub(super) const SHORT_ROWS: Case = Case {
    data: &[1009, 3],
    indices: &[2003, 1],
    values: &[(Sub, F32), (NONE, U8), (Mul, U8), (Mean, F32)],
    ..PLAIN
};

/// Rows of 256 bytes in `f32`: messages of a graph.
pub(super) const MORE_ROWS: Case = Case {
    data: &[1500, 64],
    indices: &[4000, 1],
    values: &[
        (Add, F32),
        (Sub, F64),
        (NONE, F32),
        (Max, F32),
        (Mean, F32),
        (Add, BF16),
        (Mul, Complex64),
    ],
    size: Size::Medium,
    ..PLAIN
};

/// Windows that are not contiguous.
pub(super) const SCATTERED_WINDOWS: Case = Case {
    data: &[53, 7, 11],
    indices: &[307, 1],
    values: &[(Add, F64), (NONE, F32)],
    layout: Arrangement::Mixed,
    ..PLAIN
};

/// Fewer tuples, rows and columns than workers.
pub(super) const FEW_ROWS: Case = Case {
    data: &[3, 5],
    indices: &[7, 1],
    values: &[(Add, F32), (Mean, F32), (Sub, F32)],
    ..PLAIN
};

/// Single elements, with many and with few destinations.
pub(super) const ELEMENTS: Case = Case {
    data: &[71, 73],
    indices: &[10_007, 2],
    values: &[(Add, F32), (NONE, I16), (Max, F32), (Mean, F32), (Add, F16)],
    ..PLAIN
};
pub(super) const HISTOGRAM: Case = Case {
    data: &[37],
    indices: &[10_007, 1],
    values: &[(Mul, F64), (Add, I32), (Mul, U8)],
    ..PLAIN
};
pub(super) const DISTINCT_ELEMENTS: Case = Case {
    data: &[20_011],
    indices: &[10_007, 1],
    values: &[(Sub, F32), (NONE, F32)],
    destinations: Distinct,
    ..PLAIN
};

/// Repetitions before the axis, fewer than workers.
pub(super) const FEW_BATCHES: Case = Case {
    operator: Update { axis: 1 },
    data: &[5, 41, 11],
    indices: &[97],
    values: &[(Add, F32), (NONE, U16)],
    ..PLAIN
};

/// One index per element. The tuples of different rows of updates have different destinations.
pub(super) const ALONG_ROWS: Case = Case {
    operator: Elements { axis: 1 },
    data: &[101, 31],
    indices: &[89, 43],
    values: &[(Add, F32), (NONE, I8), (NONE, U8)],
    ..PLAIN
};

/// A write of 23 positions for each sequence of a cache.
pub(super) const CACHE: Case = Case {
    operator: Cache {
        axis: 2,
        mode: CacheMode::Circular,
        len: 23,
    },
    data: &[7, 3, 41, 5],
    indices: &[7],
    values: &[(NONE, F32)],
    destinations: Random,
    ..PLAIN
};

pub(super) fn rows() -> Vec<Case> {
    let consecutive = Case {
        values: &[(NONE, F32), (Add, F32)],
        destinations: Consecutive,
        data: &[1201, 67],
        ..ROWS
    };
    vec![ROWS, SHORT_ROWS, SCATTERED_WINDOWS, MORE_ROWS, consecutive]
}

/// Sorted rows, where the duplicates of a destination are adjacent, and rows without duplicates.
pub(super) fn rows_in_order() -> Vec<Case> {
    let sums_and_moves: &[_] = &[(Add, F32), (NONE, I16)];
    let sorted = |case: Case| Case {
        destinations: Together,
        values: sums_and_moves,
        ..case
    };
    vec![
        Case {
            values: &[(Add, F32), (NONE, I16), (Mul, U8), (Mean, F32)],
            ..sorted(ROWS)
        },
        sorted(SHORT_ROWS),
        sorted(SCATTERED_WINDOWS),
        Case {
            data: &[2, 131],
            indices: &[331, 1],
            values: &[(Add, F32), (NONE, I16), (Min, F32), (Mean, F32)],
            destinations: One,
            ..PLAIN
        },
        Case {
            data: &[5003, 3],
            indices: &[1009, 1],
            values: &[(Add, F32), (NONE, I64)],
            destinations: Distinct,
            ..PLAIN
        },
    ]
}

pub(super) fn fewer_of_everything_than_workers() -> Vec<Case> {
    vec![
        FEW_ROWS,
        Case {
            data: &[3, 4001],
            indices: &[5, 1],
            ..PLAIN
        },
        Case {
            data: &[4001, 5],
            indices: &[3, 1],
            values: &[(Add, F64), (NONE, I8)],
            destinations: Distinct,
            ..PLAIN
        },
        // No tuples.
        Case {
            data: &[101, 13],
            indices: &[0, 1],
            values: &[(Add, F32), (NONE, F32)],
            ..PLAIN
        },
    ]
}

pub(super) fn elements() -> Vec<Case> {
    let together = Case {
        values: &[(Add, F32), (NONE, F64)],
        destinations: Together,
        ..PLAIN
    };
    vec![
        ELEMENTS,
        DISTINCT_ELEMENTS,
        Case {
            values: &[(Add, F32), (NONE, F64), (Mean, F32)],
            data: ELEMENTS.data,
            indices: ELEMENTS.indices,
            ..together
        },
        Case {
            data: &[17],
            indices: &[5003, 1],
            values: &[(Add, F32), (NONE, F64), (Mul, U16)],
            destinations: One,
            ..PLAIN
        },
        Case {
            data: &[40, 50, 30],
            indices: &[150_000, 3],
            values: &[
                (Add, F32),
                (NONE, F64),
                (NONE, U8),
                (Min, F64),
                (Mean, I16),
                (Add, F16),
            ],
            size: Size::Medium,
            ..PLAIN
        },
    ]
}

/// Wide rows. Most of them have one destination.
pub(super) fn wide_rows() -> Vec<Case> {
    vec![Case {
        data: &[20, 5000],
        indices: &[60, 1],
        values: &[(Add, F32), (Mul, I64), (Sub, I16)],
        size: Size::Medium,
        ..PLAIN
    }]
}

/// Repetitions before the axis.
pub(super) fn batches() -> Vec<Case> {
    vec![
        FEW_BATCHES,
        Case {
            operator: Update { axis: 2 },
            data: &[11, 13, 19, 3],
            indices: &[3, 7],
            values: &[(Add, F32), (NONE, F64), (Mean, F32)],
            ..PLAIN
        },
        Case {
            operator: Update { axis: 1 },
            data: &[24, 100, 40],
            indices: &[15, 20],
            values: &[(NONE, I16), (Add, F32), (Sub, Bool)],
            destinations: Random,
            size: Size::Medium,
            ..PLAIN
        },
        Case {
            operator: Update { axis: 1 },
            data: &[24, 100, 40],
            indices: &[15, 20],
            values: &[(Mean, F64)],
            destinations: Random,
            palette: Some(Palette::Wild),
            size: Size::Medium,
            ..PLAIN
        },
    ]
}

/// One index per element.
pub(super) fn element_scatters() -> Vec<Case> {
    vec![
        ALONG_ROWS,
        // Fewer rows than workers, and one row.
        Case {
            data: &[6, 211],
            indices: &[5, 1009],
            values: &[(Add, F32)],
            ..ALONG_ROWS
        },
        Case {
            operator: Elements { axis: 0 },
            data: &[1009],
            indices: &[4001],
            values: &[(Add, F32), (Mean, F32)],
            ..PLAIN
        },
        // No index addresses the last columns of data.
        Case {
            operator: Elements { axis: 0 },
            data: &[300, 150],
            indices: &[900, 140],
            values: &[(Add, F32), (NONE, U16), (Mean, F32)],
            size: Size::Medium,
            ..PLAIN
        },
    ]
}

/// Many updates of few elements. Some reductions may combine partial results.
pub(super) fn histograms() -> Vec<Case> {
    // Enough tuples for copies of the output. Their number is not a multiple of the number of
    // workers.
    let many = |data: &'static [usize], index, from_end, values| Case {
        data,
        indices: &[300_007, 1],
        index,
        from_end,
        values,
        size: Size::Large,
        chosen: (data[0] <= 1000).then_some((8, Schedule::Private, 8)),
        ..PLAIN
    };
    let mut cases = vec![
        HISTOGRAM,
        Case {
            values: &[(Add, F32), (NONE, F64), (Add, I32)],
            destinations: Together,
            ..HISTOGRAM
        },
        Case {
            data: &[10, 20],
            indices: &[150_000, 2],
            values: &[(Add, I32), (Mul, U8), (Max, F32), (Sub, Bool)],
            size: Size::Medium,
            ..PLAIN
        },
        many(&[256], I64, 50, &[(Min, F32)]),
        // Partial sums of floats would round differently, so the schedule is serial.
        Case {
            chosen: Some((8, Schedule::Serial, 1)),
            ..many(&[256], I64, 50, &[(Add, F32)])
        },
        many(&[256], I32, 0, &[(Max, F32)]),
        many(&[1000], I32, 50, &[(Mul, U32)]),
        many(&[40_000], I64, 50, &[(Min, F32)]),
        many(&[40_000], I32, 0, &[(Max, F32)]),
        // Copies that all workers merge, also in a one-shot call.
        many(&[60_000], I64, 50, &[(Max, F64), (Add, U64)]),
    ];
    for data in [&[1][..], &[256], &[1000], &[40_000]] {
        cases.extend([
            many(data, I64, 0, &[(Add, U8)]),
            many(data, I32, 0, &[(Add, U32)]),
            many(data, I64, 50, &[(Sub, I64)]),
            many(data, I32, 50, &[(Max, I32)]),
        ]);
    }
    cases
}

pub(super) fn caches() -> Vec<Case> {
    let (linear, circular) = (CacheMode::Linear, CacheMode::Circular);
    let large = |axis, mode, data, indices, len| Case {
        operator: Cache { axis, mode, len },
        data,
        indices,
        size: Size::Large,
        ..CACHE
    };
    let paged = |layout, destinations| Case {
        operator: Operator::Paged,
        data: &[61, 16, 9, 5],
        indices: &[777],
        values: &[(NONE, F32), (Add, F32), (Max, I32), (Mean, F32)],
        destinations,
        layout,
        size: Size::Large,
        ..PLAIN
    };
    vec![
        CACHE,
        large(-2, linear, &[32, 4, 300, 4], &[32], 80),
        large(-2, circular, &[32, 4, 300, 4], &[32], 80),
        large(1, circular, &[6, 200, 128], &[6], 90),
        large(2, linear, &[40, 3, 600], &[40], 590),
        large(2, circular, &[40, 3, 600], &[40], 590),
        // Slots of a paged cache, in memory in the order of the shape and in another order.
        paged(Arrangement::Contiguous, Distinct),
        paged(Arrangement::Contiguous, Random),
        paged(Arrangement::Permuted, Random),
        // A write of all positions.
        large(1, circular, &[16, 50, 90], &[16], 50),
        Case {
            values: &[(NONE, F64)],
            chosen: Some((8, Schedule::ByTuple, 8)),
            ..large(2, circular, &[32, 4, 320, 64], &[32], 200)
        },
    ]
}

/// More tuples than the output has elements. Such calls may be applied block by block before the
/// last index has been read.
pub(super) fn long_lists() -> Vec<Case> {
    const EVERYTHING: &[(Reduction, DType)] = &[
        (NONE, F32),
        (Add, F32),
        (Sub, F32),
        (Mul, F32),
        (Min, F32),
        (Max, F32),
        (Add, F64),
        (NONE, I8),
        (Add, I8),
        (Mul, I8),
        (Max, I8),
        (Add, U64),
        (Min, U64),
        (NONE, Bool),
        (Add, Bool),
        (Mul, Bool),
        (Add, BF16),
        (NONE, Complex128),
        (Add, Complex128),
        (Mul, Complex128),
    ];
    // Several blocks and a part of one. The tuples address every axis.
    let shapes: [(&[usize], [&[usize]; 4]); 5] = [
        (&[1], [&[513, 1], &[1024, 1], &[1500, 1], &[5000, 1]]),
        (&[7], [&[513, 1], &[1024, 1], &[1500, 1], &[5000, 1]]),
        (&[9, 5], [&[513, 2], &[1024, 2], &[1500, 2], &[5000, 2]]),
        (&[2, 3, 4], [&[513, 3], &[1024, 3], &[1500, 3], &[5000, 3]]),
        (&[], [&[513, 0], &[1024, 0], &[1500, 0], &[5000, 0]]),
    ];
    let mut cases = Vec::new();
    for (data, lists) in shapes {
        // Indices that count from the end: none, in some blocks, in all blocks.
        for from_end in [0, 700, 3] {
            cases.extend(lists.map(|indices| Case {
                data,
                indices,
                values: EVERYTHING,
                index: I64,
                from_end,
                size: Size::Tiny,
                ..PLAIN
            }));
        }
    }
    for index in index_types() {
        cases.extend([0, 700, 3].map(|from_end| Case {
            data: &[7],
            indices: &[1500, 1],
            index,
            from_end,
            size: Size::Tiny,
            ..PLAIN
        }));
    }
    cases
}

/// Tens of thousands of updates. One index in three counts from the end.
const MANY: Case = Case {
    from_end: 3,
    size: Size::Large,
    ..PLAIN
};

/// Each element has a separate index along axis 0.
const FREE: Case = Case {
    operator: Elements { axis: 0 },
    data: &[300, 900],
    indices: &[70, 900],
    ..MANY
};

/// Row scatters as element scatters: each row repeats its index at every element.
const WRITTEN_OUT: Case = Case {
    operator: Elements { axis: 0 },
    data: &[3600, 64],
    indices: &[1000, 64],
    differ: 1,
    ..MANY
};

/// Messages of a graph.
const MESSAGES: Case = Case {
    data: &[300, 64],
    indices: &[1000, 1],
    ..MANY
};

/// Single elements, with fewer updates than elements.
const LINE: Case = Case {
    operator: Elements { axis: 0 },
    data: &[220_000],
    indices: &[60_000],
    ..MANY
};

/// Single elements, with many more updates than elements.
const COUNTS: Case = Case {
    data: &[1000],
    ..LINE
};

/// Lists of single elements, with further dims of size 1.
pub(super) fn one_lane() -> Vec<Case> {
    let line = Case {
        operator: Elements { axis: 1 },
        data: &[1, 220_000, 1],
        indices: &[1, 60_000, 1],
        values: &[(Add, F32), (NONE, F64), (Max, I32)],
        ..MANY
    };
    let counts = Case {
        operator: Elements { axis: 0 },
        data: &[1000, 1],
        indices: &[60_000, 1],
        ..line
    };
    // One lane of several.
    let column = Case {
        data: &[9000, 3],
        ..counts
    };
    vec![line, counts, column]
}

pub(super) fn independent_elements() -> Vec<Case> {
    vec![
        FREE,
        Case {
            operator: Elements { axis: -1 },
            data: &[300, 2000],
            indices: &[145, 2500],
            values: &[(NONE, F64)],
            chosen: Some((8, Schedule::LastWrite, 8)),
            ..MANY
        },
        Case {
            operator: Elements { axis: 1 },
            data: &[40, 90, 20],
            indices: &[33, 110, 19],
            values: &[(Sub, F32)],
            ..MANY
        },
        Case {
            values: &[(Add, F32), (NONE, F64), (Min, F64), (Mean, F32)],
            ..LINE
        },
        // Data that is larger than the caches.
        Case {
            data: &[3000, 1450],
            indices: &[200, 1450],
            destinations: Random,
            chosen: Some((8, Schedule::ByPartition, 8)),
            ..FREE
        },
    ]
}

pub(super) fn rows_as_elements() -> Vec<Case> {
    let with_exceptions = |exceptions| Case {
        exceptions,
        ..WRITTEN_OUT
    };
    vec![
        Case {
            values: &[(Add, F32), (NONE, F32), (Mean, F32)],
            ..WRITTEN_OUT
        },
        Case {
            indices: &[25_000, 64],
            values: &[(Add, F64)],
            chosen: Some((8, Schedule::ByDestination, 8)),
            ..WRITTEN_OUT
        },
        // Windows that are smaller than the rows of data.
        Case {
            data: &[3000, 80],
            values: &[(Max, F32)],
            ..WRITTEN_OUT
        },
        Case {
            operator: Elements { axis: 1 },
            data: &[9, 500, 10, 20],
            indices: &[8, 80, 7, 20],
            differ: 2,
            ..MANY
        },
        // Indices that repeat along the last dim only.
        Case {
            operator: Elements { axis: 0 },
            data: &[120, 30, 64],
            indices: &[35, 30, 64],
            values: &[(Add, I32)],
            differ: 2,
            ..MANY
        },
        // One, three or 20 elements near the end have an index that differs from their row.
        with_exceptions(1),
        with_exceptions(3),
        with_exceptions(20),
    ]
}

pub(super) fn rows_by_stride_0() -> Vec<Case> {
    let mut cases = Vec::new();
    for indices_layout in [Arrangement::ZeroLast, Arrangement::ZeroTail] {
        cases.extend([
            Case {
                indices_layout,
                ..WRITTEN_OUT
            },
            Case {
                operator: Elements { axis: 0 },
                data: &[300, 12, 64],
                indices: &[100, 11, 60],
                values: &[(Mean, F32)],
                indices_layout,
                ..MANY
            },
        ]);
    }
    // One index for all batches.
    cases.push(Case {
        operator: Elements { axis: 1 },
        data: &[50, 100, 60],
        indices: &[50, 220, 60],
        indices_layout: Arrangement::ZeroFirst,
        chosen: Some((8, Schedule::ByBatch, 8)),
        ..MANY
    });
    cases
}

/// Sums of integers, minima and maxima may combine partial results. Sums of floats may not.
pub(super) fn large_histograms() -> Vec<Case> {
    let many = Case {
        indices: &[210_000],
        ..COUNTS
    };
    let in_parts = Case {
        chosen: Some((8, Schedule::Private, 8)),
        ..many
    };
    vec![
        Case {
            values: &[(Add, I32), (Max, F32), (Min, F64)],
            ..in_parts
        },
        Case {
            data: &[20, 50],
            indices: &[300_007, 2],
            operator: Nd,
            values: &[(Mul, U32)],
            ..in_parts
        },
        Case {
            operator: Update { axis: 0 },
            data: &[120, 4],
            indices: &[300_007],
            values: &[(Add, I32)],
            ..in_parts
        },
        Case {
            chosen: Some((8, Schedule::Serial, 1)),
            ..many
        },
        Case {
            values: &[(Mean, F32)],
            chosen: Some((8, Schedule::Grouped, 8)),
            ..many
        },
    ]
}

/// Reductions that need all updates of a destination together.
pub(super) fn groups() -> Vec<Case> {
    let alone = |values, case: Case| Case {
        values,
        include_self: false,
        ..case
    };
    let wide = |values, case: Case| Case {
        values,
        accumulate: Accumulate::Wide,
        ..case
    };
    vec![
        Case {
            indices: &[25_000, 1],
            values: &[(Mean, F64)],
            chosen: Some((8, Schedule::Grouped, 8)),
            ..MESSAGES
        },
        Case {
            operator: Update { axis: 1 },
            data: &[20, 100, 32],
            indices: &[100],
            values: &[(Mean, F64)],
            ..MANY
        },
        alone(&[(Mean, I32), (Add, F32)], MESSAGES),
        alone(&[(Sub, F32)], LINE),
        alone(&[(Max, F32), (Sub, F32)], COUNTS),
        wide(&[(Add, F16), (Mean, BF16)], MESSAGES),
        wide(&[(Sub, BF16)], LINE),
    ]
}

pub(super) fn skipped_and_clamped() -> Vec<Case> {
    let bounded = |bounds, values, case: Case| Case {
        bounds,
        values,
        ..case
    };
    let (skip, clamp) = (Bounds::Skip, Bounds::Clamp);
    let sum: &[_] = &[(Add, F32)];
    vec![
        bounded(skip, sum, FREE),
        bounded(skip, sum, WRITTEN_OUT),
        bounded(skip, &[(Add, F32), (Mean, F32)], MESSAGES),
        bounded(clamp, sum, WRITTEN_OUT),
        bounded(clamp, sum, LINE),
        bounded(skip, &[(Add, I32)], COUNTS),
        bounded(clamp, &[(Add, I32)], COUNTS),
        Case {
            data: &[3600, 64],
            indices: &[27_000, 1],
            chosen: Some((8, Schedule::ByDestination, 8)),
            ..bounded(skip, &[(Add, F64)], MESSAGES)
        },
    ]
}

/// The schedule that the crate chooses on two workers.
pub(super) fn chosen_schedules() -> Vec<Case> {
    let tasks = |schedule| match schedule {
        Schedule::Serial => 1,
        _ => 2,
    };
    let chosen = |schedule, data, indices, destinations, values| Case {
        data,
        indices,
        values,
        destinations,
        size: Size::Large,
        chosen: Some((2, schedule, tasks(schedule))),
        ..PLAIN
    };
    let (sum, moves): (&[_], &[_]) = (&[(Add, F64)], &[(NONE, F64)]);
    let (rows, line): (&[_], &[_]) = (&[2003, 67], &[3_000_017]);
    let (many, few): (&[_], &[_]) = (&[30_011, 1], &[250_007, 1]);
    vec![
        chosen(Schedule::ByDestination, rows, many, Skewed, sum),
        chosen(Schedule::ByPartition, rows, many, Together, sum),
        chosen(Schedule::LastWrite, rows, many, Skewed, moves),
        chosen(Schedule::Serial, rows, &[5003, 1], Skewed, sum),
        chosen(Schedule::ByDestination, &[401, 67], many, Skewed, sum),
        chosen(Schedule::Serial, rows, many, One, sum),
        chosen(
            Schedule::ByTuple,
            &[29_009, 67],
            &[25_013, 1],
            Distinct,
            moves,
        ),
        chosen(
            Schedule::ByDestination,
            &[1009, 503],
            &[4003, 1],
            Skewed,
            sum,
        ),
        chosen(Schedule::ByColumn, &[5, 300_007], &[7, 1], One, sum),
        // Nothing to apply, but much to copy.
        chosen(Schedule::Serial, &[60_013, 17], &[0, 1], Skewed, sum),
        Case {
            operator: Update { axis: 1 },
            ..chosen(Schedule::ByBatch, &[67, 41, 101], &[347], Skewed, sum)
        },
        chosen(Schedule::ByPartition, line, few, Distinct, sum),
        chosen(Schedule::ByPartition, line, few, Random, sum),
        chosen(Schedule::ByTuple, line, few, Together, sum),
        chosen(
            Schedule::Private,
            &[199],
            &[300_007, 1],
            Skewed,
            &[(Add, I64)],
        ),
        chosen(Schedule::Serial, &[300_007], &[300_007, 1], One, sum),
        Case {
            operator: Elements { axis: 1 },
            ..chosen(Schedule::ByTuple, &[101, 997], &[89, 3001], Skewed, sum)
        },
    ]
}

const HUGE: Case = Case {
    index: I64,
    size: Size::Huge,
    ..PLAIN
};

/// Outputs of 16 MiB may be written by streaming stores, in whole cache lines. Here rows begin and
/// end inside a cache line, and so does the output. No byte outside the row may change.
pub(super) fn outputs_larger_than_caches() -> Vec<Case> {
    let mut cases = Vec::new();
    for layout in [
        Arrangement::Contiguous,
        Arrangement::Padded,
        Arrangement::Reversed,
    ] {
        let some_rows = Case {
            data: &[2100, 1001],
            indices: &[300, 1],
            values: &[(NONE, I64), (Add, I64)],
            layout,
            size: Size::Large,
            ..PLAIN
        };
        let none = Case {
            indices: &[0, 1],
            values: &[(NONE, I64)],
            ..some_rows
        };
        cases.extend([some_rows, none]);
    }
    // In place, with an equal amount of writes.
    cases.push(Case {
        indices: &[3000, 1],
        values: &[(NONE, I64)],
        destinations: Random,
        layout: Arrangement::Padded,
        ..cases[0]
    });
    cases
}

/// At least 16 MiB of rows that are far apart, written in place. Neither rows nor tables begin or
/// end with cache lines.
pub(super) fn rows_that_are_streamed() -> Vec<Case> {
    let table = |data, destinations| Case {
        data,
        indices: &[66_000, 1],
        values: &[(NONE, U8)],
        destinations,
        ..HUGE
    };
    let (whole_lines, odd): (&[_], &[_]) = (&[290_000, 256], &[290_000, 277]);
    vec![
        table(whole_lines, Distinct),
        table(whole_lines, Random),
        table(odd, Distinct),
        table(odd, Random),
    ]
}

/// Rows of a graph in random order, over a table that is larger than the caches.
pub(super) fn large_tables() -> Vec<Case> {
    let shapes: [&[usize]; 4] = [&[750_000, 8], &[375_000, 16], &[93_750, 64], &[60_000, 100]];
    let table = |data| Case {
        data,
        indices: &[200_000, 1],
        values: &[(Add, F32), (Max, F32)],
        destinations: Random,
        chosen: Some((2, Schedule::ByDestination, 2)),
        ..HUGE
    };
    shapes.map(table).into()
}

/// A few rows have most or all of the tuples: the first rows, rows spread over the table, or 40
/// adjacent rows.
pub(super) fn skewed_tables() -> Vec<Case> {
    let shapes: [&[usize]; 3] = [&[3_000_000, 1], &[187_500, 16], &[46_875, 64]];
    let mut cases = Vec::new();
    for data in shapes {
        cases.extend([Skewed, Spread, Few].map(|destinations| Case {
            data,
            indices: &[140_000, 1],
            values: &[(Add, F32), (Max, F32)],
            destinations,
            ..HUGE
        }));
    }
    cases
}
