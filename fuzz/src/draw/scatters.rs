//! Draws scatters: all options, and shapes that fit the operator or not.

use ndscatter::{Accumulate, Bounds, Duplicates, Pool, Reduction};

use super::{Reach, Run, Size, draw_layout, draw_shape, draw_tuples, plain_or};
use crate::common::Tensor;
use crate::common::api::{Indices, Method, Options, Request};
use crate::common::cases::{Case, Lanes, Limit, draw_operator, fit};
use crate::common::destinations::{Destinations, index_types, place_indices};
use crate::common::elements::{Palette, Ref, element_types};
use crate::common::harness::{Problem, Round};
use crate::common::layouts::{Arrangement, Strided};
use crate::common::operators::{Operator, are_updates};
use crate::common::random::Random;

/// A scatter from the bytes of the fuzzer.
#[derive(Debug)]
pub(crate) struct Scattering {
    pub(crate) case: Case,
    pub(crate) run: Run,
    pub(crate) reach: Reach,
    pub(crate) negative_indices: bool,
    pub(crate) duplicates: Duplicates,
    /// Shape of the updates, if it does not follow from the operator.
    pub(crate) misfit: Option<Vec<usize>>,
}

impl Scattering {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let size = Size::draw(random);
        let (data, tuples) = (draw_shape(random), draw_tuples(size, random));
        let pick = u32::try_from(random.below(12)).expect("a small number");
        let (operator, indices) = draw_operator(&data, tuples, pick, random);
        let destinations = Destinations::Random;
        let indices = fit(operator, &data, indices, destinations, size.limit());
        let is_cache = matches!(operator, Operator::Cache { .. });
        let plain = is_cache && !random.one_in(16);
        let run = Run::draw(random);
        let case = Case {
            operator,
            data,
            indices,
            element: random.pick(&element_types()),
            index: random.pick(&index_types()),
            reduction: match random.pick(&Reduction::ALL) {
                _ if plain => Reduction::None,
                reduction => reduction,
            },
            include_self: !random.one_in(3),
            accumulate: random.pick(&[Accumulate::Native, Accumulate::Wide]),
            bounds: match plain_or(Bounds::Error, &Bounds::ALL, random) {
                Bounds::Clamp if plain => Bounds::Skip,
                bounds => bounds,
            },
            destinations,
            lanes: Lanes::Free,
            negative: false,
            palette: random.pick(&Palette::ALL),
            data_layout: draw_layout(&Arrangement::INPUTS, random),
            indices_layout: draw_layout(&Arrangement::INPUTS, random),
            updates_layout: draw_layout(&Arrangement::INPUTS, random),
            output_layout: draw_layout(&Arrangement::OUTPUTS, random),
            method: random.pick(&Method::ALL),
            schedule: run.schedule,
            set: run.set,
            workers: run.workers,
            seed: 0,
        };
        Self {
            case,
            run,
            reach: Reach::draw(random),
            negative_indices: !random.one_in(4),
            duplicates: plain_or(Duplicates::Allow, &[Duplicates::Reject], random),
            misfit: None,
        }
    }

    /// Shortens the list of tuples until the updates have at most `limit` elements.
    pub(crate) fn shorten(&mut self, limit: Limit) {
        let case = &mut self.case;
        let indices = std::mem::take(&mut case.indices);
        case.indices = fit(case.operator, &case.data, indices, case.destinations, limit);
    }

    /// Replaces the shapes of the updates, and sometimes of the indices, by shapes from bytes.
    pub(crate) fn spoil(&mut self, random: &mut Random) {
        if random.one_in(2) {
            self.case.indices = draw_shape(random);
        }
        let updates = draw_shape(random);
        // A call takes the length of its updates.
        if let Operator::Cache { axis, len, .. } = &mut self.case.operator {
            let axis = usize::try_from(*axis).expect("drawn from the front");
            *len = updates.get(axis).copied().unwrap_or(0);
        }
        self.misfit = Some(updates);
    }

    /// Whether data and indices fit the operator.
    pub(crate) fn fits(&self) -> bool {
        self.case.operator.fits(&self.case.data, &self.case.indices)
    }

    pub(crate) fn draw_indices(&self, random: &mut Random) -> Box<dyn Indices> {
        let (data, shape) = (&self.case.data, &self.case.indices);
        let sizes: Vec<usize> = match self.fits() {
            true => self
                .case
                .operator
                .axes(data, shape)
                .iter()
                .map(|&(_, size)| size)
                .collect(),
            false => vec![data.first().copied().unwrap_or(1)],
        };
        let logical = self.reach.indices(self.case.index, &sizes, shape, random);
        place_indices(self.case.index, &logical, self.case.indices_layout)
    }

    /// Draws two rounds of tensors: with the updates' shape of the operator, or with another shape.
    pub(crate) fn draw_rounds<T: Ref>(&self, random: &mut Random) -> Vec<Round<T>> {
        match &self.misfit {
            None => self.case.rounds(random),
            Some(updates) => {
                let mut place = |shape: &[usize], arrangement| {
                    let tensor = Tensor::generate(shape, || T::sample(self.case.palette, random));
                    Strided::new(&tensor, arrangement, 1, T::sentinel())
                };
                let data = place(&self.case.data, self.case.data_layout);
                let updates = place(updates, self.case.updates_layout);
                vec![Round { data, updates }]
            }
        }
    }

    pub(crate) fn options<'p>(&self, reduction: Reduction, pool: &'p dyn Pool) -> Options<'p> {
        let mut request = Request::new(reduction).pool(pool).goal(self.run.goal);
        if let Some(workers) = self.run.max_workers {
            request = request.max_workers(workers);
        }
        let request = request
            .schedule(self.run.schedule)
            .instruction_set(self.run.set);
        Options {
            duplicates: self.duplicates,
            negative_indices: self.negative_indices,
            execution: request,
            ..self.case.options(reduction, pool)
        }
    }

    /// Returns why the call must fail, as a result: `Ok` if it is valid, else the error, if the
    /// reference knows it.
    pub(crate) fn validity<T: Ref>(
        &self,
        problem: &Problem<'_, T>,
        options: &Options<'_>,
    ) -> Result<(), Option<ndscatter::ScatterError>> {
        let (operator, data) = (self.case.operator, &self.case.data);
        if !options.is_supported() || !self.fits() {
            return Err(None);
        }
        let expected = operator.updates_shape(data, &self.case.indices);
        if !are_updates(&expected, problem.rounds[0].updates.shape()) {
            return Err(None);
        }
        let refusal = operator.refusal(options.refusals(), data, &problem.indices.logical());
        refusal.map_or(Ok(()), |error| Err(Some(error)))
    }
}
