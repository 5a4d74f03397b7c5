//! Gradients against finite differences, for all reductions, with and without the existing value.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::BalancedCheckpointing;
use burn_backend::ops::FloatTensorOps;
use burn_backend::{AutodiffBackend, Backend};
use burn_flex::{Flex, FlexTensor};
use ndscatter::{Bounds, NoneGradient, Reduction, Scatter};
use ndscatter_burn::ScatterBackend;

use crate::differential::Shapes;
use crate::layouts::{row_major, values};
use crate::reference::{Array, Random};

const REDUCTIONS: [Reduction; 7] = [
    Reduction::None,
    Reduction::Add,
    Reduction::Sub,
    Reduction::Mul,
    Reduction::Min,
    Reduction::Max,
    Reduction::Mean,
];

/// A scatter, and the weights of its output in a sum.
struct Problem {
    scatter: Scatter<'static>,
    data: Array<f64>,
    indices: Array<i64>,
    updates: Array<f64>,
    weights: Array<f64>,
}

impl Problem {
    /// Returns the weighted sum of the output.
    fn loss(&self, data: &Array<f64>, updates: &Array<f64>) -> f64 {
        let [data, updates] = [row_major(data), row_major(updates)];
        let output = Flex::float_nd_scatter(&self.scatter, data, row_major(&self.indices), updates);
        let output = values::<f64>(&output.expect("valid"));
        output
            .values
            .iter()
            .zip(&self.weights.values)
            .map(|(value, weight)| value * weight)
            .sum()
    }

    /// Returns the gradients for data and for updates, from burn's backward pass.
    fn gradients<A>(&self) -> [Array<f64>; 2]
    where
        A: AutodiffBackend<InnerBackend = Flex> + ScatterBackend,
        A: Backend<IntTensorPrimitive = FlexTensor>,
    {
        let leaf = |array| A::float_set_require_grad(A::from_inner(row_major(array)), true);
        let (data, updates) = (leaf(&self.data), leaf(&self.updates));
        let (output, at) = ((data.clone(), updates.clone()), row_major(&self.indices));
        let output = A::float_nd_scatter(&self.scatter, output.0, at, output.1).expect("valid");
        let weights = A::from_inner(row_major(&self.weights));
        let gradients = A::backward(A::float_sum(A::float_mul(output, weights)));
        [data, updates].map(|leaf| values(&A::grad(&leaf, &gradients).expect("a gradient")))
    }

    /// Returns the derivatives of the loss for each element, from central differences.
    fn differences(&self) -> [Array<f64>; 2] {
        const STEP: f64 = 1e-4;
        let [mut of_data, mut of_updates] = [self.data.clone(), self.updates.clone()];
        for at in 0..of_data.values.len() {
            let loss = |step: f64| {
                let mut data = self.data.clone();
                data.values[at] += step;
                self.loss(&data, &self.updates)
            };
            of_data.values[at] = (loss(STEP) - loss(-STEP)) / (2.0 * STEP);
        }
        for at in 0..of_updates.values.len() {
            let loss = |step: f64| {
                let mut updates = self.updates.clone();
                updates.values[at] += step;
                self.loss(&self.data, &updates)
            };
            of_updates.values[at] = (loss(STEP) - loss(-STEP)) / (2.0 * STEP);
        }
        [of_data, of_updates]
    }
}

/// Returns distinct values, so that no minimum or maximum has a tie.
fn distinct(random: &mut Random, shape: &[usize], first: usize) -> Array<f64> {
    let count: usize = shape.iter().product();
    let mut numbers: Vec<usize> = (first..first + count).collect();
    for last in (1..count).rev() {
        numbers.swap(last, random.below(last + 1));
    }
    let value = |number| f64::from(u32::try_from(number).expect("small")) / 97.0 - 0.4;
    Array::new(shape, numbers.into_iter().map(value))
}

#[test]
fn gradients_are_the_finite_differences() {
    let mut random = Random(3);
    for round in 0..280 {
        let shapes = Shapes::random(&mut random);
        let sizes = shapes.sizes();
        let indices = match sizes.is_empty() {
            true => Array::new(&shapes.indices, []),
            false => random.indices(&shapes.indices, &sizes, true),
        };
        let reduction = REDUCTIONS[round % REDUCTIONS.len()];
        let includes_self = (round / REDUCTIONS.len()).is_multiple_of(2);
        let count: usize = shapes.data.iter().product();
        let (first, second) = match round % 2 {
            0 => (0, count),
            // The updates are less than data.
            _ => (shapes.updates.iter().product(), 0),
        };
        let problem = Problem {
            scatter: shapes.place.scatter(reduction).include_self(includes_self),
            data: distinct(&mut random, &shapes.data, first),
            indices,
            updates: distinct(&mut random, &shapes.updates, second),
            weights: distinct(&mut random, &shapes.data, 11),
        };
        let context = format!("{reduction} {includes_self} {shapes:?}");
        let [gradients, balanced] = [
            problem.gradients::<Autodiff<Flex>>(),
            problem.gradients::<Autodiff<Flex, BalancedCheckpointing>>(),
        ];
        assert_eq!(
            gradients, balanced,
            "the strategy for checkpoints changes nothing"
        );
        for (gradient, difference) in gradients.iter().zip(&problem.differences()) {
            assert_eq!(gradient.shape, difference.shape, "{context}");
            for (is, expected) in gradient.values.iter().zip(&difference.values) {
                assert!(
                    (is - expected).abs() < 1e-6,
                    "{is}, expected {expected}: {context}"
                );
            }
        }
    }
}

#[test]
fn the_rule_for_duplicates_of_assignments_is_an_option() {
    let problem = |rule| Problem {
        scatter: Scatter::along(0).none_gradient(rule),
        data: Array::new(&[2], [1.0, 2.0]),
        indices: Array::new(&[2], [1, 1]),
        updates: Array::new(&[2], [3.0, 4.0]),
        weights: Array::new(&[2], [5.0, 7.0]),
    };
    let [_, last] = problem(NoneGradient::LastWrite).gradients::<Autodiff<Flex>>();
    assert_eq!(
        last.values,
        [0.0, 7.0],
        "only the last update is in the output"
    );
    let [_, every] = problem(NoneGradient::EveryDuplicate).gradients::<Autodiff<Flex>>();
    assert_eq!(every.values, [7.0, 7.0], "the rule of burn");
}

#[test]
fn a_skipped_update_has_no_gradient() {
    let problem = Problem {
        scatter: Scatter::along(0)
            .reduction(Reduction::Add)
            .bounds(Bounds::Skip),
        data: Array::new(&[2], [1.0, 2.0]),
        indices: Array::new(&[3], [1, 9, 0]),
        updates: Array::new(&[3], [3.0, 4.0, 5.0]),
        weights: Array::new(&[2], [5.0, 7.0]),
    };
    let [of_data, of_updates] = problem.gradients::<Autodiff<Flex>>();
    assert_eq!(
        (of_data.values, of_updates.values),
        (vec![5.0, 7.0], vec![7.0, 0.0, 5.0]),
        "skip"
    );
}

/// Only one of the two tensors requires a gradient.
#[test]
fn one_leaf_is_enough() {
    type A = Autodiff<Flex>;
    for reduction in REDUCTIONS {
        for wants_data in [true, false] {
            let floats = |values: [f32; 2]| A::from_inner(row_major(&Array::new(&[2], values)));
            let data = A::float_set_require_grad(floats([2.0, 3.0]), wants_data);
            let updates = A::float_set_require_grad(floats([5.0, 7.0]), !wants_data);
            let indices = row_major(&Array::new(&[2], [1_i64, 0]));
            let scatter = Scatter::along(0).reduction(reduction);
            let output = A::float_nd_scatter(&scatter, data.clone(), indices, updates.clone());
            let gradients = A::backward(A::float_sum(output.expect("valid")));
            let [of_data, of_updates] = [data, updates].map(|leaf| A::grad(&leaf, &gradients));
            assert_eq!(of_data.is_some(), wants_data, "{reduction}");
            assert_eq!(of_updates.is_some(), !wants_data, "{reduction}");
        }
    }
}

/// The gradient of an output that is used twice arrives as one sum.
#[test]
fn an_output_may_be_used_twice() {
    type A = Autodiff<Flex>;
    let leaf = |values: [f32; 2]| {
        A::float_set_require_grad(A::from_inner(row_major(&Array::new(&[2], values))), true)
    };
    for reduction in [Reduction::None, Reduction::Add, Reduction::Mul] {
        let (data, updates) = (leaf([2.0, 3.0]), leaf([5.0, 7.0]));
        let indices = row_major(&Array::new(&[2], [1_i64, 1]));
        let scatter = Scatter::along(0).reduction(reduction);
        let output = A::float_nd_scatter(&scatter, data.clone(), indices, updates.clone());
        let output = output.expect("valid");
        // The loss is the sum of the squares of the output.
        let expected = match reduction {
            Reduction::None => ([4.0, 0.0], [0.0, 14.0]),
            Reduction::Add => ([4.0, 30.0], [30.0, 30.0]),
            _ => ([4.0, 7350.0], [4410.0, 3150.0]),
        };
        let gradients = A::backward(A::float_sum(A::float_mul(output.clone(), output)));
        let gradient = |leaf| values::<f32>(&A::grad(leaf, &gradients).expect("a gradient")).values;
        assert_eq!(gradient(&data), expected.0, "{reduction}");
        assert_eq!(gradient(&updates), expected.1, "{reduction}");
    }
}
