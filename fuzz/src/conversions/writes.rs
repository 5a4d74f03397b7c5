//! Runs converting writes, and compares the data with the naive loop.

use ndscatter::{AnyView, AnyViewMut, Conversion, Layout, Rounding, ScatterError, Write};

use super::rules::{Rule, Spread, is_scale, scaled};
use crate::common::Tensor;
use crate::common::api::{DType, Indices, Options};
use crate::common::elements::Ref;
use crate::common::formats::code;
use crate::common::layouts::Strided;
use crate::common::random::Random;
use crate::draw::scatters::Scattering;

/// A converting write without its data.
pub(crate) struct Converting<'c, T> {
    pub(crate) scattering: &'c Scattering,
    pub(crate) rule: Rule,
    pub(crate) indices: &'c dyn Indices,
    pub(crate) updates: Strided<T>,
    pub(crate) scale: Option<Spread<f32>>,
    pub(crate) zero: Option<Spread<i32>>,
}

impl<T: Ref + Into<f32>> Converting<'_, T> {
    /// Returns the error of the indices, or another reason for an error, or `Ok`.
    fn validity(&self, options: &Options<'_>) -> Result<(), Option<ScatterError>> {
        let is_valid = |&scale: &f32| is_scale(scale, self.rule.scaling);
        let scales = self.scale.as_ref().map(|scale| scale.values.read().values);
        let zeros = self.zero.as_ref().map(|zero| zero.values.read().values);
        let range = self.rule.format.integer_range();
        let is_zero = |zero: &i32| range.is_some_and(|(low, high)| (low..=high).contains(zero));
        let is_right = scales.iter().flatten().all(is_valid)
            && zeros.iter().flatten().all(is_zero)
            && (zeros.is_none() || self.rule.format.is_integer())
            && options.is_supported();
        if !is_right {
            return Err(None);
        }
        let data = &self.scattering.case.data;
        let refusal = (options.operator).refusal(options.refusals(), data, &self.indices.logical());
        refusal.map_or(Ok(()), |error| Err(Some(error)))
    }

    /// Whether the write keeps all bits of the updates.
    fn is_a_move(&self) -> bool {
        let is_plain = self.rule.rounding == Rounding::NearestEven && self.scale.is_none();
        is_plain && T::DTYPE == self.rule.stored
    }

    /// The naive loop: the code of the last updates of each destination.
    fn expected(&self, options: &Options<'_>, data: &Tensor<u32>) -> Tensor<u32> {
        let (shape, indices) = (&data.shape, self.indices.logical());
        let pairs = if self.rule.format.is_packed() { 2 } else { 1 };
        let updates = self.updates.read().values;
        let mut output = data.clone();
        let hits = (options.operator).hits(options.rules().index, shape, &indices);
        hits.each(|to, from| {
            let first = pairs * from[from.len() - 1];
            let converted: Vec<_> = (first..first + pairs)
                .map(|at| self.scaled(updates[at], at))
                .collect();
            output.values[to] = match self.is_a_move() {
                true => u32::try_from(updates[first].bits()).expect("at most 32 bits"),
                false => code(self.rule.format, self.rule.rounding, &converted),
            };
        });
        output
    }

    /// Returns an update after its scale, and its zero point.
    fn scaled(&self, value: T, at: usize) -> (f32, i32) {
        let scale = self.scale.as_ref().map(|scale| scale.each[at]);
        let value = scaled(value.into(), scale, self.rule.scaling);
        (value, self.zero.as_ref().map_or(0, |zero| zero.each[at]))
    }

    fn conversion(&self) -> Conversion<'_> {
        let Rule {
            format,
            rounding,
            scaling,
            ..
        } = self.rule;
        let mut conversion = Conversion::new()
            .format(format)
            .rounding(rounding)
            .scaling(scaling);
        if let Some(scale) = &self.scale {
            conversion = conversion.scale(scale.values.view());
        }
        match &self.zero {
            Some(zero) => conversion.zero_point(zero.values.view()),
            None => conversion,
        }
    }

    /// Runs the write: alone, in a list of writes, or with a plan.
    fn run(
        &self,
        options: &Options<'_>,
        way: usize,
        data: AnyViewMut<'_>,
    ) -> Result<(), ScatterError> {
        let (updates, indices) = (AnyView::from(self.updates.view()), self.indices.typed());
        let scatter = options.scatter();
        match way {
            0 => scatter
                .convert(self.conversion())
                .in_place(data, indices, updates),
            1 => {
                let write = Write::new(data, updates).convert(self.conversion());
                scatter.write_all(indices, &mut [write])
            }
            _ => {
                let plan = scatter.plan(data.layout(), indices)?;
                options
                    .run(&plan)
                    .convert(self.conversion())
                    .in_place(data, updates)
            }
        }
    }

    /// Draws data, and compares the codes that a write stores with those of the naive loop.
    pub(crate) fn check<W: Ref + TryFrom<u32> + Into<u32>>(
        &self,
        options: &Options<'_>,
        random: &mut Random,
    ) -> Result<(), String> {
        let case = &self.scattering.case;
        let data = Tensor::generate(&case.data, || W::sample(case.palette, random));
        let mut output = Strided::new(&data, case.output_layout, 1, W::sentinel());
        let mut wanted = output.clone();
        let validity = self.validity(options);
        if validity.is_ok() {
            let codes = data.values.into_iter().map(Into::into);
            let codes = self.expected(options, &Tensor::new(&data.shape, codes.collect()));
            let narrow = |code: u32| W::try_from(code).ok().expect("a code of this size");
            let values = codes.values.into_iter().map(narrow);
            wanted.write(&Tensor::new(&codes.shape, values.collect()));
        }
        let way = random.below(3);
        let run = |data: AnyViewMut<'_>| self.run(options, way, data);
        match (validity, with_codes(&mut output, self.rule.stored, run)) {
            (Ok(()), Ok(())) | (Err(None), Err(_)) => {}
            (Err(Some(expected)), Err(got)) if expected == got => {}
            (expected, got) => return Err(format!("{got:?}, not {expected:?}, way {way}")),
        }
        let differs = |(&got, &wanted): (&W, &W)| !self.rule.same(got.into(), wanted.into());
        match output.buffer.iter().zip(&wanted.buffer).position(differs) {
            None => Ok(()),
            Some(at) => {
                let (got, wanted) = (output.buffer[at], wanted.buffer[at]);
                Err(format!("code {at} is {got:?}, not {wanted:?}, way {way}"))
            }
        }
    }
}

/// Calls `run` with a view of codes as elements of the type `stored`.
fn with_codes<W: Ref, R>(
    codes: &mut Strided<W>,
    stored: DType,
    run: impl FnOnce(AnyViewMut<'_>) -> R,
) -> R {
    let shape = codes.shape().to_vec();
    let strides = codes.layout().strides().map(<[isize]>::to_vec);
    let layout = match &strides {
        Some(strides) => Layout::strided(&shape, strides).expect("the tensor's own strides"),
        None => Layout::contiguous(&shape),
    };
    // SAFETY: pointer and layout are those of the tensor `codes`, which is borrowed mutably. The
    // type has the size of a code, and every bit pattern is valid for it.
    let view = unsafe { AnyViewMut::from_raw_parts(codes.first_mut().cast(), stored, layout) };
    run(view.expect("codes are aligned"))
}
