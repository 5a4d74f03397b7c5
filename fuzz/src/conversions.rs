//! Writes that convert their updates, for every format, rounding, scale, operator and layout. A valid
//! call must write the codes of the naive loop. Any other call must return an error and must not
//! change the data.

pub(crate) mod rules;
mod writes;

use crate::common::Tensor;
use crate::common::api::DType;
use crate::common::elements::Ref;
use crate::common::layouts::Strided;
use crate::common::operators::Operator;
use crate::common::random::Random;
use crate::draw::scatters::Scattering;
use half::{bf16, f16};
use ndscatter::{Bounds, Format, Reduction};
use rules::{Rule, Spread, draw_scale};
use writes::Converting;

/// Draws a scatter without a reduction. Packed formats need a last axis inside the window.
fn draw_scattering(rule: &mut Rule, random: &mut Random) -> Scattering {
    let mut scattering = Scattering::draw(random);
    let case = &mut scattering.case;
    case.reduction = Reduction::None;
    let last = case.data.len().cast_signed() - 1;
    let is_inner = |axis: isize| axis != -1 && axis != last;
    let has_window = match case.operator {
        Operator::Nd => case.indices.last() < Some(&case.data.len()),
        Operator::Update { axis } | Operator::Cache { axis, .. } => is_inner(axis),
        Operator::Elements { .. } => false,
        Operator::Paged => case.data.len() > 2,
    };
    if rule.format.is_packed() && !has_window {
        (rule.format, rule.stored) = (Format::I8, DType::I8);
    }
    if matches!(case.operator, Operator::Cache { .. }) && case.bounds == Bounds::Clamp {
        case.bounds = Bounds::Skip;
    }
    scattering
}

fn check<T: Ref + Into<f32>>(scattering: &Scattering, rule: Rule, random: &mut Random) {
    let case = &scattering.case;
    let mut shape = case.operator.updates_shape(&case.data, &case.indices);
    if rule.format.is_packed() {
        *shape.last_mut().expect("a last axis") *= 2;
    }
    let indices = scattering.draw_indices(random);
    let tensor = Tensor::generate(&shape, || T::sample(case.palette, random));
    let (low, high) = rule.format.integer_range().unwrap_or((0, 0));
    let zero = |random: &mut Random| {
        let zero = random.between(i128::from(low), i128::from(high));
        i32::try_from(zero).expect("a small number") - i32::from(random.one_in(256))
    };
    let has_zero = random.one_in(if rule.format.is_integer() { 2 } else { 64 });
    let converting = Converting {
        scattering,
        rule,
        indices: &*indices,
        updates: Strided::new(&tensor, case.updates_layout, 1, T::sentinel()),
        scale: random
            .one_in(2)
            .then(|| Spread::draw(&shape, random, draw_scale)),
        zero: has_zero.then(|| Spread::draw(&shape, random, zero)),
    };
    let checked = case.workers.with(|pool| {
        let options = &scattering.options(Reduction::None, pool);
        match rule.stored.size() {
            1 => converting.check::<u8>(options, random),
            2 => converting.check::<u16>(options, random),
            _ => converting.check::<u32>(options, random),
        }
    });
    checked.unwrap_or_else(|what| {
        panic!(
            "{what}\n{rule:?} of {}\n{scattering:#?}\nindices: {:?}",
            T::DTYPE,
            indices.logical().values
        )
    });
}

/// Runs a case from the bytes of the fuzzer.
pub fn fuzz(bytes: &[u8]) {
    let mut random = Random::of_bytes(bytes);
    let mut rule = Rule::draw(&mut random);
    let check = random.pick(&[check::<f32>, check::<f16>, check::<bf16>]);
    check(&draw_scattering(&mut rule, &mut random), rule, &mut random);
}
