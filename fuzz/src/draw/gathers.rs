//! Draws gathers: all options, and shapes that fit the operator or not.

use ndscatter::{Bounds, ScatterError};

use super::{Reach, Run, Size, draw_layout, draw_shape, draw_tuples, plain_or};
use crate::common::Tensor;
use crate::common::api::{DType, GatherOptions, Indices, Method};
use crate::common::cases::{draw_axis, draw_lanes, shrink};
use crate::common::destinations::{index_types, place_indices};
use crate::common::elements::{Palette, Ref, element_types};
use crate::common::harness::GatherProblem;
use crate::common::indices::IndexRule;
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::Gatherer;
use crate::common::random::Random;

/// A gather from the bytes of the fuzzer.
#[derive(Debug)]
pub(crate) struct Gathering {
    pub(crate) gatherer: Gatherer,
    pub(crate) data: Vec<usize>,
    pub(crate) indices: Vec<usize>,
    pub(crate) element: DType,
    pub(crate) index: DType,
    pub(crate) rule: IndexRule,
    pub(crate) run: Run,
    pub(crate) reach: Reach,
    pub(crate) palette: Palette,
    pub(crate) data_layout: Arrangement,
    pub(crate) indices_layout: Arrangement,
    pub(crate) output_layout: Arrangement,
    pub(crate) method: Method,
    /// Shape of the output, if it does not follow from the operator.
    pub(crate) misfit: Option<Vec<usize>>,
}

impl Gathering {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let size = Size::draw(random);
        let data = draw_shape(random);
        let (gatherer, indices) = draw_gatherer(&data, size, random);
        let methods: Vec<Method> = Method::of_gathers().collect();
        Self {
            misfit: None,
            element: random.pick(&element_types()),
            index: random.pick(&index_types()),
            rule: IndexRule {
                negative: !random.one_in(4),
                bounds: plain_or(Bounds::Error, &Bounds::ALL, random),
            },
            run: Run::draw(random),
            reach: Reach::draw(random),
            palette: random.pick(&Palette::ALL),
            data_layout: draw_layout(&Arrangement::INPUTS, random),
            indices_layout: draw_layout(&Arrangement::INPUTS, random),
            output_layout: draw_layout(&Arrangement::OUTPUTS, random),
            method: random.pick(&methods),
            gatherer,
            data,
            indices,
        }
    }

    /// Replaces the shape of the output, and sometimes of the indices, by shapes from bytes.
    pub(crate) fn spoil(&mut self, random: &mut Random) {
        if random.one_in(2) {
            self.indices = draw_shape(random);
        }
        self.misfit = Some(draw_shape(random));
    }

    /// Whether data and indices fit the operator.
    pub(crate) fn fits(&self) -> bool {
        self.gatherer.fits(&self.data, &self.indices)
    }

    pub(crate) fn draw_indices(&self, random: &mut Random) -> Box<dyn Indices> {
        let sizes: Vec<usize> = match self.fits() {
            true => {
                let axes = self.gatherer.axes(&self.data, &self.indices);
                axes.iter().map(|&(_, size)| size).collect()
            }
            false => vec![self.data.first().copied().unwrap_or(1)],
        };
        let logical = (self.reach).indices(self.index, &sizes, &self.indices, random);
        place_indices(self.index, &logical, self.indices_layout)
    }

    /// Draws two tensors of data, which a plan gathers from.
    pub(crate) fn problem<'i, T: Ref>(
        &self,
        indices: &'i dyn Indices,
        random: &mut Random,
    ) -> GatherProblem<'i, T> {
        let mut data = || {
            let tensor = Tensor::generate(&self.data, || T::sample(self.palette, random));
            Strided::new(&tensor, self.data_layout, 1, T::sentinel())
        };
        let data = [data(), data()];
        let (output, margin) = (self.output_layout, random.below(4));
        GatherProblem {
            indices,
            data,
            output,
            margin,
        }
    }

    pub(crate) fn options<'p>(&self, pool: &'p dyn ndscatter::Pool) -> GatherOptions<'p> {
        GatherOptions {
            gatherer: self.gatherer,
            execution: self.run.execution(pool),
            rule: self.rule,
        }
    }

    /// Returns the error that the values of the indices must cause, if there is one.
    pub(crate) fn refusal(&self, indices: &dyn Indices) -> Option<ScatterError> {
        let logical = indices.logical();
        self.gatherer.refusal(self.rule, &self.data, &logical)
    }
}

/// Draws an operator that suits the data, and the shape of its indices.
fn draw_gatherer(data: &[usize], size: Size, random: &mut Random) -> (Gatherer, Vec<usize>) {
    let (rank, tuples) = (data.len(), draw_tuples(size, random));
    let (gatherer, mut indices, cut) = match random.below(4) {
        1 if rank > 0 => {
            let axis = draw_axis(rank, random);
            let count = tuples.len();
            (Gatherer::Along { axis }, tuples, 0..count)
        }
        2 if rank > 0 => {
            let axis = draw_axis(rank, random);
            let shape = draw_lanes(data, &tuples, axis, random);
            (Gatherer::Elements { axis }, shape, 0..rank)
        }
        3 if rank > 1 => {
            let count = tuples.len();
            (Gatherer::Paged, tuples, 0..count)
        }
        _ => {
            let batch_dims = random.below(rank + 1);
            let k = random.below(rank - batch_dims + 1);
            let shape = [&data[..batch_dims], &tuples, &[k]].concat();
            let cut = batch_dims..shape.len() - 1;
            (Gatherer::Nd { batch_dims }, shape, cut)
        }
    };
    let limit = size.limit().0;
    shrink(&mut indices, cut, |indices| {
        let output = gatherer.output_shape(data, indices);
        output.iter().product::<usize>() > limit
    });
    (gatherer, indices)
}
