//! Reference gradients, computed from their definitions, one element at a time. The gradient of a
//! gather uses the positions that the gather reads. The gradient of a scatter uses the updates of
//! each element.

use ndscatter::{NoneGradient, Reduction};

use super::Tensor;
use super::arithmetic::How;
use super::elements::Ref;
use super::indices::IndexRule;
use super::operators::{Gatherer, Operator, Rules};

/// Factors of gradients: negative ones, zeros, and one that is zero in `f32`.
pub(crate) const SCALES: [f64; 7] = [1.0, 0.5, -3.0, 0.1, 0.0, -0.0, 1e-60];

/// An element type that has gradients.
pub(crate) trait Graded: Ref {
    /// The type in which gradients are computed.
    type Computed: Number;
    fn computed(self) -> Self::Computed;
    fn rounded(computed: Self::Computed) -> Self;

    /// Sums `gradients` from zero, in order, and multiplies the sum by `scale`. It computes in the
    /// type of gradients and rounds once.
    fn sum(gradients: &[Self], scale: f64) -> Self;
}

/// A type in which gradients are computed.
pub(crate) trait Number: Copy {
    fn negative(self) -> Self;
    fn times(self, other: Self) -> Self;
    fn conjugate(self) -> Self;
    fn over(self, count: usize) -> Self;
    fn scaled(self, scale: f64) -> Self;
    /// Returns for each value whether it equals the smallest or the largest value. If any value is
    /// NaN, it returns whether the value is NaN.
    fn extremes(values: &[Self], largest: bool) -> Vec<bool>;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn negative(self) -> Self {
                -self
            }
            fn times(self, other: Self) -> Self {
                self * other
            }
            fn conjugate(self) -> Self {
                self
            }
            #[allow(clippy::cast_precision_loss, reason = "rounded once")]
            fn over(self, count: usize) -> Self {
                self / count as Self
            }
            #[allow(clippy::cast_possible_truncation, reason = "the factor is rounded")]
            fn scaled(self, scale: f64) -> Self {
                self * scale as Self
            }
            fn extremes(values: &[Self], largest: bool) -> Vec<bool> {
                let any_nan = values.iter().any(|value| value.is_nan());
                let beaten = |value: Self| {
                    let beats = |&other: &Self| if largest { other > value } else { other < value };
                    values.iter().any(beats)
                };
                let is_extreme = |&value: &Self| if any_nan { value.is_nan() } else { !beaten(value) };
                values.iter().map(is_extreme).collect()
            }
        }
    )*};
}

numbers!(f32, f64);

#[cfg(feature = "complex")]
impl<T> Number for num_complex::Complex<T>
where
    T: Number + num_traits::Num + std::ops::Neg<Output = T>,
{
    fn negative(self) -> Self {
        Self::new(-self.re, -self.im)
    }
    fn times(self, other: Self) -> Self {
        let (Self { re: a, im: b }, Self { re: c, im: d }) = (self, other);
        Self::new(a * c - b * d, a * d + b * c)
    }
    fn conjugate(self) -> Self {
        Self::new(self.re, -self.im)
    }
    fn over(self, count: usize) -> Self {
        Self::new(self.re.over(count), self.im.over(count))
    }
    fn scaled(self, scale: f64) -> Self {
        Self::new(self.re.scaled(scale), self.im.scaled(scale))
    }
    fn extremes(_: &[Self], _: bool) -> Vec<bool> {
        panic!("complex numbers have no order")
    }
}

macro_rules! floats {
    ($($(#[$feature:meta])? $type:ty, $computed:ty, $from:expr, $to:expr;)*) => {$(
        $(#[$feature])?
        impl Graded for $type {
            type Computed = $computed;
            fn computed(self) -> $computed {
                $from(self)
            }
            fn rounded(computed: $computed) -> Self {
                $to(computed)
            }
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

#[cfg(feature = "complex")]
impl<T> Graded for num_complex::Complex<T>
where
    T: Graded,
    Self: Ref + Number,
{
    type Computed = Self;
    fn computed(self) -> Self {
        self
    }
    fn rounded(computed: Self) -> Self {
        computed
    }
    fn sum(gradients: &[Self], scale: f64) -> Self {
        let component = |of: fn(&Self) -> T| {
            let components: Vec<T> = gradients.iter().map(of).collect();
            T::sum(&components, scale)
        };
        Self::new(component(|value| value.re), component(|value| value.im))
    }
}

/// Computes the gradient of a gather with respect to data, from the gradient of its result.
pub(crate) fn of_gather<T: Graded>(
    gatherer: Gatherer,
    rule: IndexRule,
    data: &[usize],
    indices: &Tensor<i128>,
    gradient: &Tensor<T>,
    scale: f64,
) -> Tensor<T> {
    // Positions start at 1, because a skipped index reads 0.
    let count = data.iter().product::<usize>() as u64;
    let positions = Tensor::new(data, (1..=count).collect());
    let sources = gatherer.expected(rule, &positions, indices);
    assert_eq!(
        sources.shape, gradient.shape,
        "one gradient for each element"
    );
    let mut gradients = vec![Vec::new(); positions.values.len() + 1];
    for (&source, &value) in sources.values.iter().zip(&gradient.values) {
        gradients[usize::try_from(source).expect("the position fits usize")].push(value);
    }
    let sums = gradients[1..]
        .iter()
        .map(|gradients| T::sum(gradients, scale));
    Tensor::new(data, sums.collect())
}

/// The tensors that a scatter's gradient depends on.
#[derive(Clone, Debug)]
pub(crate) struct Inputs<T> {
    pub(crate) gradient: Tensor<T>,
    pub(crate) data: Tensor<T>,
    pub(crate) updates: Tensor<T>,
}

/// Computes the gradients of a scatter with respect to data and updates, from the gradient of its
/// output.
pub(crate) fn of_scatter<T: Graded>(
    operator: Operator,
    rules: Rules,
    none_gradient: NoneGradient,
    indices: &Tensor<i128>,
    inputs: &Inputs<T>,
    scale: f64,
) -> [Tensor<T>; 2] {
    let round = |value: T::Computed| T::rounded(value.scaled(scale));
    let is_zero = scale_is_zero::<T>(scale);
    let gradients = inputs.gradient.values.iter();
    let of_data = gradients.map(|&gradient| {
        if is_zero {
            T::zero_value()
        } else {
            round(gradient.computed())
        }
    });
    let mut of_data = Tensor::new(&inputs.data.shape, of_data.collect());
    let mut of_updates = Tensor::generate(&inputs.updates.shape, T::zero_value);
    let hits = operator.hits(rules.index, &inputs.data.shape, indices);
    hits.each(|to, from| {
        if is_zero {
            return;
        }
        let mut values: Vec<T::Computed> = vec![inputs.data.values[to].computed()];
        values.extend(from.iter().map(|&at| inputs.updates.values[at].computed()));
        let gradient = inputs.gradient.values[to].computed();
        let shares = shares(rules.how, none_gradient, gradient, &values);
        let given = |share: Option<T::Computed>| share.map_or(T::zero_value(), round);
        of_data.values[to] = given(shares[0]);
        for (&at, &share) in from.iter().zip(&shares[1..]) {
            of_updates.values[at] = given(share);
        }
    });
    [of_data, of_updates]
}

/// Whether a factor is zero in the type in which gradients are computed.
#[allow(clippy::cast_possible_truncation, reason = "the factor is rounded")]
fn scale_is_zero<T: Graded>(scale: f64) -> bool {
    let is_wide = matches!(
        T::DTYPE,
        ndscatter::DType::F64 | ndscatter::DType::Complex128
    );
    if is_wide {
        scale == 0.0
    } else {
        scale as f32 == 0.0
    }
}

/// Returns the gradients of the existing value and of each update. `None` is a gradient of zero.
fn shares<C: Number>(
    how: How,
    none_gradient: NoneGradient,
    gradient: C,
    values: &[C],
) -> Vec<Option<C>> {
    let first = usize::from(!how.include_self || how.reduction == Reduction::None);
    let taking_part = &values[first..];
    let count = taking_part.len();
    let product = |values: &mut dyn Iterator<Item = C>| values.reduce(C::times);
    let share = |at: usize| match how.reduction {
        Reduction::None => {
            let gets = none_gradient == NoneGradient::EveryDuplicate || at + 1 == count;
            gets.then_some(gradient)
        }
        Reduction::Add => Some(gradient),
        Reduction::Sub if at + first == 0 => Some(gradient),
        Reduction::Sub => Some(gradient.negative()),
        Reduction::Mean => Some(gradient.over(count)),
        Reduction::Mul => {
            let before = product(&mut taking_part[..at].iter().copied());
            let after = product(&mut taking_part[at + 1..].iter().rev().copied());
            let others = [before, after].into_iter().flatten().reduce(C::times);
            Some(others.map_or(gradient, |others| gradient.times(others.conjugate())))
        }
        Reduction::Min | Reduction::Max => {
            let ties = C::extremes(taking_part, how.reduction == Reduction::Max);
            let tied = ties.iter().filter(|&&is_tied| is_tied).count();
            ties[at].then(|| gradient.over(tied))
        }
        other => panic!("the reference has no gradient of {other}"),
    };
    let left_out = std::iter::repeat_n(None, first);
    left_out.chain((0..count).map(share)).collect()
}

/// Picks the instance of a generic function for a random element type that has gradients.
#[macro_export]
macro_rules! pick_graded {
    ($random:expr, $check:ident) => {
        $random.pick(&[
            $check::<f32>,
            $check::<f64>,
            #[cfg(feature = "half")]
            $check::<half::f16>,
            #[cfg(feature = "half")]
            $check::<half::bf16>,
            #[cfg(feature = "complex")]
            $check::<num_complex::Complex<f32>>,
            #[cfg(feature = "complex")]
            $check::<num_complex::Complex<f64>>,
        ])
    };
}
