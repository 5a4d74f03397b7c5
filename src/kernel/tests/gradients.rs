//! Tests of the gradients of maxima with ties, for every instruction set of this machine and
//! several strides. The groups have 3, 5 or 40 updates. In tests, kernels count the ties of groups
//! of at least 20 updates in 64 bits, and the ties of smaller groups in 32 bits.

use crate::element::DType;
use crate::kernel::{
    GradientGroup, GradientTensors, InstructionSet, Kernels, Numbered, PerTuple, Shares, Sources,
};
use crate::reduction::Reduction;

fn numbered(values: &mut [f32], step: isize) -> Numbered {
    Numbered {
        base: values.as_mut_ptr().cast(),
        step,
    }
}

/// Computes the gradients for data and for `tuples` updates of one destination. A row has `len`
/// elements with the stride `step`. Updates 0, 3, 6 and so on are equal to data, and the other
/// updates are smaller.
fn ties(set: InstructionSet, len: usize, step: usize, tuples: usize) -> (Vec<f32>, Vec<f32>) {
    let row = len * step;
    let mut gradient: Vec<f32> = (0..row).map(|at| 1.0 + at as f32).collect();
    let mut data = vec![8.0; row];
    let mut updates: Vec<f32> = (0..tuples * row)
        .map(|at| {
            if (at / row).is_multiple_of(3) {
                8.0
            } else {
                -1.0
            }
        })
        .collect();
    let (mut of_data, mut of_updates) = (vec![9.0; row], vec![9.0; tuples * row]);
    let step = step.cast_signed();
    let sources = Sources {
        list: None,
        mask: 0,
        step: row.cast_signed(),
    };
    let listed = |run| Some(PerTuple { run, sources });
    let tensors = GradientTensors {
        len,
        grad_output: numbered(&mut gradient, step),
        data: Some(numbered(&mut data, step)),
        updates: listed(numbered(&mut updates, step)),
        grad_data: Some(numbered(&mut of_data, step)),
        grad_updates: listed(numbered(&mut of_updates, step)),
    };
    let group = GradientGroup {
        end: tuples,
        ..GradientGroup::default()
    };
    let shares = Shares {
        include_self: true,
        last_only: false,
        divides: false,
        smallest: false,
        factor: 2.0,
        factor_of_updates: 2.0,
    };
    let kernel = Kernels::gradient(DType::F32, Reduction::Max, set).expect("floats have a maximum");
    // SAFETY: the call has one group, with one destination and `tuples` sources. The tensors
    // `gradient`, `data` and `of_data` each have one row, for this destination. The tensors
    // `updates` and `of_updates` each have one row for each source.
    unsafe { kernel(&tensors, &[group], &shares) };
    (of_data, of_updates)
}

#[test]
fn ties_are_counted_whatever_their_number() {
    for &set in InstructionSet::available() {
        for len in [1, 3, 4, 16, 23] {
            for (step, tuples) in [(1, 3), (1, 40), (2, 5), (3, 40)] {
                let (of_data, of_updates) = ties(set, len, step, tuples);
                let row = len * step;
                let tied = 1 + tuples.div_ceil(3);
                let share = |at: usize| (1.0 + at as f32) / tied as f32 * 2.0;
                for (at, &got) in of_data.iter().enumerate() {
                    let expected = if at % step == 0 { share(at) } else { 9.0 };
                    assert!(got == expected, "{set:?}, {len}, {step}, {tuples}");
                }
                for (at, &got) in of_updates.iter().enumerate() {
                    let expected = match (at % row % step, at / row % 3) {
                        (0, 0) => share(at % row),
                        (0, _) => 0.0,
                        _ => 9.0,
                    };
                    assert!(got == expected, "{set:?}, {len}, {step}, {tuples}");
                }
            }
        }
    }
}
