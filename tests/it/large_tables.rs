//! Tables of many rows, in the sizes at which rows pass the caches by or are
//! brought together first: the bits are those of a plain loop, whichever way
//! was chosen, at several numbers of workers.

use crate::common::pools::rayon_pool;
use crate::common::random::Random;
use crate::common::request::Request;
use ndscatter::{DType, Explanation, Layout, Reduction, Scatter, Schedule, TensorView, TensorViewMut};

/// A table and the rows that go there.
struct Table {
    rows: usize,
    width: usize,
    destinations: Vec<i64>,
}

impl Table {
    fn new(rows: usize, width: usize, tuples: usize, draw: impl FnMut(usize) -> usize) -> Self {
        let signed = |row: usize| i64::try_from(row).expect("it fits");
        let destinations = (0..tuples).map(draw).map(signed).collect();
        Self {
            rows,
            width,
            destinations,
        }
    }

    /// Scatters in place and into an output, and compares with `apply` in a
    /// loop over the rows. Returns the schedule that is chosen in place.
    fn check<T>(&self, reduction: Reduction, value: impl Fn(usize) -> T, apply: fn(&mut T, T))
    where
        T: ndscatter::Element + Copy + PartialEq,
    {
        let tuples = self.destinations.len();
        let data: Vec<T> = (0..self.rows * self.width).map(&value).collect();
        let updates: Vec<T> = (0..tuples * self.width).map(|at| value(at + 7)).collect();
        let mut expected = data.clone();
        for (&row, updates) in self.destinations.iter().zip(updates.chunks(self.width)) {
            let first = usize::try_from(row).expect("a row") * self.width;
            let row = &mut expected[first..first + self.width];
            for (element, &update) in row.iter_mut().zip(updates) {
                apply(element, update);
            }
        }
        let shape = [self.rows, self.width];
        let (updates_shape, indices_shape) = ([tuples, self.width], [tuples, 1]);
        let updates = TensorView::contiguous(&updates, &updates_shape).expect("updates");
        let indices = TensorView::contiguous(&self.destinations, &indices_shape).expect("indices");
        for workers in [1, 2, 3, 8] {
            let what = format!("{reduction}, {shape:?}, {tuples} rows, {workers} workers");
            let execution = Request::new(reduction).pool(rayon_pool(workers));
            let scatter = execution.of(Scatter::nd());
            let mut in_place = data.clone();
            let view = TensorViewMut::contiguous(&mut in_place, &shape).expect("data");
            scatter.in_place(view, indices, updates).expect("no error");
            assert!(in_place == expected, "in place, {what}");
            let view = TensorView::contiguous(&data, &shape).expect("data");
            let mut output = updates_of(&data);
            let into = TensorViewMut::contiguous(&mut output, &shape).expect("output");
            scatter
                .write_into(view, indices, updates, into)
                .expect("no error");
            assert!(output == expected, "into an output, {what}");
        }
    }

    /// What runs with so many workers.
    fn explained(
        &self,
        element: DType,
        reduction: Reduction,
        in_place: bool,
        workers: usize,
    ) -> Explanation {
        let data = [self.rows, self.width];
        let shape = [self.destinations.len(), 1];
        let indices = TensorView::contiguous(&self.destinations, &shape).expect("indices");
        let plan = Scatter::nd()
            .plan(Layout::contiguous(&data), indices)
            .expect("no error");
        let execution = Request::new(reduction).pool(rayon_pool(workers));
        let explained = execution.run(&plan).explain(element, in_place);
        explained.expect("a reduction of the type")
    }
}

/// Content that the output must lose.
fn updates_of<T: Copy>(data: &[T]) -> Vec<T> {
    data.iter().rev().copied().collect()
}

/// Every number below `count` once, in no order.
fn shuffled(count: usize, random: &mut Random) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        numbers.swap(last, random.below(last + 1));
    }
    numbers
}

/// In place, 16 MiB of rows or more that lie far apart.
#[test]
fn rows_that_pass_the_caches_by() {
    let mut random = Random::new(5);
    // Neither rows nor tables begin or end with lines.
    for width in [256, 277] {
        let order = shuffled(290_000, &mut random);
        let unique = Table::new(290_000, width, 66_000, |tuple| order[tuple]);
        unique.check(
            Reduction::None,
            |at| (at % 251).to_le_bytes()[0],
            |element, update| *element = update,
        );
        let repeated = Table::new(290_000, width, 66_000, |_| random.below(290_000));
        repeated.check(
            Reduction::None,
            |at| (at % 251).to_le_bytes()[0],
            |element, update| *element = update,
        );
    }
}

/// Sums whose rounding shows their order.
fn check_sums(table: &Table) {
    let value = |at: usize| {
        let number = u16::try_from(at % 9973).expect("it fits");
        f32::from(number) * 0.37 - 1500.0
    };
    table.check(Reduction::Add, value, |element, update| *element += update);
    table.check(Reduction::Max, value, |element, update| {
        if update > *element {
            *element = update;
        }
    });
}

/// Rows of a graph: brought together by ranges of destinations.
#[test]
fn rows_in_no_order() {
    let mut random = Random::new(6);
    for width in [8, 16, 64, 100] {
        let rows = 6_000_000 / width;
        let table = Table::new(rows, width, 200_000, |_| random.below(rows));
        check_sums(&table);
        for in_place in [true, false] {
            let chosen = table.explained(DType::F32, Reduction::Add, in_place, 2);
            assert_eq!(chosen.schedule(), Schedule::ByPartition, "width {width}");
        }
    }
}

/// More than 512 MiB of updates on few workers: few partitions, as the memory
/// for them shows.
#[test]
fn long_updates() {
    const ROWS: usize = 1500;
    const WIDTH: usize = 16 * 1024;
    // Of each partition, the places left empty before it: a destination number
    // and a tuple for each.
    const GAP_BYTES: usize = 8 * 1040;
    let mut random = Random::new(8);
    let table = Table::new(ROWS, WIDTH, 33_000, |_| random.below(ROWS));
    let tuples = table.destinations.len();
    let mut counts = [0_u8; ROWS];
    for &row in &table.destinations {
        let row = usize::try_from(row).expect("a row");
        counts[row] = counts[row].wrapping_add(1);
    }
    let updates = vec![1_u8; tuples * WIDTH];
    for workers in [2, 3, 8] {
        let explained = table.explained(DType::U8, Reduction::Add, true, workers);
        assert_eq!(explained.schedule(), Schedule::ByPartition, "{workers}");
        let gaps = explained.scratch_bytes() - tuples * 8;
        let are_few = gaps < 16 * GAP_BYTES;
        assert_eq!(are_few, workers < 4, "{gaps} bytes for gaps");
        let mut data = vec![0_u8; ROWS * WIDTH];
        let scatter = Request::new(Reduction::Add).pool(rayon_pool(workers));
        (scatter.of(Scatter::nd()))
            .in_place(
                TensorViewMut::contiguous(&mut data, &[ROWS, WIDTH]).expect("data"),
                TensorView::contiguous(&table.destinations, &[tuples, 1]).expect("indices"),
                TensorView::contiguous(&updates, &[tuples, WIDTH]).expect("updates"),
            )
            .expect("no error");
        let are_counted = |(row, count): (&[u8], &u8)| row.iter().all(|value| value == count);
        let is_right = data.chunks(WIDTH).zip(&counts).all(are_counted);
        assert!(is_right, "{workers} workers");
    }
}

/// A few rows have most of the tuples: at the front, all over, or all of them.
#[test]
fn rows_that_are_skewed() {
    let mut random = Random::new(7);
    for width in [1, 16, 64] {
        let rows = 3_000_000 / width;
        check_sums(&Table::new(rows, width, 140_000, |_| random.zipf(rows)));
        let spread = |row: usize| row * 7919 % rows;
        check_sums(&Table::new(rows, width, 140_000, |_| {
            spread(random.zipf(rows))
        }));
        check_sums(&Table::new(rows, width, 140_000, |_| {
            rows / 2 + random.below(40)
        }));
    }
}
