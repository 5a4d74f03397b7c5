//! The command line of `ratios`.

use std::num::NonZero;
use std::str::FromStr;

use super::workloads::{HISTOGRAMS, WORKLOADS};

/// What `ratios` was asked for; its own page says what each means.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) only: Vec<String>,
    pub(crate) rounds: usize,
    pub(crate) threads: usize,
    pub(crate) schedules: bool,
    pub(crate) then_sum: bool,
    pub(crate) check: bool,
}

impl Options {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            only: Vec::new(),
            rounds: 15,
            threads: std::thread::available_parallelism().map_or(1, NonZero::get),
            schedules: false,
            then_sum: false,
            check: false,
        };
        let mut is_bench = false;
        while let Some(flag) = args.next() {
            match flag.as_str() {
                "--only" => {
                    let names: String = value(&flag, args.next())?;
                    options.only = names.split(',').map(Into::into).collect();
                }
                "--rounds" => options.rounds = value(&flag, args.next())?,
                "--threads" => options.threads = value(&flag, args.next())?,
                "--schedules" => options.schedules = true,
                "--then-sum" => options.then_sum = true,
                "--check" => options.check = true,
                "--bench" => is_bench = true,
                other => return Err(format!("there is no argument {other}")),
            }
        }
        // `cargo test` runs benches too, and is content with correct results.
        options.check |= !is_bench;
        if options.rounds == 0 {
            return Err("--rounds must be at least 1".into());
        }
        options.check_names()?;
        Ok(options)
    }

    /// Starts the pool that they ask for; `None`, with a line that says why,
    /// where they could not be read.
    pub(crate) fn start(parsed: Result<Self, String>) -> Option<Self> {
        let options = (parsed.inspect_err(|message| eprintln!("{message}"))).ok()?;
        (rayon::ThreadPoolBuilder::new().num_threads(options.threads))
            .build_global()
            .expect("no pool has been started before");
        Some(options)
    }

    fn check_names(&self) -> Result<(), String> {
        let known = |name: &String| {
            WORKLOADS.iter().any(|w| w.name == name) || HISTOGRAMS.iter().any(|h| h.name == name)
        };
        match self.only.iter().find(|name| !known(name)) {
            Some(name) => Err(format!("there is no workload {name}")),
            None => Ok(()),
        }
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }
}

fn value<T: FromStr>(flag: &str, value: Option<String>) -> Result<T, String> {
    value
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| format!("{flag} wants a value"))
}
