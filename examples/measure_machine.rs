//! Measures this machine and writes the result to a file. Programs use the file to choose
//! schedules.
//!
//! Run `cargo run --release --example measure_machine -- FILE` while no other program is running.
//! Then start programs with `NDSCATTER_MACHINE=FILE`.

use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use ndscatter::{Machine, MachineError};

/// Measures this machine, so that programs can choose schedules by its speed.
#[derive(Debug, Parser)]
struct Arguments {
    /// File for the result. Without it, the machine is only measured.
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
