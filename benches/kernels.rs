//! Times the reduction kernels alone, with rows of 4 KiB in the first-level cache: every
//! element type, reduction and instruction set, in nanoseconds per 64 bytes.
//!
//! ```text
//! cargo bench --bench kernels -- [--rounds n] [--csv]
//! ```
//!
//! Data is one row, and every tuple names it. All updates are one row too, viewed with stride
//! 0. The time is therefore the time of the kernel and of its list of jobs.
//! `baseline_vs_v3.sh` compares two builds of this bench.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "values are small numbers"
)]

mod common;

use std::fmt::Debug;
use std::process::ExitCode;
use std::time::Instant;

use common::aligned::{Aligned, LINE};
use common::contenders::Time;
use half::{bf16, f16};
use ndscatter::{
    CallingThread, DType, Element, Execution, InstructionSet, Layout, Reduction, Scatter,
    ScatterPlan, Schedule, TensorView, TensorViewMut,
};
use num_complex::Complex;

/// Bytes of a row. Two rows fit in any first-level cache.
const ROW_BYTES: usize = 4096;

/// Rows of updates in one call.
const TUPLES: usize = 4096;

const REDUCTIONS: [Reduction; 5] = [
    Reduction::Add,
    Reduction::Sub,
    Reduction::Mul,
    Reduction::Min,
    Reduction::Max,
];

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)) {
        Ok(options) => {
            print(&all(options.rounds), options.csv);
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    rounds: usize,
    csv: bool,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut rounds, mut csv, mut is_bench) = (30, false, false);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--bench" => is_bench = true,
                "--csv" => csv = true,
                "--rounds" => match args.next().and_then(|value| value.parse().ok()) {
                    Some(value @ 1..) => rounds = value,
                    _ => return Err("`--rounds` needs a number of at least 1".into()),
                },
                other => {
                    return Err(format!(
                        "unknown argument `{other}`; use `--rounds n` or `--csv`"
                    ));
                }
            }
        }
        // `cargo test` runs benches too, without `--bench`. One round checks the results.
        let rounds = if is_bench { rounds } else { 1 };
        Ok(Self { rounds, csv })
    }
}

/// Times of the kernels of one reduction and type.
struct Row {
    dtype: DType,
    reduction: Reduction,
    /// Nanoseconds per cache line, for each available instruction set.
    times: Vec<f64>,
}

fn all(rounds: usize) -> Vec<Row> {
    [
        kernels::<i8>(rounds, |i| i as i8),
        kernels::<i16>(rounds, i16::from),
        kernels::<i32>(rounds, i32::from),
        kernels::<i64>(rounds, i64::from),
        kernels::<u8>(rounds, |i| i),
        kernels::<u16>(rounds, u16::from),
        kernels::<u32>(rounds, u32::from),
        kernels::<u64>(rounds, u64::from),
        kernels::<f16>(rounds, f16::from),
        kernels::<bf16>(rounds, bf16::from),
        kernels::<f32>(rounds, f32::from),
        kernels::<f64>(rounds, f64::from),
        kernels::<bool>(rounds, |i| i % 2 == 1),
        kernels::<Complex<f32>>(rounds, |i| Complex::new(i.into(), 0.0)),
        kernels::<Complex<f64>>(rounds, |i| Complex::new(i.into(), 0.0)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Times all kernels of a type. `value` converts a small number to the type.
fn kernels<T>(rounds: usize, value: fn(u8) -> T) -> Vec<Row>
where
    T: Element + PartialEq + Debug,
{
    let len = ROW_BYTES / size_of::<T>();
    let plan = plan(len);
    let mut rows = Rows::new(len, value);
    let row = |&reduction: &Reduction| {
        // Sums change by one per row, and products do not change. No value becomes denormal or
        // infinite, because arithmetic on such values is slower.
        let same = !matches!(reduction, Reduction::Min | Reduction::Max);
        let update = |i: usize| value(if same { 1 } else { (i % 7) as u8 });
        rows.fill_updates(update);
        let times = times(&plan, &mut rows, reduction, rounds)?;
        Some(Row {
            dtype: T::DTYPE,
            reduction,
            times,
        })
    };
    REDUCTIONS.iter().filter_map(row).collect()
}

/// Makes a plan whose tuples all name row 0.
fn plan(len: usize) -> ScatterPlan {
    let indices = [0_i64; TUPLES];
    let indices = TensorView::contiguous(&indices, &[TUPLES, 1]).expect("one index per tuple");
    (Scatter::nd().plan(Layout::contiguous(&[1, len]), indices)).expect("row 0")
}

/// Returns the minima over interleaved rounds, in nanoseconds per cache line. Returns `None` if
/// the type does not have the reduction.
fn times<T>(
    plan: &ScatterPlan,
    rows: &mut Rows<T>,
    reduction: Reduction,
    rounds: usize,
) -> Option<Vec<f64>>
where
    T: Element + PartialEq + Debug,
{
    let sets = InstructionSet::available();
    let mut samples = vec![Vec::with_capacity(rounds); sets.len()];
    run(plan, rows, reduction, InstructionSet::Portable)?;
    let expected = rows.parts().0.to_vec();
    for _ in 0..rounds {
        for (samples, &set) in samples.iter_mut().zip(sets) {
            samples.push(run(plan, rows, reduction, set)?);
            let result = rows.parts().0;
            assert_eq!(result, expected, "{} {reduction} on {set}", T::DTYPE);
        }
    }
    let units = (TUPLES * ROW_BYTES / LINE) as f64;
    let minima = samples.into_iter().map(|list| Time::of(list).min / units);
    Some(minima.collect())
}

/// Returns the nanoseconds of one call on fresh data.
fn run<T: Element>(
    plan: &ScatterPlan,
    rows: &mut Rows<T>,
    reduction: Reduction,
    set: InstructionSet,
) -> Option<f64> {
    let execution = Execution::new()
        .pool(&CallingThread)
        .force_schedule(Schedule::Serial)
        .force_instruction_set(set);
    rows.reset_data();
    let (data, updates) = rows.parts();
    let (data_shape, shape) = ([1, data.len()], [TUPLES, data.len()]);
    let target = TensorViewMut::contiguous(data, &data_shape).expect("one row");
    let updates = TensorView::strided(updates, 0, &shape, &[0, 1]).expect("one row");
    let start = Instant::now();
    let run = plan.run().reduction(reduction).execution(execution);
    run.in_place(target, updates).ok()?;
    Some(start.elapsed().as_secs_f64() * 1e9)
}

/// The row of data and the row of updates, in one allocation. Both begin on a cache line, at
/// different offsets in their pages: a load waits for an earlier store to an equal offset in
/// another page.
struct Rows<T> {
    memory: Aligned<T>,
    len: usize,
    /// Data before each call.
    fresh: Vec<T>,
}

impl<T: Element> Rows<T> {
    fn new(len: usize, value: fn(u8) -> T) -> Self {
        Self {
            // Data, a gap of half a row, updates.
            memory: Aligned::new(value(0), 2 * len + len / 2),
            len,
            fresh: (0..len).map(|i| value((i % 5) as u8)).collect(),
        }
    }

    /// Returns data and updates.
    fn parts(&mut self) -> (&mut [T], &mut [T]) {
        let (data, rest) = self.memory.split_at_mut(self.len);
        (data, &mut rest[self.len / 2..])
    }

    fn fill_updates(&mut self, value: impl Fn(usize) -> T) {
        let (_, updates) = self.parts();
        for (i, update) in updates.iter_mut().enumerate() {
            *update = value(i);
        }
    }

    fn reset_data(&mut self) {
        self.memory[..self.len].copy_from_slice(&self.fresh);
    }
}

fn print(rows: &[Row], csv: bool) {
    let sets = InstructionSet::available();
    let (start, between, end) = if csv {
        ("", ",", "")
    } else {
        ("| ", " | ", " |")
    };
    let line = |cells: Vec<String>| println!("{start}{}{end}", cells.join(between));
    let names = sets.iter().map(ToString::to_string);
    let head = ["element".to_string(), "reduction".into()];
    line(head.into_iter().chain(names).collect());
    if !csv {
        println!("{}|", "|---".repeat(sets.len() + 2));
    }
    for row in rows {
        let name = [row.dtype.to_string(), row.reduction.to_string()];
        let times = row.times.iter().map(|time| format!("{time:.3}"));
        line(name.into_iter().chain(times).collect());
    }
}
