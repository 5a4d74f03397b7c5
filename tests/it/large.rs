//! Scatters of several megabytes, with duplicates whose order shows in the
//! bits: as the crate chooses and by every schedule, at several numbers of
//! workers, at once and from a plan that is kept.

use crate::common::Tensor;
use crate::common::elements::{Palette, Ref, compare, is_exact};
use crate::common::harness::{Indices, Operator, Options};
use crate::common::indices::resolve_axis;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::ndindex;
use crate::common::pools::rayon_pool;
use crate::common::random::Random;
use crate::common::request::Request;
use ndscatter::{Accumulate, Bounds, CacheMode, Reduction, Schedule};

/// A scatter in need of values.
#[derive(Clone, Copy)]
struct Large {
    operator: Operator,
    reduction: Reduction,
    data: &'static [usize],
    indices: &'static [usize],
    /// Of `scatter_elements`: the first dimensions, along which indices differ.
    kept: usize,
    /// How many of them differ all the same.
    spoiled: usize,
    layout: Arrangement,
    palette: Palette,
    bounds: Bounds,
    include_self: bool,
    accumulate: Accumulate,
}

/// Every element goes its own way along axis 0.
const FREE: Large = Large {
    operator: Operator::Elements { axis: 0 },
    reduction: Reduction::Add,
    data: &[3000, 900],
    indices: &[700, 900],
    kept: 2,
    spoiled: 0,
    layout: Arrangement::Contiguous,
    palette: Palette::Ordinary,
    bounds: Bounds::Error,
    include_self: true,
    accumulate: Accumulate::Native,
};

/// Rows, their index written out at every element.
const WRITTEN_OUT: Large = Large {
    data: &[36_000, 64],
    indices: &[10_000, 64],
    kept: 1,
    ..FREE
};

/// Rows of a graph's messages.
const ROWS: Large = Large {
    operator: Operator::Nd,
    data: &[3000, 64],
    indices: &[10_000, 1],
    ..FREE
};

/// Single elements that are hit once or twice.
const LINE: Large = Large {
    data: &[2_200_000],
    indices: &[600_000],
    kept: 1,
    ..FREE
};

/// Few elements that are hit again and again.
const HISTOGRAM: Large = Large {
    data: &[1000],
    ..LINE
};

/// A large scatter with its values and its result.
struct Workload<T> {
    large: Large,
    indices: Strided<i32>,
    /// Two, of which a plan meets both.
    rounds: [(Strided<T>, Strided<T>, Tensor<T>); 2],
}

impl Large {
    fn options<'p>(&self, execution: impl Into<Request<'p>>) -> Options<'p> {
        Options {
            bounds: self.bounds,
            include_self: self.include_self,
            accumulate: self.accumulate,
            ..Options::new(self.operator, execution)
        }
    }

    /// Skewed, so that every destination's order matters; at times outside,
    /// where that is no error; all round a circular cache.
    fn draw_indices(&self, random: &mut Random) -> Strided<i32> {
        let axes = self.operator.axes(self.data, self.indices);
        let wild = self.bounds != Bounds::Error;
        let mut draw = |size: usize| {
            let outside = if wild && random.one_in(20) { size } else { 0 };
            let rounds = if self.is_circular() { 7 } else { 1 };
            let place = i32::try_from(random.zipf(size) * rounds + outside).expect("it fits");
            let from_end = !wild && random.one_in(3) && !self.is_cache();
            let size = i32::try_from(size).expect("it fits");
            if from_end { place - size } else { place }
        };
        let mut values: Vec<i32> = Vec::new();
        for index in ndindex(self.indices) {
            let (_, size) = axes[values.len() % axes.len()];
            let fresh = draw(size);
            let repeats = self.is_elements() && index[self.kept..].iter().any(|&i| i > 0);
            let last = values.last().copied().filter(|_| repeats);
            values.push(last.unwrap_or(fresh));
        }
        for number in 1..=self.spoiled {
            let changed = values.len() - number * number;
            values[changed] = draw(axes[0].1);
        }
        Strided::new(&Tensor::new(self.indices, values), self.layout, 0, 0)
    }

    fn is_elements(&self) -> bool {
        matches!(self.operator, Operator::Elements { .. })
    }

    fn is_cache(&self) -> bool {
        matches!(self.operator, Operator::Cache { .. })
    }

    fn is_circular(&self) -> bool {
        matches!(self.operator, Operator::Cache { mode, .. } if mode == CacheMode::Circular)
    }

    fn prepare<T: Ref>(self) -> Workload<T> {
        let mut random = Random::new(1);
        let indices = self.draw_indices(&mut random);
        let logical = Indices::<T>::logical(&indices);
        let rules = self.options(self.reduction).rules(self.reduction);
        let mut sample = |shape: &[usize]| {
            let tensor = Tensor::generate(shape, || T::sample(self.palette, &mut random));
            Strided::new(&tensor, Arrangement::Contiguous, 0, T::sentinel())
        };
        let mut round = || {
            let data = sample(self.data);
            let updates = sample(&self.operator.updates_shape(self.data, self.indices));
            let (d, u) = (data.read(), updates.read());
            let expected = self.operator.expected(rules, &d, &logical, &u);
            (data, updates, expected)
        };
        Workload {
            large: self,
            rounds: [round(), round()],
            indices,
        }
    }

    /// Some schedule must share it out.
    fn check<T: Ref>(self) {
        let (_, shared) = self.run::<T>();
        assert!(shared > 0, "{} {:?}: all serial", T::DTYPE, self.operator);
    }

    /// The number of tasks that the crate chooses at eight workers, and how
    /// many schedules have several.
    fn run<T: Ref>(self) -> (usize, usize) {
        let workload = self.prepare::<T>();
        let tasks = [1, 2, 3, 8].map(|workers| {
            let execution = Request::new(self.reduction).pool(rayon_pool(workers));
            let what = format!("{} {:?}, {workers} workers", T::DTYPE, self.operator);
            let options = self.options(execution);
            workload.check(&options, &what);
            workload.tasks(&options)
        });
        let is_shared = |schedule: &&Schedule| {
            let execution = Request::new(self.reduction).pool(rayon_pool(3));
            let options = self.options(execution.schedule(**schedule));
            let is_shared = workload.tasks(&options) > 1;
            if is_shared {
                let what = format!("{} {:?}, {schedule}", T::DTYPE, self.operator);
                workload.check(&options, &what);
            }
            is_shared
        };
        (tasks[3], Schedule::ALL.iter().filter(is_shared).count())
    }
}

impl<T: Ref> Workload<T> {
    /// Among how many tasks the crate shares it out.
    fn tasks(&self, options: &Options<'_>) -> usize {
        let layout = self.rounds[0].0.layout();
        let plan = Indices::<T>::plan(&self.indices, options, layout).expect("no error");
        let explained = options.for_plans().run(&plan).explain(T::DTYPE, true);
        explained.expect("a reduction of the type").tasks()
    }

    fn check(&self, options: &Options<'_>, what: &str) {
        let compare = |got: &[T], expected: &Tensor<T>, verb: &str| {
            compare(got, &expected.values, is_exact(self.large.reduction))
                .unwrap_or_else(|difference| panic!("{what}, {verb}: {difference}"));
        };
        let (data, updates, expected) = &self.rounds[0];
        let got = self.indices.allocate(options, data.view(), updates.view());
        compare(&got.expect(what), expected, "allocated");
        let mut output = data.clone();
        let view = output.view_mut();
        let done = self.indices.in_place(options, view, updates.view());
        done.expect(what);
        compare(&output.buffer, expected, "in place");
        let plan = Indices::<T>::plan(&self.indices, options, data.layout());
        let plan = plan.expect(what);
        for (data, updates, expected) in self.rounds.iter().chain(&self.rounds) {
            let mut output = data.clone();
            let (view, updates) = (output.view_mut(), updates.view());
            let done = options.for_plans().run(&plan).in_place(view, updates);
            done.expect(what);
            compare(&output.buffer, expected, "planned, in place");
            let got = options
                .for_plans()
                .run(&plan)
                .allocate(data.view(), updates);
            compare(&got.expect(what), expected, "planned, allocated");
        }
    }
}

#[test]
fn elements_that_go_their_own_way() {
    FREE.check::<f32>();
    let none = Reduction::None;
    let free = Large {
        operator: Operator::Elements { axis: -1 },
        data: &[600, 2000],
        indices: &[290, 2500],
        reduction: none,
        ..FREE
    };
    free.check::<f64>();
    let free = Large {
        operator: Operator::Elements { axis: 1 },
        data: &[40, 90, 200],
        indices: &[33, 110, 199],
        reduction: Reduction::Sub,
        kept: 3,
        ..FREE
    };
    free.check::<f32>();
}

#[test]
fn elements_that_are_rows_written_out() {
    WRITTEN_OUT.check::<f32>();
    let none = Large {
        reduction: Reduction::None,
        ..WRITTEN_OUT
    };
    none.check::<f32>();
    // Windows that reach less far than data.
    let narrow = Large {
        data: &[3000, 80],
        reduction: Reduction::Max,
        palette: Palette::Wild,
        ..WRITTEN_OUT
    };
    narrow.check::<f32>();
    let batches = Large {
        operator: Operator::Elements { axis: 1 },
        data: &[9, 500, 10, 20],
        indices: &[8, 800, 7, 20],
        kept: 2,
        ..FREE
    };
    batches.check::<f32>();
    // Up to the last dimension but one.
    let halfway = Large {
        operator: Operator::Elements { axis: 0 },
        data: &[1200, 30, 64],
        indices: &[350, 30, 64],
        kept: 2,
        ..FREE
    };
    halfway.check::<i32>();
}

/// One element, at the very end or close to it, is no part of its row.
#[test]
fn elements_that_are_almost_rows() {
    for spoiled in [1, 3, 20] {
        let almost = Large {
            spoiled,
            ..WRITTEN_OUT
        };
        almost.check::<f32>();
    }
}

#[test]
fn elements_that_are_rows_by_stride_0() {
    for layout in [Arrangement::ZeroLast, Arrangement::ZeroTail] {
        let rows = Large {
            layout,
            ..WRITTEN_OUT
        };
        rows.check::<f32>();
        let narrow = Large {
            layout,
            data: &[300, 12, 64],
            indices: &[1000, 11, 60],
            reduction: Reduction::Mean,
            ..FREE
        };
        narrow.check::<f32>();
    }
    // One index for all batches.
    let batches = Large {
        operator: Operator::Elements { axis: 1 },
        data: &[50, 100, 60],
        indices: &[50, 220, 60],
        layout: Arrangement::ZeroFirst,
        kept: 3,
        ..FREE
    };
    batches.check::<f32>();
}

#[test]
fn elements_of_one_dimension() {
    LINE.check::<f32>();
    for reduction in [Reduction::None, Reduction::Min] {
        let palette = Palette::Wild;
        let line = Large {
            reduction,
            palette,
            ..LINE
        };
        line.check::<f64>();
    }
}

/// Sums of integers and extremes may be taken in parts, sums of floats not.
#[test]
fn histograms() {
    HISTOGRAM.check::<i32>();
    let (tasks, _) = HISTOGRAM.run::<f32>();
    assert_eq!(tasks, 1, "sums of floats into few elements");
    let extremes = Large {
        reduction: Reduction::Max,
        palette: Palette::Wild,
        ..HISTOGRAM
    };
    extremes.check::<f32>();
    let extremes = Large {
        reduction: Reduction::Min,
        ..extremes
    };
    extremes.check::<f64>();
    let tuples = Large {
        operator: Operator::Nd,
        data: &[20, 50],
        indices: &[700_000, 2],
        reduction: Reduction::Mul,
        palette: Palette::Wild,
        ..HISTOGRAM
    };
    tuples.check::<u32>();
    let rows = Large {
        operator: Operator::Update { axis: 0 },
        data: &[120, 4],
        indices: &[150_000],
        ..HISTOGRAM
    };
    rows.check::<i32>();
}

#[test]
fn means() {
    let mean = Reduction::Mean;
    for large in [ROWS, LINE, HISTOGRAM, WRITTEN_OUT] {
        let means = Large {
            reduction: mean,
            ..large
        };
        means.check::<f32>();
    }
    let updates_alone = Large {
        reduction: mean,
        include_self: false,
        palette: Palette::Wild,
        ..ROWS
    };
    updates_alone.check::<i32>();
    let along = Large {
        operator: Operator::Update { axis: 1 },
        reduction: mean,
        data: &[20, 100, 32],
        indices: &[1000],
        ..ROWS
    };
    along.check::<f64>();
}

#[test]
fn reductions_without_self() {
    for (reduction, large) in [
        (Reduction::Add, ROWS),
        (Reduction::Sub, LINE),
        (Reduction::Max, HISTOGRAM),
        (Reduction::Sub, HISTOGRAM),
    ] {
        let updates_alone = Large {
            reduction,
            include_self: false,
            ..large
        };
        updates_alone.check::<f32>();
    }
}

#[cfg(feature = "half")]
#[test]
fn halves_in_f32() {
    let rows = Large {
        indices: &[18_000, 1],
        accumulate: Accumulate::Wide,
        ..ROWS
    };
    rows.check::<half::f16>();
    let means = Large {
        reduction: Reduction::Mean,
        ..rows
    };
    means.check::<half::bf16>();
    let line = Large {
        reduction: Reduction::Sub,
        indices: &[1_100_000],
        accumulate: Accumulate::Wide,
        ..LINE
    };
    line.check::<half::bf16>();
}

#[test]
fn skipped_and_clamped() {
    let (skip, clamp) = (Bounds::Skip, Bounds::Clamp);
    for (bounds, large) in [
        (skip, FREE),
        (skip, WRITTEN_OUT),
        (skip, ROWS),
        (clamp, WRITTEN_OUT),
        (clamp, LINE),
    ] {
        let bounded = Large { bounds, ..large };
        bounded.check::<f32>();
    }
    let means = Large {
        bounds: skip,
        reduction: Reduction::Mean,
        ..ROWS
    };
    means.check::<f32>();
    for bounds in [skip, clamp] {
        let counts = Large {
            bounds,
            ..HISTOGRAM
        };
        counts.run::<i32>();
    }
}

#[test]
fn caches() {
    let (linear, circular) = (CacheMode::Linear, CacheMode::Circular);
    for (axis, mode, data, len) in [
        (-2, linear, &[32, 4, 300, 64][..], 80),
        (-2, circular, &[32, 4, 300, 64], 80),
        (1, circular, &[6, 2000, 128], 900),
        (2, linear, &[40, 30, 600], 590),
        (2, circular, &[40, 30, 600], 590),
        // All of it.
        (1, circular, &[16, 50, 900], 50),
    ] {
        let size = data[resolve_axis(axis, data.len())];
        assert!(len <= size, "the case is valid");
        let cache = Large {
            operator: Operator::Cache { axis, mode, len },
            reduction: Reduction::None,
            data,
            indices: &data[..1],
            ..FREE
        };
        cache.check::<f32>();
    }
}
