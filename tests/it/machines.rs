//! The crate's choice of schedules, compared with recorded times. `benches/machines/` contains a
//! record for each measured machine. The test needs no such machine.

// The modules of the records, shared with `benches/record.rs`.
#[path = "../../benches/record/file.rs"]
#[allow(
    dead_code,
    reason = "the bench writes records, and the tests only read them"
)]
pub(crate) mod file;
#[path = "../../benches/record/names.rs"]
mod names;
#[path = "../../benches/record/problem.rs"]
#[allow(dead_code, reason = "the bench uses more of this module")]
mod problem;
#[path = "../../benches/common/random.rs"]
#[allow(dead_code, reason = "other benches use more of this module")]
pub(crate) mod random;

use std::path::PathBuf;

use crate::common::repository;
use file::{Call, DEFAULT, Entry, Record};
use ndscatter::{Execution, Layout, Machine, Pool, ScatterPlan, TensorView};
use problem::Problem;

/// Ratios of the chosen call's time to the fastest call's time: the median, the 95th percentile,
/// and the worst.
type Limits = [f64; 3];

/// Upper limits of the ratios, for (all workers, planned). They prevent a regression.
const LIMITS: [(bool, bool, Limits); 4] = [
    (false, false, [1.0, 1.15, 2.4]),
    (false, true, [1.0, 1.25, 2.4]),
    (true, false, [1.0, 1.25, 2.4]),
    (true, true, [1.0, 1.4, 3.2]),
];

/// Upper limits of the ratios on Zen 5, which has the rates that were fitted to Zen 4. Refitted
/// rates choose better schedules for the problems of the record, and slower schedules for the
/// workloads of the comparison (`docs/notes/2026-11-23-costs.md`).
const ZEN_5: [(bool, bool, Limits); 4] = [
    (false, false, [1.0, 1.3, 2.6]),
    (false, true, [1.0, 1.45, 3.3]),
    (true, false, [1.0, 1.45, 2.6]),
    (true, true, [1.0, 1.6, 2.5]),
];

/// Upper limits of the ratios on a Xeon (Emerald Rapids) with 16 workers, whose rates are those of
/// another Xeon (Skylake). Its samples vary by up to a factor of 2, also with one worker, because
/// it is a virtual machine (`docs/notes/2026-11-26-sixteen-cores.md`).
const EMERALD_RAPIDS_16: [(bool, bool, Limits); 4] = [
    (false, false, [1.0, 1.2, 2.1]),
    (false, true, [1.0, 1.35, 2.8]),
    (true, false, [1.0, 1.45, 2.6]),
    (true, true, [1.0, 1.6, 2.8]),
];

/// A pool that reports this many workers. The tests explain calls and do not run them.
pub(crate) struct Asked(pub(crate) usize);

impl Pool for Asked {
    fn workers(&self) -> Option<usize> {
        Some(self.0)
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        // Tasks check long lists of indices, also for an explanation.
        (0..tasks).for_each(task);
    }
}

fn records() -> Vec<PathBuf> {
    let folder = repository().join("benches/machines");
    let files = std::fs::read_dir(folder).expect("the folder of records");
    let paths = files.map(|file| file.expect("a file").path());
    paths
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect()
}

/// Returns the recorded machine, from its caches and the name of its processor.
pub(crate) fn machine(recorded: &file::Machine) -> Machine {
    let level = |level: u8| {
        let caches = recorded.caches.iter();
        let found = caches.filter(|cache| cache.0 == level).map(|cache| cache.1);
        found.max().unwrap_or(0)
    };
    let [first, second, last] = [level(1), level(2), level(3)];
    let names = [("AMD", "amd"), ("Intel", "intel")];
    let vendor = names
        .iter()
        .find(|name| recorded.processor.contains(name.0));
    let vendor = vendor.map_or("other", |name| name.1);
    let text = format!("caches = {first} {second} {last}\nvendor = {vendor}");
    text.parse().expect("a valid machine")
}

/// A choice: the name of a schedule, and the number of tasks.
type Choice = (String, usize);

/// A problem with its indices and a plan. The machines share them, because the draw and the plan of
/// millions of indices take long.
struct Drawn {
    problem: Problem,
    indices: Vec<i64>,
    plan: ScatterPlan,
}

impl Drawn {
    fn new(problem: Problem) -> Self {
        let indices = problem.indices(0);
        let shapes = problem.shapes();
        let tuples = TensorView::contiguous(&indices, &shapes.indices).expect("indices");
        let plan = (problem.operator()).plan(Layout::contiguous(&shapes.data), tuples);
        Self {
            plan: plan.expect("problems are valid"),
            problem,
            indices,
        }
    }
}

/// Returns the choices of this version for a problem, for a one-shot call and for a run of a plan.
fn chosen(drawn: &Drawn, workers: usize, machine: &Machine) -> [Choice; 2] {
    let pool = Asked(workers);
    let execution = Execution::new().pool(&pool).machine(machine);
    let problem = &drawn.problem;
    let shapes = problem.shapes();
    let indices = TensorView::contiguous(&drawn.indices, &shapes.indices).expect("indices");
    let output = Layout::contiguous(&shapes.data);
    let scatter = problem.operator().execution(execution);
    let once = scatter.explain(output, indices, problem.dtype, problem.in_place);
    let run = drawn.plan.run().execution(execution);
    let planned = run.explain(problem.dtype, problem.in_place);
    [once, planned].map(|explained| {
        let explained = explained.expect("problems are valid");
        (explained.schedule().as_str().into(), explained.tasks())
    })
}

/// Returns the ratio of the chosen call's time to the fastest time. The recorded time of the
/// default call counts too, if the recording version made the same choice. A default call may do
/// more than its schedule.
fn regret(entry: &Entry, chosen: &Choice, workers: usize, is_planned: bool) -> f64 {
    let (chosen, tasks) = chosen;
    let of = |schedule: &str, workers: usize| Call {
        schedule: schedule.into(),
        workers,
        is_planned,
    };
    let among = |call: &Call| entry.regret_among(call, workers);
    let (alone, all) = (of(chosen, 1), of(chosen, workers));
    // Where several workers copy data, the serial schedule has a separate time.
    let by_schedule = match (*tasks, chosen.as_str()) {
        (1, "serial") | (2.., _) => among(&all).or_else(|| among(&alone)),
        _ => among(&alone).or_else(|| among(&all)),
    };
    let by_default = among(&of(DEFAULT, workers)).filter(|_| entry.chosen.contains(&all));
    let found = by_schedule.into_iter().chain(by_default).reduce(f64::min);
    found.unwrap_or_else(|| panic!("{:?}: the record has no time of {chosen}", entry.problem))
}

/// A record, the machine that it describes, and the choices for this machine.
struct Recorded {
    path: PathBuf,
    record: Record,
    machine: Machine,
    /// For each row of [`LIMITS`]: the ratios, with the number of the problem and the choice.
    regrets: [Vec<(f64, usize, Choice)>; 4],
}

impl Recorded {
    fn read(path: PathBuf) -> Self {
        let record = Record::read(&path).unwrap_or_else(|message| panic!("{message}"));
        assert!(record.entries.len() >= 300, "{}", path.display());
        Self {
            machine: machine(&record.machine),
            regrets: [const { Vec::new() }; 4],
            path,
            record,
        }
    }

    /// Adds the ratios of a problem, if the machine has recorded the problem.
    fn add(&mut self, drawn: &Drawn) {
        let problem = &drawn.problem;
        let mut entries = self.record.entries.iter();
        let Some(entry) = entries.find(|entry| entry.problem.number == problem.number) else {
            return;
        };
        assert_eq!(
            *problem, entry.problem,
            "the record is from this version of the problems"
        );
        for (all, workers) in [1, self.record.machine.threads].into_iter().enumerate() {
            let choices = chosen(drawn, workers, &self.machine);
            for (kind, chosen) in choices.into_iter().enumerate() {
                let regret = regret(entry, &chosen, workers, kind == 1);
                self.regrets[2 * all + kind].push((regret, problem.number, chosen));
            }
        }
    }

    fn limits(&self) -> [(bool, bool, Limits); 4] {
        match self.path.file_stem().and_then(|name| name.to_str()) {
            Some("zen-5-2") => ZEN_5,
            Some("xeon-emerald-rapids-16") => EMERALD_RAPIDS_16,
            _ => LIMITS,
        }
    }

    /// Prints the ratios, and compares them with the limits.
    fn check(mut self) {
        let path = self.path.display();
        assert_eq!(self.regrets[0].len(), self.record.entries.len(), "{path}");
        let limits = self.limits();
        for ((is_shared, is_planned, limits), regrets) in limits.into_iter().zip(&mut self.regrets)
        {
            regrets.sort_by(|a, b| a.0.total_cmp(&b.0));
            let reached = percentiles(regrets.iter().map(|regret| regret.0).collect());
            let unseen = regrets.iter().filter(|(_, number, _)| number % 3 == 0);
            let unseen = percentiles(unseen.map(|regret| regret.0).collect());
            println!(
                "{path}: shared {is_shared}, planned {is_planned}: {reached:.2?}, held out {unseen:.2?}"
            );
            let worst = &regrets[regrets.len().saturating_sub(9)..];
            let is_kept = reached.iter().zip(limits).all(|(&r, limit)| r <= limit);
            assert!(
                is_kept,
                "{path}: {reached:.2?} exceeds {limits:?}: {worst:?}"
            );
        }
    }
}

/// Returns the median, the 95th percentile and the worst of sorted ratios.
fn percentiles(sorted: Vec<f64>) -> Limits {
    [50, 95, 100].map(|percent| sorted[(sorted.len() - 1) * percent / 100])
}

/// The limits hold for all problems together. The test therefore needs the features of all problems.
/// All recorded machines are x86-64. Other processors have other kernels, and choose other schedules.
#[test]
fn choices_are_good_on_every_machine_recorded() {
    let has_all_problems = cfg!(all(feature = "float16", feature = "narrow-integers"));
    if !has_all_problems || !cfg!(target_arch = "x86_64") {
        return;
    }
    let mut machines: Vec<_> = records().into_iter().map(Recorded::read).collect();
    assert!(!machines.is_empty(), "no machine has been recorded");
    for problem in Problem::all() {
        let drawn = Drawn::new(problem);
        for machine in &mut machines {
            machine.add(&drawn);
        }
    }
    machines.into_iter().for_each(Recorded::check);
}
