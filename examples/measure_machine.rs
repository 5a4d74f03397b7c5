//! Measures this machine and writes what it found, for programs to choose schedules by.
//!
//! `cargo run --release --example measure_machine -- FILE`, with nothing else running;
//! then run programs with `NDSCATTER_MACHINE=FILE`.

use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use ndscatter::{Machine, MachineError};

/// Measures this machine, for programs to choose schedules by.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where the machine is written; without, it is only measured.
    file: Option<PathBuf>,
}

fn main() -> Result<(), MachineError> {
    let arguments = Arguments::parse();
    let start = Instant::now();
    let machine = Machine::measure();
    println!("{machine}, measured in {:.0?}", start.elapsed());
    if let Some(file) = arguments.file {
        machine.write(&file)?;
        println!("use it with NDSCATTER_MACHINE={}", file.display());
    }
    Ok(())
}
