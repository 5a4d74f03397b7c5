//! Operators as values. Their shape rule equals the reference's shape rule. `Scatter::new` and
//! `Gather::new` make the same scatters and gathers as the named constructors.

use ndscatter::{CacheMode, Gather, Operator, Scatter, ScatterError};

use crate::common::operators::{self, Gatherer};

type Shape = &'static [usize];

/// An operator, the shapes of data and indices, and the shape of updates, which is also the shape
/// of the gathered tensor.
const SHAPES: &[(Operator, Shape, Shape, Shape)] = &[
    (Operator::Nd { batch_dims: 0 }, &[4, 5, 6], &[7, 2], &[7, 6]),
    // Without coordinates, each update is a whole tensor.
    (Operator::Nd { batch_dims: 0 }, &[4, 5], &[3, 0], &[3, 4, 5]),
    (
        Operator::Along { axis: -2 },
        &[4, 5, 6],
        &[2, 3],
        &[4, 2, 3, 6],
    ),
    // An index of rank 0 removes the axis.
    (Operator::Along { axis: 0 }, &[4, 5], &[], &[5]),
    (Operator::Elements { axis: 1 }, &[4, 5], &[3, 9], &[3, 9]),
];

fn reference(operator: Operator) -> (operators::Operator, Gatherer) {
    match operator {
        Operator::Nd { .. } => (operators::Operator::Nd, Gatherer::Nd { batch_dims: 0 }),
        Operator::Along { axis } => (
            operators::Operator::Update { axis },
            Gatherer::Along { axis },
        ),
        Operator::Elements { axis } => (
            operators::Operator::Elements { axis },
            Gatherer::Elements { axis },
        ),
        other => panic!("no reference for {other:?}"),
    }
}

#[test]
fn a_scatter_and_its_gather_have_one_shape_rule() {
    for &(operator, data, indices, expected) in SHAPES {
        let (scatter, gather) = reference(operator);
        assert_eq!(
            scatter.updates_shape(data, indices),
            expected,
            "{operator:?}"
        );
        assert_eq!(gather.output_shape(data, indices), expected, "{operator:?}");
        assert_eq!(
            operator.updates_shape(data, indices).as_deref(),
            Ok(expected)
        );
        assert_eq!(
            operator.output_shape(data, indices).as_deref(),
            Ok(expected)
        );
    }
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let axis = ScatterError::AxisOutOfRange { axis: 2, rank: 2 };
    let far = Operator::Elements { axis: 2 };
    assert_eq!(far.updates_shape(&[4, 5], &[4, 5]), Err(axis.clone()));
    assert_eq!(far.for_rank(2), Err(axis));
    let long = Operator::Nd { batch_dims: 1 }.output_shape(&[4, 5], &[4, 2]);
    let expected = ScatterError::TupleLength {
        tuple_len: 2,
        rank: 1,
        is_one_tuple: false,
    };
    assert_eq!(long, Err(expected));
}

#[test]
fn operators_make_the_scatters_of_the_named_constructors() {
    let scatters = [
        (Operator::Nd { batch_dims: 0 }, Scatter::nd()),
        (Operator::Along { axis: -1 }, Scatter::along(-1)),
        (Operator::Elements { axis: 3 }, Scatter::elements(3)),
        (
            Operator::Cache {
                axis: 1,
                mode: CacheMode::Circular,
                update_len: 4,
            },
            Scatter::cache(1, CacheMode::Circular).update_len(4),
        ),
        (Operator::Paged, Scatter::paged()),
    ];
    for (operator, named) in scatters {
        let made = Scatter::new(operator).expect("a scatter");
        assert_eq!(format!("{made:?}"), format!("{named:?}"));
    }
    let gathers = [
        (Operator::Nd { batch_dims: 2 }, Gather::nd(2)),
        (Operator::Along { axis: -1 }, Gather::along(-1)),
        (Operator::Elements { axis: 3 }, Gather::elements(3)),
        (Operator::Paged, Gather::paged()),
    ];
    for (operator, named) in gathers {
        let made = Gather::new(operator).expect("a gather");
        assert_eq!(format!("{made:?}"), format!("{named:?}"));
    }
}

#[test]
fn operators_without_a_scatter_or_gather_are_errors() {
    let batched = Operator::Nd { batch_dims: 1 };
    let refused = ScatterError::UnsupportedOption {
        option: "batch_dims",
    };
    assert_eq!(Scatter::new(batched).err(), Some(refused.clone()));
    assert_eq!(batched.updates_shape(&[2, 3], &[2, 1]), Err(refused));
    let cache = Operator::Cache {
        axis: 1,
        mode: CacheMode::Linear,
        update_len: 1,
    };
    let refused = ScatterError::UnsupportedOption { option: "mode" };
    assert_eq!(Gather::new(cache).err(), Some(refused.clone()));
    assert_eq!(cache.output_shape(&[2, 3], &[2]), Err(refused));
}

#[test]
fn a_cache_has_the_length_of_its_updates() {
    let cache = Operator::Cache {
        axis: -2,
        mode: CacheMode::Linear,
        update_len: 1,
    };
    let shape = |operator: Operator| operator.updates_shape(&[2, 9, 4], &[2]);
    assert_eq!(shape(cache), Ok(vec![2, 1, 4]));
    assert_eq!(shape(cache.for_updates(&[2, 7, 4])), Ok(vec![2, 7, 4]));
    let too_long = ScatterError::UpdateTooLong {
        axis: 1,
        update_len: 10,
        cache_len: 9,
    };
    assert_eq!(shape(cache.for_updates(&[2, 10, 4])), Err(too_long));
    // Updates of another rank have no such axis. Calls return an error for them.
    assert_eq!(shape(cache.for_updates(&[2])), Ok(vec![2, 0, 4]));
    let first = Operator::Along { axis: 0 };
    assert_eq!(first.for_updates(&[2, 7, 4]), first);
}
