//! Histograms of integers: whether several workers are worth what it takes to
//! give each a copy of the bins.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "indices are below the number of bins"
)]

use std::fmt::Write;

use ndscatter::{
    CallingThread, DType, Element, Execution, Layout, Reduction, Scatter, ScatterPlan, Schedule,
    TensorView, TensorViewMut,
};

use crate::common::contenders::{Contender, time};
use crate::common::inputs::SETS;
use crate::common::options::Options;
use crate::common::random::Random;
use crate::common::workloads::{Histogram, Pattern};

/// Columns of the table after the first ones.
pub(crate) const HEAD: &str = "histogram | schedule, planned | one-shot ms | calling thread | \
     serial | plain loop | planned ms | planned: calling thread | planned: serial";

/// What a user without the crate would write for one key.
type Combine<T> = fn(T, T) -> T;

/// A histogram in memory.
struct Subject<T> {
    histogram: Histogram,
    data: Vec<T>,
    updates: Vec<T>,
    indices: [Vec<i64>; SETS],
    plans: [ScatterPlan; SETS],
    combine: Combine<T>,
}

/// Checks a histogram, and writes its row unless that is all.
pub(crate) fn measure(histogram: Histogram, options: &Options, rows: &mut String) {
    let is_max = histogram.reduction == Reduction::Max;
    match histogram.dtype {
        DType::U8 => {
            Subject::new(histogram, [1, 2, 3], u8::wrapping_add).measure(options, rows);
        }
        DType::U32 => {
            Subject::new(histogram, [1, 2, 3], u32::wrapping_add).measure(options, rows);
        }
        DType::I64 => {
            Subject::new(histogram, [1, -2, 3], i64::wrapping_add).measure(options, rows);
        }
        DType::I32 if is_max => {
            Subject::new(histogram, [-5, 70, 9], i32::max).measure(options, rows);
        }
        other => unreachable!("no histogram has {} of {other}", histogram.reduction),
    }
}

impl<T: Element + PartialEq> Subject<T> {
    fn new(histogram: Histogram, values: [T; 3], combine: Combine<T>) -> Self {
        let mut random = Random::new(1);
        let (keys, bins) = (histogram.keys, histogram.bins);
        let indices: [Vec<i64>; SETS] = std::array::from_fn(|_| {
            let places = match histogram.pattern {
                Pattern::Zipf => random.zipf(keys, bins, 1.2),
                _ => random.uniform(keys, bins),
            };
            places.into_iter().map(|place| place as i64).collect()
        });
        let plans = std::array::from_fn(|set: usize| {
            let shape = [keys, 1];
            let view = TensorView::contiguous(&indices[set], &shape).expect("a list");
            (Scatter::nd().plan(Layout::contiguous(&[bins]), view)).expect("all are bins")
        });
        Self {
            data: vec![values[0]; bins],
            updates: (0..keys).map(|key| values[key % 3]).collect(),
            histogram,
            indices,
            plans,
            combine,
        }
    }

    fn one_shot(&self, name: &str, execution: Execution<'static>) -> Contender<'_, T> {
        let shape = [self.histogram.bins];
        let list = [self.histogram.keys, 1];
        Contender::new(name, move |target, set| {
            (Scatter::nd().reduction(self.histogram.reduction))
                .execution(execution)
                .in_place(
                    TensorViewMut::contiguous(target, &shape).expect("bins"),
                    TensorView::contiguous(&self.indices[set], &list).expect("keys"),
                    TensorView::contiguous(&self.updates, &list[..1]).expect("updates"),
                )
                .expect("a valid call");
            None
        })
    }

    fn planned(&self, name: &str, execution: Execution<'static>) -> Contender<'_, T> {
        let shape = [self.histogram.bins];
        let list = [self.histogram.keys];
        Contender::new(name, move |target, set| {
            (self.plans[set].run())
                .reduction(self.histogram.reduction)
                .execution(execution)
                .in_place(
                    TensorViewMut::contiguous(target, &shape).expect("bins"),
                    TensorView::contiguous(&self.updates, &list).expect("updates"),
                )
                .expect("a valid run");
            None
        })
    }

    fn plain_loop(&self, target: &mut [T], set: usize) {
        for (&index, &update) in self.indices[set].iter().zip(&self.updates) {
            let bin = &mut target[index as usize];
            *bin = (self.combine)(*bin, update);
        }
    }

    fn contenders(&self) -> [Contender<'_, T>; 7] {
        let chosen = Execution::new();
        let alone = chosen.pool(&CallingThread);
        let serial = alone.force_schedule(Schedule::Serial);
        [
            self.one_shot("one-shot", chosen),
            self.one_shot("one-shot, calling thread", alone),
            self.one_shot("one-shot, serial", serial),
            Contender::new("plain loop", |target, set| {
                self.plain_loop(target, set);
                None
            }),
            self.planned("planned", chosen),
            self.planned("planned, calling thread", alone),
            self.planned("planned, serial", serial),
        ]
    }

    fn measure(&self, options: &Options, rows: &mut String) {
        let contenders = self.contenders();
        let mut target = self.data.clone();
        for set in 0..SETS {
            let mut expected = self.data.clone();
            self.plain_loop(&mut expected, set);
            for contender in &contenders {
                target.copy_from_slice(&self.data);
                contender.run(&mut target, set);
                let (name, histogram) = (&contender.name, self.histogram.name);
                assert!(target == expected, "{name} of {histogram}, index set {set}");
            }
        }
        if options.check {
            return;
        }
        let times = time(&contenders, &mut target, options.rounds, 1);
        let schedule = (self.plans[0].run())
            .reduction(self.histogram.reduction)
            .explain(T::DTYPE, true)
            .expect("the type has the reduction")
            .schedule();
        let [
            one_shot,
            alone,
            serial,
            plain,
            planned,
            planned_alone,
            planned_serial,
        ] = [0, 1, 2, 3, 4, 5, 6].map(|at: usize| times[at].min);
        writeln!(
            rows,
            "| {} | {schedule} | {:.3} | {:.2} | {:.2} | {:.2} | {:.3} | {:.2} | {:.2} |",
            self.histogram.name,
            one_shot * 1e-6,
            alone / one_shot,
            serial / one_shot,
            plain / one_shot,
            planned * 1e-6,
            planned_alone / planned,
            planned_serial / planned,
        )
        .expect("a string");
    }
}
