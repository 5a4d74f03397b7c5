//! The bits of large nodes at several numbers of threads.

#![allow(
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "sizes of tests are small"
)]

mod common;

use common::{Case, Random, constant, integer, like, same, text};
use tract_onnx::prelude::*;

const THREADS: [usize; 3] = [1, 2, 8];

/// Floats whose sum depends on the order of the additions.
fn floats(random: &mut Random, shape: &[usize]) -> Tensor {
    let count = shape.iter().product();
    let values: Vec<f32> = (0..count)
        .map(|_| (random.below(1 << 20) as f32 - 5e5) * (random.below(1000) as f32).exp2().min(1e9))
        .collect();
    Tensor::from_shape(shape, &values).expect("a value per element")
}

fn assert_same_bits(
    op: &'static str,
    attributes: Vec<tract_onnx::pb::AttributeProto>,
    tensors: &[Tensor],
) {
    for is_constant in [false, true] {
        let inputs = tensors.iter().enumerate().map(|(place, tensor)| {
            if is_constant && place == 1 {
                constant(tensor)
            } else {
                like(tensor)
            }
        });
        let case = Case {
            op,
            attributes: attributes.clone(),
            inputs: inputs.collect(),
        };
        let model = case.load(true).expect("a valid model");
        let run = |threads: usize, is_shared: bool| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("a pool");
            let given = tensors
                .iter()
                .enumerate()
                .filter(|(place, _)| !is_constant || *place != 1);
            let given: TVec<TValue> = given
                .map(|(_, tensor)| tensor.clone().into_tvalue())
                .collect();
            let _kept = is_shared.then(|| given.clone());
            let found = pool.install(|| model.run(given)).expect("a result");
            found.into_iter().next().expect("a result").into_tensor()
        };
        let expected = run(1, false);
        for threads in THREADS {
            for is_shared in [false, true] {
                let found = run(threads, is_shared);
                assert!(
                    same(&found, &expected),
                    "{op}, {threads} threads, shared {is_shared}"
                );
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(3);
    let tensors = [
        floats(&mut random, &[3000, 64]),
        random.indices(&[20_000, 1], &[3000]),
        floats(&mut random, &[20_000, 64]),
    ];
    assert_same_bits("ScatterND", vec![text("reduction", "add")], &tensors);

    let tensors = [
        floats(&mut random, &[2000, 32]),
        random.indices(&[9000, 32], &[2000]),
        floats(&mut random, &[9000, 32]),
    ];
    let attributes = vec![text("reduction", "add"), integer("axis", 0)];
    assert_same_bits("ScatterElements", attributes, &tensors);

    let tensors = [
        floats(&mut random, &[5000, 64]),
        random.indices(&[20_000, 1], &[5000]),
    ];
    assert_same_bits("GatherND", vec![], &tensors);
}
