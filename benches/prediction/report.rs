//! Prints the tables of predictions, in Markdown.

use ndscatter::Explanation;

use crate::WORKERS;
use crate::common::inputs::Form;
use crate::forecast::{Forecast, span};

/// Target of a call: its speed with 16 workers relative to one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// 10, for calls without a merge.
    Throughput,
    /// 6, for calls that merge partial results.
    Merged,
    /// No target: only the sequential order of the updates gives the bits.
    None,
}

impl Aim {
    fn speedup(self) -> f64 {
        match self {
            Self::Throughput => 10.0,
            Self::Merged => 6.0,
            Self::None => 0.0,
        }
    }
}

/// Maximum work of 16 workers together, relative to one worker.
const MOST_WORK: f64 = 1.3;

/// Position of the forecast with 16 workers. Targets apply to it.
const AIMED: usize = 1;

/// Prediction for one call.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) is_planned: bool,
    pub(crate) aim: Aim,
    /// Explanations for each number of workers.
    pub(crate) explanations: [Explanation; WORKERS.len()],
    /// Nanoseconds of one worker.
    pub(crate) one: f64,
    pub(crate) forecasts: [Forecast; WORKERS.len() - 1],
}

impl Row {
    fn aimed(&self) -> &Forecast {
        &self.forecasts[AIMED]
    }

    fn speedup(&self, forecast: &Forecast) -> f64 {
        self.one / forecast.time()
    }

    fn work(&self, forecast: &Forecast) -> f64 {
        forecast.work() / self.one
    }

    fn is_slow(&self) -> bool {
        self.speedup(self.aimed()) < self.aim.speedup()
    }

    fn is_wasteful(&self) -> bool {
        self.work(self.aimed()) > MOST_WORK
    }

    fn title(&self) -> [String; 3] {
        let call = if self.is_planned {
            "planned"
        } else {
            "one-shot"
        };
        [self.name.into(), self.form.to_string(), call.into()]
    }

    /// Names the schedule of one worker, and each number of workers from which on the schedule
    /// differs.
    fn schedules(&self) -> String {
        let mut text = String::new();
        let mut before = None;
        for (explanation, workers) in self.explanations.iter().zip(WORKERS) {
            let schedule = explanation.schedule();
            match before {
                None => text = schedule.to_string(),
                Some(before) if before == schedule => {}
                Some(_) => text.push_str(&format!("; from {workers} {schedule}")),
            }
            before = Some(schedule);
        }
        text
    }

    fn cells(&self) -> Vec<String> {
        let mut cells: Vec<_> = self.title().into();
        let aimed = self.aimed();
        cells.extend([self.schedules(), milliseconds(self.one)]);
        cells.extend(self.forecasts.iter().enumerate().map(|(at, forecast)| {
            marked(
                format!("{:.2}", self.work(forecast)),
                at == AIMED && self.is_wasteful(),
            )
        }));
        cells.extend([
            percent(aimed.serial / self.one),
            aimed.regions.len().to_string(),
            milliseconds(aimed.time()),
        ]);
        cells.extend(self.forecasts.iter().enumerate().map(|(at, forecast)| {
            marked(
                format!("{:.1}", self.speedup(forecast)),
                at == AIMED && self.is_slow(),
            )
        }));
        cells
    }

    /// Splits the time with 16 workers into shares that add up to 100 %.
    fn parts(&self) -> Vec<String> {
        let (aimed, mut cells) = (self.aimed(), Vec::from(self.title()));
        let (time, workers) = (aimed.time(), aimed.workers as f64);
        cells.extend([
            self.explanations[AIMED + 1].schedule().to_string(),
            format!("{:.1}", self.speedup(aimed)),
        ]);
        let shares = [
            self.one / workers,
            (aimed.work() - self.one) / workers,
            aimed.serial - aimed.serial / workers,
            aimed.imbalance(),
        ];
        cells.extend(shares.map(|share| percent(share / time)));
        cells
    }

    fn print_regions(&self) {
        let aimed = self.aimed();
        println!("\n{}", self.title().join(", "));
        let explained = self.explanations[AIMED + 1].to_string();
        let division = explained.lines().find(|line| line.contains("schedule"));
        println!("{}", division.unwrap_or_default());
        println!("  serial part: {} ms", milliseconds(aimed.serial));
        for tasks in &aimed.regions {
            let (sum, longest) = (
                tasks.iter().sum(),
                tasks.iter().copied().fold(0.0, f64::max),
            );
            println!(
                "  {} tasks: {} ms in total, longest {} ms, span {} ms",
                tasks.len(),
                milliseconds(sum),
                milliseconds(longest),
                milliseconds(span(tasks, aimed.workers)),
            );
        }
    }
}

/// All rows.
#[derive(Default)]
pub(crate) struct Report(Vec<Row>);

impl Report {
    pub(crate) fn add(&mut self, row: Row) {
        self.0.push(row);
    }

    pub(crate) fn print(&self, with_regions: bool) {
        let head = [
            "workload",
            "form",
            "call",
            "schedule",
            "one worker, ms",
            "work, 4",
            "16",
            "64",
            "serial part",
            "steps",
            "16 workers, ms",
            "speed, 4",
            "16",
            "64",
        ];
        print_table(&head, self.0.iter().map(Row::cells));
        for aim in [Aim::Throughput, Aim::Merged] {
            let of_aim = self.0.iter().filter(|row| row.aim == aim);
            let (rows, slow) = (of_aim.clone().count(), of_aim.filter(|row| row.is_slow()));
            println!(
                "\n{} of {rows} calls miss the target: {} times the speed of one worker with 16.",
                slow.count(),
                aim.speedup()
            );
        }
        let wasteful = self.0.iter().filter(|row| row.is_wasteful()).count();
        println!(
            "\n{wasteful} calls do more than {MOST_WORK} times the work of one worker, with 16.\n"
        );
        self.print_parts();
        if with_regions {
            self.0.iter().for_each(Row::print_regions);
        }
    }

    /// Prints the shares of the calls that miss a target.
    fn print_parts(&self) {
        let head = [
            "workload",
            "form",
            "call",
            "schedule",
            "speed, 16",
            "one worker / 16",
            "additional work",
            "serial part",
            "waiting",
        ];
        let missing = self
            .0
            .iter()
            .filter(|row| row.is_slow() || row.is_wasteful());
        print_table(&head, missing.map(Row::parts));
    }
}

fn milliseconds(nanoseconds: f64) -> String {
    format!("{:.3}", nanoseconds * 1e-6)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn marked(text: String, is_marked: bool) -> String {
    if is_marked {
        format!("**{text}**")
    } else {
        text
    }
}

/// Prints a table with padded cells.
fn print_table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let head: Vec<_> = head.iter().map(|&title| title.to_owned()).collect();
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..rows[0].len()).map(width).collect();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths);
        let line: String = cells
            .map(|(cell, width)| format!(" {cell:width$} |"))
            .collect();
        println!("|{line}");
        if number == 0 {
            let rules = widths
                .iter()
                .map(|width| format!("{}|", "-".repeat(width + 2)));
            println!("|{}", rules.collect::<String>());
        }
    }
}
