//! The gradient of an embedding lookup. The gradients of all tokens are added into the tokens' rows
//! of the table. A token that occurs twice adds twice. Every training step has the same batch, so
//! the plans are made once.

use ndscatter::{Gather, Layout, Reduction, Scatter, ScatterError, TensorView, TensorViewMut};

const VOCABULARY: usize = 5;
const WIDTH: usize = 2;
const RATE: f32 = 0.2;

fn main() -> Result<(), ScatterError> {
    let tokens = [3_i64, 0, 3, 1, 3, 4];
    // Target of each token's row. Token 3 occurs three times and has three targets.
    let targets = [
        6.0_f32, -1.0, 1.0, 1.0, 9.0, -4.0, 2.0, 0.5, 3.0, -1.0, 4.0, 8.0,
    ];

    // The plans read and check the tokens once, and compute everything that depends on them.
    let table_shape = [VOCABULARY, WIDTH];
    let layout = Layout::contiguous(&table_shape);
    let lookup = Gather::along(0).plan(layout, TensorView::from(&tokens))?;
    let gradient_of = Scatter::along(0).reduction(Reduction::Add);
    let gradient_of = gradient_of.plan(layout, TensorView::from(&tokens))?;
    assert!(gradient_of.has_duplicates()?, "token 3 occurs three times");

    let mut table = [0.0_f32; VOCABULARY * WIDTH];
    for _step in 0..100 {
        let rows = lookup
            .run()
            .allocate(TensorView::contiguous(&table, &table_shape)?)?;
        // The gradient of half the squared distance to the targets.
        let errors: Vec<f32> = rows
            .iter()
            .zip(&targets)
            .map(|(row, target)| row - target)
            .collect();
        let mut gradient = [0.0; VOCABULARY * WIDTH];
        gradient_of.run().in_place(
            TensorViewMut::contiguous(&mut gradient, &table_shape)?,
            TensorView::contiguous(&errors, &[tokens.len(), WIDTH])?,
        )?;
        let moves = table.iter_mut().zip(&gradient);
        moves.for_each(|(value, slope)| *value -= RATE * slope);
    }

    println!("{table:.3?}");
    // Row 3 converges to the mean of its targets. Token 2 does not occur, so row 2 stays zero.
    let expected = [1.0, 1.0, 2.0, 0.5, 0.0, 0.0, 6.0, -2.0, 4.0, 8.0];
    let is_near = |(value, expected): (&f32, &f32)| (value - expected).abs() < 1e-4;
    assert!(table.iter().zip(&expected).all(is_near), "{table:?}");
    Ok(())
}
