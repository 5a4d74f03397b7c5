//! Moves of rows within tensors. Results are compared with a naive reference that copies all old
//! rows first.

#![allow(
    unsafe_code,
    reason = "views of foreign memory are made by unsafe calls"
)]

use bytemuck::Pod;
use ndscatter::{
    AnyViewMut, Bounds, DType, Duplicates, Element, Execution, Index, Indices, Layout, Machine,
    MoveRows, ScatterError, TensorView, TensorViewMut,
};

use crate::common::Tensor;
use crate::common::elements;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::pools::{OmitsOne, Workers};
use crate::common::random::Random;

/// Which slices are rows.
#[derive(Clone, Copy, Debug)]
enum Rows {
    Along(usize),
    Paged,
}

impl Rows {
    /// Returns the sizes of the dims before, of, and after the rows.
    fn sizes(self, shape: &[usize]) -> [usize; 3] {
        let axes = match self {
            Self::Along(axis) => axis..axis + 1,
            Self::Paged => 0..2,
        };
        [
            &shape[..axes.start],
            &shape[axes.clone()],
            &shape[axes.end..],
        ]
        .map(|sizes| sizes.iter().product())
    }

    fn builder(self) -> MoveRows<'static> {
        match self {
            Self::Along(axis) => MoveRows::along(axis.cast_signed()),
            Self::Paged => MoveRows::paged(),
        }
    }
}

/// The reference: copies all rows, then writes each row from the copy.
fn moved<T: Copy>(old: &Tensor<T>, rows: Rows, moves: &[(usize, usize)]) -> Tensor<T> {
    let [outer, count, len] = rows.sizes(&old.shape);
    let mut new = old.clone();
    for &(from, to) in moves {
        for outer in 0..outer {
            let place = |row: usize| (outer * count + row) * len;
            let source = &old.values[place(from)..place(from) + len];
            new.values[place(to)..place(to) + len].copy_from_slice(source);
        }
    }
    new
}

/// A tensor of any element type, in memory with marked gaps and margins.
trait Memory: Send + Sync {
    fn view(&mut self) -> AnyViewMut<'_>;
    /// The same, as memory of a foreign runtime.
    fn foreign_view(&mut self) -> AnyViewMut<'_>;
    fn bytes(&self) -> &[u8];
    fn moved(&self, rows: Rows, moves: &[(usize, usize)]) -> Box<dyn Memory>;
    fn boxed(&self) -> Box<dyn Memory>;
}

impl<T: Element + Pod> Memory for Strided<T> {
    fn view(&mut self) -> AnyViewMut<'_> {
        self.view_mut().into()
    }

    fn foreign_view(&mut self) -> AnyViewMut<'_> {
        let ptr = self.first_mut().cast();
        // SAFETY: the buffer contains the tensor, and only calls with the view access it.
        unsafe { AnyViewMut::from_raw_parts(ptr, T::DTYPE, self.layout()) }.expect("aligned")
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.buffer)
    }

    fn moved(&self, rows: Rows, moves: &[(usize, usize)]) -> Box<dyn Memory> {
        let mut copy = self.clone();
        copy.write(&moved(&self.read(), rows, moves));
        Box::new(copy)
    }

    fn boxed(&self) -> Box<dyn Memory> {
        Box::new(self.clone())
    }
}

/// Returns a tensor of random bytes.
fn filled<T: Element + Pod>(
    shape: &[usize],
    arrangement: Arrangement,
    random: &mut Random,
) -> Box<dyn Memory> {
    let mut sample = || {
        let mut value = T::zeroed();
        let bytes = bytemuck::bytes_of_mut(&mut value);
        bytes.fill_with(|| random.bits().to_le_bytes()[0]);
        value
    };
    let (mark, tensor) = (sample(), Tensor::generate(shape, sample));
    Box::new(Strided::new(&tensor, arrangement, 3, mark))
}

/// Functions that make tensors of random bytes, one for each element type.
type Filled = fn(&[usize], Arrangement, &mut Random) -> Box<dyn Memory>;
const TYPES: [Filled; 9] = [
    filled::<u8>,
    filled::<i16>,
    filled::<f32>,
    filled::<f64>,
    filled::<i64>,
    filled::<[u8; 1]>,
    filled::<[u8; 2]>,
    filled::<[u8; 8]>,
    filled::<[u8; 16]>,
];

/// A list of moves, and what a call gets.
#[derive(Clone, Debug)]
struct Moves {
    from: Vec<usize>,
    to: Vec<usize>,
}

impl Moves {
    fn new(pairs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let (from, to) = pairs.into_iter().unzip();
        Self { from, to }
    }

    fn pairs(&self) -> Vec<(usize, usize)> {
        self.from
            .iter()
            .copied()
            .zip(self.to.iter().copied())
            .collect()
    }

    /// Returns at most `count` random moves of one of several kinds.
    fn draw(rows: usize, count: usize, random: &mut Random) -> Self {
        if rows == 0 {
            return Self::new([]);
        }
        let shuffled = |random: &mut Random| {
            let mut all: Vec<usize> = (0..rows).collect();
            for at in (1..rows).rev() {
                all.swap(at, random.below(at + 1));
            }
            all
        };
        let count = random.below(count + 1);
        let few = count.min(rows);
        match random.below(7) {
            // Duplicates, chains, cycles, and rows onto themselves.
            0 => Self::new((0..count).map(|_| (random.below(rows), random.below(rows)))),
            // Cycles.
            1 => Self::new(shuffled(random).into_iter().enumerate()),
            // A row is removed, or inserted.
            2 => Self::new((1..few).map(|row| (row, row - 1))),
            3 => Self::new((1..few).map(|row| (row - 1, row))),
            // Disjoint sources and destinations.
            4 => {
                let all = shuffled(random);
                Self::new((0..few / 2).map(|at| (all[2 * at], all[2 * at + 1])))
            }
            // Few sources.
            5 => {
                let (all, sources) = (shuffled(random), 1 + rows / 4);
                Self::new(
                    all.into_iter()
                        .take(few)
                        .map(|to| (random.below(sources), to)),
                )
            }
            // A rotation.
            _ => {
                let by = random.below(rows);
                Self::new((0..rows).map(|row| (row, (row + by) % rows)))
            }
        }
    }

    /// Calls `moves` with the two lists as tensors of integers of the types `F` and `T`.
    fn with<F: Index + TryFrom<usize>, T: Index + TryFrom<usize>>(
        &self,
        call: impl FnOnce(Indices<'_>, Indices<'_>),
    ) {
        let (from, to) = (converted::<F>(&self.from), converted::<T>(&self.to));
        call(TensorView::from(&from).into(), TensorView::from(&to).into());
    }
}

fn converted<I: TryFrom<usize>>(numbers: &[usize]) -> Vec<I> {
    let convert = |&number| I::try_from(number).unwrap_or_else(|_| panic!("{number} fits"));
    numbers.iter().map(convert).collect()
}

/// Moves rows of copies of `caches` with a builder and with a plan, and compares the memory with
/// the reference.
fn check(rows: Rows, caches: &[Box<dyn Memory>], moves: &Moves, execution: Execution<'_>) {
    let pairs = moves.pairs();
    let expected: Vec<_> = caches
        .iter()
        .map(|cache| cache.moved(rows, &pairs))
        .collect();
    let compare = |actual: &[Box<dyn Memory>], method: &str| {
        for (at, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            let compared = elements::compare(actual.bytes(), expected.bytes(), true);
            assert_eq!(
                compared,
                Ok(()),
                "{method}, tensor {at}, {rows:?}, {moves:?}"
            );
        }
    };
    let builder = rows.builder().execution(execution);
    let mut actual: Vec<_> = caches.iter().map(|cache| cache.boxed()).collect();
    moves.with::<i64, i64>(|from, to| {
        (builder.in_place(actual.iter_mut().map(|cache| cache.view()), from, to)).expect("valid");
    });
    compare(&actual, "builder");
    let mut actual: Vec<_> = caches.iter().map(|cache| cache.boxed()).collect();
    moves.with::<u32, isize>(|from, to| {
        let Some(first) = actual.first_mut() else {
            return;
        };
        let [_, count, _] = rows.sizes(first.view().shape());
        let plan = builder.plan(count, from, to).expect("valid");
        let views = actual.iter_mut().map(|cache| cache.foreign_view());
        (plan.run().execution(execution).in_place(views)).expect("valid");
    });
    compare(&actual, "plan");
}

fn alone() -> Execution<'static> {
    Execution::new().pool(&ndscatter::CallingThread)
}

#[test]
fn random_moves_of_small_tensors() {
    let mut random = Random::new(1);
    for _ in 0..3000 {
        let rank = 1 + random.below(5);
        let rows = match rank {
            1 => Rows::Along(0),
            _ if random.one_in(3) => Rows::Paged,
            _ => Rows::Along(random.below(rank)),
        };
        let mut shape: Vec<usize> = (0..rank).map(|_| random.below(7)).collect();
        if random.one_in(2) {
            shape.iter_mut().for_each(|size| *size = (*size).max(1));
        }
        let [_, count, _] = rows.sizes(&shape);
        let caches: Vec<_> = (0..1 + random.below(3))
            .map(|_| {
                let mut shape = shape.clone();
                if let Rows::Along(axis) = rows
                    && rank > 1
                {
                    // The other sizes may differ among the tensors.
                    shape[(axis + 1) % rank] = random.below(5);
                }
                let arrangement = random.pick(&Arrangement::OUTPUTS);
                random.pick(&TYPES)(&shape, arrangement, &mut random)
            })
            .collect();
        let moves = Moves::draw(count, 12, &mut random);
        check(rows, &caches, &moves, alone());
    }
}

/// Tensors of all sizes at which a path changes, with every pool.
#[test]
fn every_pool_moves_alike() {
    let mut random = Random::new(2);
    // Each row has the sizes after the rows, the number of rows, and the number of tensors.
    let cases: [(&[usize], usize, usize); 6] = [
        // 1 MiB in few and many tensors.
        (&[8, 64], 512, 2),
        (&[64], 64, 64),
        // Few long rows.
        (&[300_000], 5, 1),
        // Many short rows.
        (&[3], 90_000, 1),
        // Single elements.
        (&[], 300_000, 1),
        (&[1, 2, 1, 3, 2, 2, 1, 2, 3, 2], 2000, 2),
    ];
    for (inner, count, tensors) in cases {
        for arrangement in [
            Arrangement::Contiguous,
            Arrangement::Mixed,
            Arrangement::Permuted,
        ] {
            let mut shape = vec![count];
            shape.extend(inner);
            let caches: Vec<_> = (0..tensors)
                .map(|_| filled::<f32>(&shape, arrangement, &mut random))
                .collect();
            for _ in 0..4 {
                let moves = Moves::draw(count, count, &mut random);
                let workers = random.pick(&Workers::ALL);
                let streams: Machine = "stream_bytes = 1".parse().expect("a machine");
                let streams = random.one_in(2).then_some(streams);
                workers.with(|pool| {
                    let execution = Execution::new().pool(pool);
                    let execution = match &streams {
                        Some(machine) => execution.machine(machine),
                        None => execution,
                    };
                    check(Rows::Along(0), &caches, &moves, execution);
                });
            }
        }
    }
}

/// Rows of 512 KiB in total, and calls that write a little less and a little more.
#[test]
fn calls_around_the_size_at_which_workers_are_used() {
    let mut random = Random::new(10);
    let moves = Moves::new((0..128).map(|row| (row, (row + 1) % 128)));
    for len in [1023, 1024, 1025, 2047, 2048, 2049] {
        let caches = [filled::<f32>(
            &[128, len],
            Arrangement::Contiguous,
            &mut random,
        )];
        for workers in [Workers::Installed(3), Workers::Threads, Workers::Sequential] {
            workers.with(|pool| {
                check(Rows::Along(0), &caches, &moves, Execution::new().pool(pool));
            });
        }
    }
}

/// A chain, a cycle and separate moves of one tensor, with 1 to 8 workers. A chain and a cycle are
/// divided by columns only.
#[test]
fn moves_that_depend_on_each_other_are_divided_by_columns() {
    let mut random = Random::new(3);
    let count = 700;
    let lists = [
        Moves::new((1..count).map(|row| (row, row - 1))),
        Moves::new((0..count).map(|row| (row, (row + 1) % count))),
        Moves::new((0..count).map(|row| (row, count - 1 - row))),
        Moves::new((0..count / 2).map(|row| (row, count / 2 + row))),
        // A chain of half of the moves, and separate moves.
        Moves::new(
            (0..count / 2)
                .map(|row| (row + 1, row))
                .chain([(600, 650), (601, 651)]),
        ),
    ];
    for (shape, rows) in [
        (&[count, 4, 260][..], Rows::Along(0)),
        (&[3, count, 350], Rows::Along(1)),
        (&[1040, count], Rows::Along(1)),
        (&[70, 10, 2, 520], Rows::Paged),
    ] {
        for arrangement in [
            Arrangement::Contiguous,
            Arrangement::Padded,
            Arrangement::Stepped,
        ] {
            let caches = [filled::<u16>(shape, arrangement, &mut random)];
            let pools: &[usize] = match (arrangement, rows) {
                (Arrangement::Contiguous, Rows::Along(0)) => &[1, 2, 3, 4, 5, 6, 7, 8],
                (Arrangement::Contiguous, _) => &[2, 5],
                _ => &[3],
            };
            for moves in &lists {
                for &workers in pools {
                    Workers::Installed(workers).with(|pool| {
                        check(rows, &caches, moves, Execution::new().pool(pool));
                    });
                }
            }
        }
    }
}

/// Rows of lengths around the bytes of a piece, in cycles.
#[test]
fn pieces_of_rows_in_cycles() {
    let mut random = Random::new(4);
    for len in [1, 2, 63, 4095, 4096, 4097, 8191, 8192, 8193] {
        for count in [2, 3, 5] {
            let moves = Moves::new((0..count).map(|row| (row, (row + 1) % count)));
            for arrangement in [Arrangement::Contiguous, Arrangement::Stepped] {
                let caches = [
                    filled::<u8>(&[count, len], arrangement, &mut random),
                    filled::<[u8; 16]>(&[count, len / 16 + 1], arrangement, &mut random),
                ];
                check(Rows::Along(0), &caches, &moves, alone());
            }
        }
    }
}

/// Numbers of moves around the lengths of lists of jobs, of blocks of indices, and of the moves
/// from which on columns are moved one by one.
#[test]
fn every_number_of_moves() {
    let mut random = Random::new(5);
    for moved in (0..36).chain([62, 63, 64, 65, 66, 127, 128, 129, 130, 257]) {
        let caches: Vec<_> = [
            Arrangement::Contiguous,
            Arrangement::Stepped,
            Arrangement::Permuted,
        ]
        .map(|arrangement| filled::<u32>(&[520, 3], arrangement, &mut random))
        .into();
        for moves in [
            Moves::new((0..moved).map(|row| (row, 519 - row))),
            Moves::new((0..moved).map(|row| (row + 1, row))),
            Moves::new((0..moved).map(|row| (7 * row % 520, 3 * row % 520))),
        ] {
            check(Rows::Along(0), &caches, &moves, alone());
        }
    }
}

/// The layout `[blocks, heads, block_size, dim]`, in which a slot is not contiguous, and a layout
/// with keys by column, `[blocks, heads, dim, block_size]`.
#[test]
fn slots_of_paged_layouts() {
    let (blocks, heads, size, dim) = (40, 3, 8, 20);
    let shape = [blocks, size, heads, dim];
    let step = |sizes: &[usize]| sizes.iter().product::<usize>().cast_signed();
    let by_head = [
        step(&[heads, size, dim]),
        step(&[dim]),
        step(&[size, dim]),
        1,
    ];
    let by_column = [
        step(&[heads, size, dim]),
        1,
        step(&[size, dim]),
        step(&[size]),
    ];
    let mut random = Random::new(6);
    for strides in [by_head, by_column] {
        let old: Vec<u64> = (0..blocks * heads * size * dim)
            .map(|_| random.bits())
            .collect();
        for round in 0..10 {
            let moves = Moves::draw(blocks * size, 20 * round, &mut random);
            let mut expected = old.clone();
            for (from, to) in moves.pairs() {
                for (head, at) in (0..heads).flat_map(|head| (0..dim).map(move |at| (head, at))) {
                    let place = |slot: usize| {
                        let coordinates = [slot / size, slot % size, head, at];
                        let steps = strides.iter().zip(coordinates);
                        steps
                            .map(|(&step, at)| step.cast_unsigned() * at)
                            .sum::<usize>()
                    };
                    expected[place(to)] = old[place(from)];
                }
            }
            let mut cache = old.clone();
            moves.with::<u16, i32>(|from, to| {
                let view = TensorViewMut::strided(&mut cache, 0, &shape, &strides).expect("inside");
                MoveRows::paged().in_place([view], from, to).expect("valid");
            });
            assert_eq!(cache, expected, "{strides:?}, {moves:?}");
        }
    }
}

#[test]
fn every_index_type() {
    let moves = Moves::new([(3, 0), (1, 1), (0, 3), (3, 2)]);
    macro_rules! check_types {
        ($($from:ty, $to:ty);*) => {$(
            let mut rows = *b"abcd";
            moves.with::<$from, $to>(|from, to| {
                let rows = [TensorViewMut::from(&mut rows)];
                MoveRows::along(0).in_place(rows, from, to).expect("valid");
            });
            assert_eq!(rows, *b"dbda", stringify!($from, $to));
        )*};
    }
    check_types!(i8, u64; u8, usize; i16, isize; u16, i64; i32, u32; u32, i32; i64, u16; isize, i16;
        usize, u8; u64, i8);
}

/// Lists of any rank and strides.
#[test]
fn lists_are_read_in_row_major_order() {
    let mut random = Random::new(7);
    for shape in [
        &[][..],
        &[1],
        &[300],
        &[3, 4],
        &[2, 1, 150],
        &[5, 0, 2],
        &[150, 2, 1],
        &[2, 130, 2],
    ] {
        let rows = 400;
        let mut draw =
            || Tensor::generate(shape, || i64::try_from(random.below(rows)).expect("small"));
        let lists = [draw(), draw()];
        let old: Vec<usize> = (0..rows).collect();
        let mut expected = old.clone();
        for (&from, &to) in lists[0].values.iter().zip(&lists[1].values) {
            let row = |number: i64| usize::try_from(number).expect("not negative");
            expected[row(to)] = old[row(from)];
        }
        for arrangement in Arrangement::OUTPUTS {
            let [from, to] = lists
                .each_ref()
                .map(|list| Strided::new(list, arrangement, 2, -9));
            let mut actual = old.clone();
            let cache = [TensorViewMut::from(&mut actual)];
            (MoveRows::along(0).in_place(cache, from.view(), to.view())).expect("valid");
            assert_eq!(actual, expected, "{shape:?}, {arrangement:?}");
        }
    }
}

#[test]
fn skipped_moves() {
    let moves = MoveRows::along(0).bounds(Bounds::SkipNegative);
    let (from, to) = ([2_i32, -1, 1, -7, 0], [0_i64, 1, -1, i64::MIN, 2]);
    let (from, to) = (TensorView::from(&from), TensorView::from(&to));
    let plan = moves.plan(3, from, to).expect("valid");
    assert_eq!(
        (plan.rows(), plan.moves(), plan.skipped()),
        (3, 2, 3),
        "rows"
    );
    let mut rows = *b"abc";
    (moves.in_place([TensorViewMut::from(&mut rows)], from, to)).expect("valid");
    assert_eq!(rows, *b"cba", "two moves");
    // Skipped moves are no duplicates. The error names positions in the list of the caller.
    let rejecting = moves.duplicates(Duplicates::Reject);
    assert!(rejecting.plan(3, from, to).is_ok(), "no duplicates");
    let (from, to) = ([-1_i8, 0, 1, 0, -1, 2], [2_i8, 1, -2, 0, 0, 1]);
    let found = rejecting
        .plan(3, TensorView::from(&from), TensorView::from(&to))
        .err();
    let expected = ScatterError::DuplicateIndex {
        tuple: 5,
        earlier: 1,
    };
    assert_eq!(found, Some(expected), "positions");
}

#[test]
fn the_last_of_several_moves_stays() {
    let run = |moves: MoveRows<'_>, from: &[u8], to: &[u8]| {
        let mut rows = *b"abcd";
        let cache = [TensorViewMut::from(&mut rows)];
        let done = moves.in_place(cache, TensorView::from(from), TensorView::from(to));
        (done, rows)
    };
    let allowing = MoveRows::along(0);
    assert_eq!(
        run(allowing.clone(), &[1, 2], &[3, 3]),
        (Ok(()), *b"abcc"),
        "the last"
    );
    // The last move is from row 3 to itself.
    assert_eq!(
        run(allowing, &[1, 3], &[3, 3]),
        (Ok(()), *b"abcd"),
        "itself"
    );
    let rejecting = || MoveRows::along(0).duplicates(Duplicates::Reject);
    for (from, to, tuple, earlier) in [
        (&[1, 3][..], &[3, 3][..], 1, 0),
        (&[0, 1, 2, 3, 0], &[3, 2, 3, 2, 1], 2, 0),
    ] {
        let error = ScatterError::DuplicateIndex { tuple, earlier };
        assert_eq!(run(rejecting(), from, to), (Err(error), *b"abcd"), "{to:?}");
    }
    assert_eq!(
        run(rejecting(), &[0, 0], &[3, 2]),
        (Ok(()), *b"abaa"),
        "one source"
    );
}

/// A call that must fail, with two tensors that must not change.
fn refused(moves: &MoveRows<'_>, from: Indices<'_>, to: Indices<'_>) -> Option<ScatterError> {
    let (mut keys, mut values) = ([1_u16, 2, 3], [4_u8, 5, 6]);
    let caches = [
        AnyViewMut::from(TensorViewMut::from(&mut keys)),
        AnyViewMut::from(TensorViewMut::from(&mut values)),
    ];
    let error = moves.in_place(caches, from, to).err();
    assert_eq!((keys, values), ([1, 2, 3], [4, 5, 6]), "{error:?}");
    error
}

#[test]
fn faults_of_the_lists() {
    let out_of_bounds = |list, position, row| ScatterError::RowOutOfBounds {
        list,
        position,
        row,
        rows: 3,
    };
    let cases = [
        (
            Bounds::Error,
            vec![0, 3, 9],
            vec![1, 2, 0],
            Some(("from", 1, 3)),
        ),
        (
            Bounds::Error,
            vec![0, 1, 2],
            vec![1, -1, 3],
            Some(("to", 1, -1)),
        ),
        (
            Bounds::Error,
            vec![0, -4, 2],
            vec![1, 7, 3],
            Some(("from", 1, -4)),
        ),
        (
            Bounds::Error,
            vec![0, 0, 3],
            vec![1, 3, 3],
            Some(("to", 1, 3)),
        ),
        (
            Bounds::SkipNegative,
            vec![0, -4, 2],
            vec![1, 7, 0],
            Some(("to", 1, 7)),
        ),
        (
            Bounds::SkipNegative,
            vec![i64::MAX],
            vec![-1],
            Some(("from", 0, i64::MAX)),
        ),
        (Bounds::SkipNegative, vec![-1, 0], vec![0, i64::MIN], None),
        (Bounds::Skip, vec![-1, 7, i64::MAX], vec![0, 0, -9], None),
    ];
    for (bounds, from, to, expected) in cases {
        let moves = MoveRows::along(0).bounds(bounds);
        let (from, to) = (TensorView::from(&from), TensorView::from(&to));
        let expected = expected.map(|(list, at, row)| out_of_bounds(list, at, i128::from(row)));
        assert_eq!(
            refused(&moves, from.into(), to.into()),
            expected,
            "{bounds:?}"
        );
        assert_eq!(moves.plan(3, from, to).err(), expected, "{bounds:?}, plan");
    }
    let huge = [u64::MAX];
    let (huge, zero) = (TensorView::from(&huge), TensorView::from(&[0_u64]));
    let error = refused(&MoveRows::along(0), zero.into(), huge.into());
    assert_eq!(
        error,
        Some(out_of_bounds("to", 0, u64::MAX.into())),
        "u64::MAX"
    );

    let moves = MoveRows::along(0);
    let (one, two) = ([0_i64; 1], [0_i64; 2]);
    let shape = ScatterError::MovesShape {
        from: vec![1],
        to: vec![2],
    };
    let (from, to) = (TensorView::from(&one), TensorView::from(&two));
    assert_eq!(
        refused(&moves, from.into(), to.into()),
        Some(shape.clone()),
        "shapes"
    );
    assert_eq!(moves.plan(3, from, to).err(), Some(shape), "shapes, plan");
    let floats = ndscatter::AnyView::from(TensorView::from(&[0.0_f32]));
    let actual = DType::F32;
    for (from, to) in [(floats.into(), from.into()), (from.into(), floats.into())] {
        let error = refused(&moves, from, to);
        assert_eq!(error, Some(ScatterError::IndexType { actual }), "floats");
    }
    let option = ScatterError::UnsupportedOption { option: "bounds" };
    let clamping = moves.bounds(Bounds::Clamp);
    assert_eq!(
        refused(&clamping, from.into(), from.into()),
        Some(option.clone()),
        "clamp"
    );
    assert_eq!(
        clamping.plan(3, from, from).err(),
        Some(option),
        "clamp, plan"
    );
}

/// Moves rows 0 to 1 of raw views, and returns the error.
fn raw_error(
    moves: &MoveRows<'_>,
    views: [Result<AnyViewMut<'_>, ScatterError>; 2],
) -> Option<ScatterError> {
    let views = views.map(|view| view.expect("a view"));
    let (from, to) = ([0_i64], [1_i64]);
    moves
        .in_place(views, TensorView::from(&from), TensorView::from(&to))
        .err()
}

#[test]
fn faults_of_the_tensors() {
    let mut memory: Vec<u16> = (0..32).collect();
    let old = memory.clone();
    let start: *mut u8 = memory.as_mut_ptr().cast();
    // SAFETY: all views are inside `memory`. Only the calls access it.
    let view = |at: usize, layout| unsafe {
        AnyViewMut::from_raw_parts(start.wrapping_add(2 * at), DType::U16, layout)
    };
    let along = MoveRows::along(0);
    let (four, five) = (Layout::contiguous(&[4, 2]), Layout::contiguous(&[5]));
    let rows = ScatterError::RowCount {
        tensor: 1,
        rows: 5,
        expected: 4,
    };
    assert_eq!(
        raw_error(&along, [view(0, four), view(8, five)]),
        Some(rows),
        "rows"
    );
    let shared = ScatterError::TensorsOverlap {
        first: 0,
        second: 1,
    };
    assert_eq!(
        raw_error(&along, [view(7, four), view(0, four)]),
        Some(shared),
        "one element"
    );
    let every_other = Layout::strided(&[4, 2], &[8, 2]).expect("two strides");
    assert_eq!(
        raw_error(&along, [view(0, every_other), view(1, every_other)]),
        None,
        "interleaved"
    );
    for (moves, axis) in [(MoveRows::along(2), 2), (MoveRows::along(-3), -3)] {
        let error = ScatterError::AxisOutOfRange { axis, rank: 2 };
        assert_eq!(
            raw_error(&moves, [view(0, four), view(8, four)]),
            Some(error),
            "axis"
        );
    }
    for shape in [&[][..], &[8]] {
        let layout = Layout::contiguous(shape);
        let error = ScatterError::PagedRank { rank: shape.len() };
        let views = [view(0, layout), view(8, layout)];
        assert_eq!(
            raw_error(&MoveRows::paged(), views),
            Some(error),
            "{shape:?}"
        );
    }
    // SAFETY: as above.
    let unwritten = unsafe { AnyViewMut::uninit_from_raw_parts(start, DType::U16, four) };
    let error = raw_error(&along, [view(8, four), unwritten]);
    assert_eq!(error, Some(ScatterError::Uninitialized), "only written");
    // SAFETY: as above.
    let list = unsafe { ndscatter::AnyView::from_raw_parts(start, DType::U16, Layout::line(1)) };
    let list: Indices<'_> = list.expect("aligned").into();
    let other = TensorView::from(&[0_i64]);
    for (from, to, tensor) in [(list, other.into(), "from"), (other.into(), list, "to")] {
        let cache = [view(0, four).expect("a view")];
        let error = ScatterError::InputOverlap { tensor };
        assert_eq!(
            along.in_place(cache, from, to),
            Err(error),
            "a list in a tensor"
        );
    }
    let mut expected = old;
    for row in 0..2 {
        expected.copy_within(2 * row..2 * row + 1, 8 + 2 * row);
        expected.copy_within(2 * row + 1..2 * row + 2, 9 + 2 * row);
    }
    assert_eq!(
        memory, expected,
        "only the interleaved tensors have changed"
    );
}

/// A plan refuses tensors with another number of rows. Calls without tensors check their lists.
#[test]
fn plans_and_empty_calls() {
    let lists = ([0_i64, 2], [1_i64, 0]);
    let (from, to) = (TensorView::from(&lists.0), TensorView::from(&lists.1));
    let plan = MoveRows::along(-1).plan(3, from, to).expect("valid");
    let mut rows = [1, 2, 3, 4];
    let error = ScatterError::RowCount {
        tensor: 0,
        rows: 4,
        expected: 3,
    };
    let done = plan.run().in_place([TensorViewMut::from(&mut rows)]);
    assert_eq!(done, Err(error), "four rows");
    assert_eq!(
        plan.run().in_place([] as [AnyViewMut<'_>; 0]),
        Ok(()),
        "no tensors"
    );
    let none = || [] as [AnyViewMut<'_>; 0];
    assert_eq!(
        MoveRows::along(0).in_place(none(), from, to),
        Ok(()),
        "no tensors"
    );
    let negative = TensorView::from(&[0_i64, -1]);
    assert!(
        MoveRows::along(0).in_place(none(), from, negative).is_err(),
        "negative"
    );
    // No rows, and rows without elements.
    for (shape, from, expected) in [
        (&[0, 4][..], &[][..] as &[i64], true),
        (&[0, 4], &[0], false),
        (&[4, 0], &[3], true),
        (&[4, 0], &[4], false),
    ] {
        let mut nothing: [f32; 0] = [];
        let view = TensorViewMut::contiguous(&mut nothing, shape).expect("no elements");
        let list = TensorView::from(from);
        let done = MoveRows::along(0).in_place([view], list, list);
        assert_eq!(done.is_ok(), expected, "{shape:?}, {from:?}: {done:?}");
    }
    let mut nothing = [0_u8; 0];
    let view = TensorViewMut::contiguous(&mut nothing, &[3, 0, 2]).expect("no elements");
    let zero = TensorView::from(&[0_i64]);
    let done = MoveRows::paged().in_place([view], zero, zero);
    let (list, position, row, rows) = ("from", 0, 0, 0);
    let error = ScatterError::RowOutOfBounds {
        list,
        position,
        row,
        rows,
    };
    assert_eq!(done, Err(error), "block_size 0");
}

/// A boolean of a foreign view may be any byte.
#[test]
fn bytes_of_booleans_are_kept() {
    let mut flags = [0_u8, 1, 2, 255];
    let layout = Layout::line(4);
    let view = AnyViewMut::from_bytes(&mut flags, DType::Bool, layout).expect("inside");
    let (from, to) = ([3_i64, 2], [0_i64, 3]);
    (MoveRows::along(0).in_place([view], TensorView::from(&from), TensorView::from(&to)))
        .expect("valid");
    assert_eq!(flags, [255, 1, 2, 2], "bytes");
    let mut flags = [true, false];
    let view = TensorViewMut::from(&mut flags);
    let (from, to) = (TensorView::from(&[1_u8]), TensorView::from(&[0_u8]));
    MoveRows::along(0)
        .in_place([view], from, to)
        .expect("valid");
    assert_eq!(flags, [false, false], "booleans of Rust");
}

#[test]
fn a_pool_that_omits_tasks_is_an_error() {
    let mut rows = vec![1.0_f64; 100 * 1000];
    let view = TensorViewMut::contiguous(&mut rows, &[100, 1000]).expect("inside");
    let all: Vec<u8> = (0..100).collect();
    let reversed: Vec<u8> = (0..100).rev().collect();
    let moves = MoveRows::along(0).execution(Execution::new().pool(&OmitsOne));
    let done = moves.in_place([view], TensorView::from(&all), TensorView::from(&reversed));
    assert!(
        matches!(done, Err(ScatterError::PoolFailed { .. })),
        "{done:?}"
    );
}

/// The rule of sglang's `copy_all_layer_kv_cache_cpu` (`sgl-kernel/csrc/cpu/kvcache.cpp` at commit
/// 0e71686). For each buffer, all source rows are gathered to a staging vector. The vector is then
/// scattered in the order of the list. The buffers are keys and values of all layers.
#[test]
fn sglang_copy_all_layer_kv_cache() {
    let (layers, slots) = (4, 64);
    let mut random = Random::new(8);
    for row_bytes in [2, 16, 256, 1024] {
        for count in [0, 1, 7, 64] {
            let mut draw = || (0..count).map(|_| random.below(slots)).collect::<Vec<_>>();
            let (tgt_loc, src_loc) = (draw(), draw());
            let mut buffers: Vec<Vec<u8>> = (0..2 * layers)
                .map(|_| {
                    (0..slots * row_bytes)
                        .map(|_| random.bits().to_le_bytes()[0])
                        .collect()
                })
                .collect();
            let mut expected = buffers.clone();
            for buffer in &mut expected {
                let row = |slot: usize| slot * row_bytes..(slot + 1) * row_bytes;
                let staging: Vec<_> =
                    (src_loc.iter().map(|&slot| buffer[row(slot)].to_vec())).collect();
                for (&slot, staged) in tgt_loc.iter().zip(&staging) {
                    buffer[row(slot)].copy_from_slice(staged);
                }
            }
            let shape = [slots, row_bytes];
            let views = buffers
                .iter_mut()
                .map(|buffer| TensorViewMut::contiguous(buffer, &shape).expect("rows of bytes"));
            let (from, to) = (TensorView::from(&src_loc), TensorView::from(&tgt_loc));
            MoveRows::along(0).in_place(views, from, to).expect("valid");
            assert!(buffers == expected, "{row_bytes} bytes, {count} moves");
        }
    }
}

/// The `reorder_cache` of transformers (`src/transformers/cache_utils.py`): for each layer,
/// `keys = keys.index_select(0, beam_idx)`, and the same for values. The shape of a cache is
/// `[beams, heads, tokens, dim]`.
#[test]
fn transformers_reorder_cache() {
    let (layers, shape) = (3, [6, 2, 5, 8]);
    let row = shape[1..].iter().product::<usize>();
    let mut random = Random::new(9);
    for _ in 0..20 {
        let beam_idx: Vec<usize> = (0..shape[0]).map(|_| random.below(shape[0])).collect();
        let mut caches: Vec<Vec<f32>> = (0..2 * layers)
            .map(|layer| {
                (0..shape[0] * row)
                    .map(|at| u16::try_from(layer * 1000 + at).expect("small"))
                    .map(f32::from)
                    .collect()
            })
            .collect();
        let index_select = |cache: &Vec<f32>| -> Vec<f32> {
            beam_idx
                .iter()
                .flat_map(|&beam| &cache[beam * row..(beam + 1) * row])
                .copied()
                .collect()
        };
        let expected: Vec<_> = caches.iter().map(index_select).collect();
        let beams: Vec<usize> = (0..shape[0]).collect();
        let views = caches
            .iter_mut()
            .map(|cache| TensorViewMut::contiguous(cache, &shape).expect("a cache"));
        MoveRows::along(0)
            .in_place(views, TensorView::from(&beam_idx), TensorView::from(&beams))
            .expect("valid");
        assert_eq!(caches, expected, "{beam_idx:?}");
    }
}
