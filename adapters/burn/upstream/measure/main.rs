//! Compares a released burn-flex with the patched one, on the fifteen workloads of ndscatter. The
//! script `measure.sh` builds this program.

use std::process::ExitCode;

use common::contest::Entrant;
use common::hosts::Host;
use common::inputs::Inputs;
use common::rows::Rows;

mod common;
/// Calls of the patched burn-flex: `released`, with the other crate.
mod patched_kernels;
mod released;

fn main() -> ExitCode {
    common::hosts::main::<Patch>()
}

struct Patch;

impl Host for Patch {
    const NAME: &'static str = "burn-flex 0.23.0-pre.1";

    fn entrants<'a>(_: &'a Inputs, rows: &'a Rows<'a>) -> [Box<dyn Entrant + 'a>; 2] {
        [Box::new(released::Burn::new(rows)), Box::new(patched_kernels::Burn::new(rows))]
    }
}
