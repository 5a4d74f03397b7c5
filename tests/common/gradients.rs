//! Gradients from their definitions, one element at a time, by the positions that a
//! gather reads.

use super::Tensor;
use super::elements::Ref;
use super::indices::IndexRule;
use super::operators::Gatherer;

/// An element type that has gradients.
pub(crate) trait Graded: Ref {
    /// The sum from zero, in order, times the factor: in the type that gradients are
    /// computed in, rounded once.
    fn sum(gradients: &[Self], scale: f64) -> Self;
}

macro_rules! floats {
    ($($(#[$feature:meta])? $type:ty, $computed:ty, $from:expr, $to:expr;)*) => {$(
        $(#[$feature])?
        impl Graded for $type {
            #[allow(clippy::cast_possible_truncation, reason = "the factor is rounded")]
            fn sum(gradients: &[Self], scale: f64) -> Self {
                let scale = scale as $computed;
                if scale == 0.0 {
                    return Self::zero_value();
                }
                let sum = gradients.iter().fold(0.0, |sum: $computed, &gradient| sum + $from(gradient));
                $to(sum * scale)
            }
        }
    )*};
}

floats! {
    f32, f32, f32::from, f32::from;
    f64, f64, f64::from, f64::from;
    #[cfg(feature = "half")] half::f16, f32, half::f16::to_f32, half::f16::from_f32;
    #[cfg(feature = "half")] half::bf16, f32, half::bf16::to_f32, half::bf16::from_f32;
}

#[cfg(feature = "num-complex")]
impl<T> Graded for num_complex::Complex<T>
where
    T: Graded,
    Self: Ref,
{
    fn sum(gradients: &[Self], scale: f64) -> Self {
        let component = |of: fn(&Self) -> T| {
            let components: Vec<T> = gradients.iter().map(of).collect();
            T::sum(&components, scale)
        };
        Self::new(component(|value| value.re), component(|value| value.im))
    }
}

/// The gradient for data of a gather, given that of its result.
pub(crate) fn of_gather<T: Graded>(
    gatherer: Gatherer,
    rule: IndexRule,
    data: &[usize],
    indices: &Tensor<i128>,
    gradient: &Tensor<T>,
    scale: f64,
) -> Tensor<T> {
    // Positions count from 1: what is skipped reads 0.
    let count = data.iter().product::<usize>() as u64;
    let positions = Tensor::new(data, (1..=count).collect());
    let sources = gatherer.expected(rule, &positions, indices);
    assert_eq!(
        sources.shape, gradient.shape,
        "one gradient for each element"
    );
    let mut gradients = vec![Vec::new(); positions.values.len() + 1];
    for (&source, &value) in sources.values.iter().zip(&gradient.values) {
        gradients[usize::try_from(source).expect("it fits")].push(value);
    }
    let sums = gradients[1..]
        .iter()
        .map(|gradients| T::sum(gradients, scale));
    Tensor::new(data, sums.collect())
}
