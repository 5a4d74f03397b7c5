//! `SELECT city, SUM(amount), COUNT(amount) GROUP BY city`, on columns with nulls. The columns are
//! buffers of Apache Arrow: values, and bitmaps whose bit is 0 where a row is null. A row without a
//! city or without an amount gets the key -1, which the scatter skips. A city without an amount has
//! the sum null.

use arrow_buffer::{NullBuffer, ScalarBuffer};
use ndscatter::{Bounds, Layout, Reduction, Scatter, ScatterError, TensorView, TensorViewMut};

/// A column of an Arrow array: values, and the bitmap of the rows that are not null.
struct Column<T: arrow_buffer::ArrowNativeType> {
    values: ScalarBuffer<T>,
    nulls: Option<NullBuffer>,
}

fn main() -> Result<(), ScatterError> {
    // The codes of a dictionary of cities. The rows 2 and 5 have no city, and row 4 has no amount.
    let names = ["Bergen", "Oslo", "Tromsø"];
    let cities = Column {
        values: ScalarBuffer::from(vec![1_i32, 0, 0, 1, 2, 0, 1]),
        nulls: Some(NullBuffer::from(vec![
            true, true, false, true, true, false, true,
        ])),
    };
    let amounts = Column {
        values: ScalarBuffer::from(vec![10.0, 2.5, 99.0, 20.0, 0.0, 99.0, 12.0]),
        nulls: Some(NullBuffer::from(vec![
            true, true, true, true, false, true, true,
        ])),
    };

    let (sums, counts) = group_sums(&cities, &amounts, names.len())?;
    println!("city         sum  count");
    for (row, name) in names.iter().enumerate() {
        let is_null = sums.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let sum = if is_null {
            String::from("null")
        } else {
            sums.values[row].to_string()
        };
        println!("{name:10}{sum:>6}{:>7}", counts[row]);
    }
    assert_eq!(sums.values[..], [2.5, 42.0, 0.0], "sums");
    assert_eq!(counts, [1, 3, 0], "counts");
    Ok(())
}

/// Returns the sum of the amounts of each group, and the number of these amounts.
fn group_sums(
    keys: &Column<i32>,
    amounts: &Column<f64>,
    groups: usize,
) -> Result<(Column<f64>, Vec<u64>), ScatterError> {
    let nulls = NullBuffer::union(keys.nulls.as_ref(), amounts.nulls.as_ref());
    let present: Vec<i32>;
    let keys = match nulls {
        None => &keys.values[..],
        // A null row may have any value, so its key is replaced.
        Some(nulls) => {
            let rows = keys.values.iter().zip(&nulls);
            present = rows
                .map(|(&key, is_valid)| if is_valid { key } else { -1 })
                .collect();
            &present[..]
        }
    };

    // Keys that are no group (-1, and codes above the last) are skipped. One plan serves both
    // scatters, although their element types differ.
    let plan = Scatter::along(0)
        .reduction(Reduction::Add)
        .bounds(Bounds::Skip)
        .negative_indices(false)
        .plan(Layout::line(groups), TensorView::from(keys))?;
    let (mut sums, mut counts) = (vec![0.0; groups], vec![0_u64; groups]);
    plan.run().in_place(
        TensorViewMut::from(&mut sums),
        TensorView::from(&amounts.values[..]),
    )?;
    plan.run().in_place(
        TensorViewMut::from(&mut counts),
        TensorView::splat(&1, &[keys.len()])?,
    )?;

    let is_valid: Vec<bool> = counts.iter().map(|&count| count > 0).collect();
    let sums = Column {
        values: ScalarBuffer::from(sums),
        nulls: Some(NullBuffer::from(is_valid)),
    };
    Ok((sums, counts))
}
