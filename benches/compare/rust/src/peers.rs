//! The runtimes that take part.

mod burn;
mod candle;
mod onnx;
mod rten;
mod tract;

use crate::common::contest::Entrant;
use crate::common::inputs::Inputs;
use crate::common::rows::Rows;
use crate::ours::Ours;

/// Name and package of each contender.
pub(crate) const CONTENDERS: [(&str, &str); 5] = [
    ("ndscatter", "ndscatter"),
    ("candle", "candle-core"),
    ("tract", "tract-core"),
    ("rten", "rten"),
    ("burn", "burn-flex"),
];

/// Creates all contenders for one workload, in the order of [`CONTENDERS`].
pub(crate) fn entrants<'a>(
    inputs: &'a Inputs,
    rows: &'a Rows<'a>,
    threads: usize,
) -> [Box<dyn Entrant + 'a>; CONTENDERS.len()] {
    [
        Box::new(Ours(inputs)),
        Box::new(candle::Candle::new(rows)),
        Box::new(tract::Tract::new(rows)),
        Box::new(rten::Rten::new(rows, threads)),
        Box::new(burn::Burn::new(rows)),
    ]
}
