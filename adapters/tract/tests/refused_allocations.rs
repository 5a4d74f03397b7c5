//! Each memory allocation of ndscatter fails once during the run of a model. The run returns an error,
//! or the right result, and data that another owner holds does not change.

mod common;
#[path = "../../refusals/refusals.rs"]
mod refusals;

use common::{Case, Random, constant, like, same, text};
use tract_onnx::prelude::*;

/// Crates whose allocations fail, and the smallest size of such an allocation. The adapter's own
/// allocations are those of kept plans, which use `Arc` and end the process if there is no memory.
const WATCHED: [(&str, usize); 1] = [("ndscatter", 0)];

/// Runs a node with each allocation failing once. The node has
/// fed indices, and then constant ones, for which its first run makes a plan.
fn check(op: &'static str, reduction: Option<&str>, tensors: &[Tensor]) {
    let attributes: Vec<_> = reduction
        .map(|name| text("reduction", name))
        .into_iter()
        .collect();
    for is_constant in [false, true] {
        let is_fed = |place: usize| !is_constant || place != 1;
        let inputs = tensors.iter().enumerate().map(|(place, tensor)| {
            if is_fed(place) {
                like(tensor)
            } else {
                constant(tensor)
            }
        });
        let case = Case {
            op,
            attributes: attributes.clone(),
            inputs: inputs.collect(),
        };
        let arguments = || {
            let fed = tensors
                .iter()
                .enumerate()
                .filter(|(place, _)| is_fed(*place));
            let fed: TVec<TValue> = fed
                .map(|(_, tensor)| tensor.clone().into_tvalue())
                .collect();
            (case.load(true).expect("a valid model"), fed)
        };
        let (model, fed) = arguments();
        let expected = model.run(fed).expect("memory")[0].clone();
        for is_shared in [false, true] {
            let call = |(model, fed): (Arc<TypedRunnableModel>, TVec<TValue>)| {
                let kept = is_shared.then(|| fed.clone());
                let result = model.run(fed);
                // The data are the first input.
                let kept = kept.is_none_or(|kept| same(&kept[0], &tensors[0]));
                assert!(kept, "{op}: the data of another owner have changed");
                result
            };
            refusals::each(arguments, call, |found| same(&found[0], &expected));
        }
    }
}

#[test]
fn each_allocation_of_ndscatter_can_fail() {
    let mut random = Random::new(5);
    for (rank, rows, tuples) in refusals::TABLES {
        let shape = |rows| refusals::table(rank, rows);
        let rows = usize::from(rows);
        let data = random.tensor(DatumType::F32, &shape(rows));
        let updates = random.tensor(DatumType::F32, &shape(tuples));
        let at = random.indices(&[tuples, 1], &[rows]);
        let nd = [data.clone(), at, updates.clone()];
        let at = random.indices(&shape(tuples), &[rows]);
        let elements = [data, at, updates];
        for reduction in common::REDUCTIONS {
            check("ScatterND", Some(reduction), &nd);
        }
        check("ScatterElements", Some("add"), &elements);
        check("GatherND", None, &nd[..2]);
        check("GatherElements", None, &elements[..2]);
    }
    refusals::assert_that_all_crates_failed();
}
