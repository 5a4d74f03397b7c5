//! A histogram of the letters in this source file. One value stands for all updates (`splat`). The
//! sizes are known at run time only. Keys of other characters are out of bounds, so they are
//! skipped, and the plan reports their number.

use ndscatter::{Bounds, Layout, Reduction, Scatter, ScatterError, TensorView, TensorViewMut};

const LETTERS: std::ops::RangeInclusive<u8> = b'a'..=b'z';

fn main() -> Result<(), ScatterError> {
    let text = include_bytes!("histogram.rs");
    // 'a' is bin 0. Spaces and digits have negative keys. Braces have keys that are too large.
    let keys: Vec<i16> = text
        .iter()
        .map(|&byte| i16::from(byte) - i16::from(b'a'))
        .collect();
    let mut counts = vec![0_u64; LETTERS.len()];

    let plan = Scatter::along(0)
        .reduction(Reduction::Add)
        .bounds(Bounds::Skip)
        .negative_indices(false)
        .plan(Layout::line(counts.len()), TensorView::from(&keys))?;
    plan.run().in_place(
        TensorViewMut::from(&mut counts),
        TensorView::splat(&1, &[keys.len()])?,
    )?;

    for (letter, &count) in LETTERS.zip(&counts) {
        let by_hand = text.iter().filter(|&&byte| byte == letter).count();
        assert_eq!(count, by_hand as u64, "{}", char::from(letter));
        println!("{} {}", char::from(letter), "#".repeat(by_hand / 4));
    }
    println!("{} characters are not letters", plan.skipped());
    let letters: u64 = counts.iter().sum();
    assert_eq!(
        letters + plan.skipped() as u64,
        text.len() as u64,
        "every character is counted or skipped"
    );
    Ok(())
}
