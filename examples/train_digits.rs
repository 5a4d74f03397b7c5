//! An embedding that learns to classify digits. Each of 64 pixels has 17 intensities, and each
//! intensity has a row of ten scores. The scores of an image are the sum of its pixels' rows. The
//! gradient passes back through the sum, then through the lookup into the table.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "pixel values and their number are small"
)]

use std::error::Error;
use std::path::Path;

use ndscatter::{Forward, Gather, Layout, Reduction, Scatter, TensorView};
use npyz::{AutoSerialize, Deserialize, NpyFile};

const PIXELS: usize = 64;
const INTENSITIES: usize = 17;
const DIGITS: usize = 10;
const STEPS: usize = 30;
const RATE: f64 = 0.3;

fn read<T: Deserialize + AutoSerialize>(name: &str) -> Result<Vec<T>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cli/data/digits");
    let file = std::fs::read(folder.join(name))?;
    Ok(NpyFile::new(&file[..])?.into_vec()?)
}

/// Returns the mean loss (cross entropy) of the scores, the number of digits classified correctly,
/// and the gradient of the loss.
fn judge(scores: &[f32], labels: &[i64]) -> (f32, usize, Vec<f32>) {
    let mut slopes = Vec::with_capacity(scores.len());
    let (mut loss, mut right) = (0.0, 0);
    for (scores, &label) in scores.chunks_exact(DIGITS).zip(labels) {
        let best = (0..).zip(scores).max_by(|a, b| a.1.total_cmp(b.1));
        right += usize::from(best.map(|(digit, _)| digit) == Some(label));
        let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let total: f32 = scores.iter().map(|score| (score - most).exp()).sum();
        for (digit, score) in (0..).zip(scores) {
            let chance = (score - most).exp() / total;
            let is_label = digit == label;
            if is_label {
                loss -= chance.ln();
            }
            slopes.push(chance - if is_label { 1.0 } else { 0.0 });
        }
    }
    (loss / labels.len() as f32, right, slopes)
}

fn main() -> Result<(), Box<dyn Error>> {
    let images: Vec<f32> = read("updates.npy")?;
    let labels: Vec<i64> = read("indices.npy")?;
    let count = labels.len();
    // Each pixel is a token: its position combined with its intensity of 0 to 16. `owners` is the
    // image of each token.
    let tokens: Vec<i64> = (images.iter().enumerate())
        .map(|(at, &intensity)| (at % PIXELS * INTENSITIES) as i64 + intensity as i64)
        .collect();
    let owners: Vec<i64> = (0..tokens.len()).map(|at| (at / PIXELS) as i64).collect();

    let table_shape = [PIXELS * INTENSITIES, DIGITS];
    let (rows_shape, scores_shape) = ([tokens.len(), DIGITS], [count, DIGITS]);
    // Everything that depends only on indices is computed once, for all steps.
    let lookup = Gather::along(0).plan(
        Layout::contiguous(&table_shape),
        TensorView::from(&tokens[..]),
    )?;
    let sum = Scatter::along(0).reduction(Reduction::Add);
    let none = vec![0.0_f32; count * DIGITS];
    let mut table = vec![0.0_f32; table_shape.iter().product()];

    let (mut first, mut last) = (None, (f32::INFINITY, 0));
    for step in 0..=STEPS {
        let rows = lookup
            .run()
            .allocate(TensorView::contiguous(&table, &table_shape)?)?;
        let zeros = TensorView::contiguous(&none, &scores_shape)?;
        // `forward` runs the scatter and keeps what its gradient needs. For a sum, that is the
        // plan.
        let (scores, saved) = sum.forward(zeros, TensorView::from(&owners[..]), rows.view())?;

        let (loss, right, slopes) = judge(&scores, &labels);
        if step % 5 == 0 {
            let percent = 100.0 * right as f32 / count as f32;
            println!("step {step:2}: loss {loss:.4}, {percent:.1} % correct");
        }
        assert!(loss < last.0, "the loss decreases");
        first.get_or_insert(loss);
        last = (loss, right);

        let slopes = TensorView::contiguous(&slopes, &scores_shape)?;
        let of_rows = saved.run().backward_updates(slopes, Forward::none(), 1.0)?;
        let of_rows = TensorView::contiguous(&of_rows, &rows_shape)?;
        // The factor multiplies the gradient: the learning rate, and the mean over images.
        let of_table = lookup.run().backward(of_rows, -RATE / count as f64)?;
        let moves = table.iter_mut().zip(of_table.iter());
        moves.for_each(|(value, change)| *value += change);
    }
    assert!(last.1 * 100 > count * 90, "more than 90 % are correct");
    Ok(())
}
