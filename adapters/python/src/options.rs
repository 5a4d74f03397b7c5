//! Options as text, and operators with their axes.
//!
//! Knows names. Knows nothing of arrays.

use ndscatter::{
    Accumulate, Bounds, CacheMode, Duplicates, Gather, Reduction, Scatter, ScatterError,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::failure::Failure;

/// What a scatter means beside its operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    pub(crate) reduction: Reduction,
    pub(crate) include_self: bool,
    pub(crate) accumulate: Accumulate,
    pub(crate) duplicates: Duplicates,
}

impl Meaning {
    /// Updates replace what is there.
    pub(crate) const REPLACE: Self = Self {
        reduction: Reduction::None,
        include_self: true,
        accumulate: Accumulate::Native,
        duplicates: Duplicates::Allow,
    };

    #[inline]
    pub(crate) fn parse(
        reduction: &str,
        include_self: bool,
        accumulate: &str,
        duplicates: &str,
    ) -> PyResult<Self> {
        Ok(Self {
            reduction: parse_reduction(reduction)?,
            include_self,
            accumulate: choose("accumulate", accumulate, &ACCUMULATE)?,
            duplicates: choose("duplicates", duplicates, &DUPLICATES)?,
        })
    }
}

/// How indices are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    bounds: Bounds,
    negative_indices: bool,
}

impl Rules {
    #[inline]
    pub(crate) fn parse(bounds: &str, negative_indices: bool) -> PyResult<Self> {
        Ok(Self {
            bounds: choose("bounds", bounds, &BOUNDS)?,
            negative_indices,
        })
    }

    /// As numpy has them.
    pub(crate) const NUMPY: Self = Self {
        bounds: Bounds::Error,
        negative_indices: true,
    };

    /// Of numbers of bins.
    pub(crate) const BINS: Self = Self {
        bounds: Bounds::Error,
        negative_indices: false,
    };
}

const ACCUMULATE: [(&str, Accumulate); 2] =
    [("native", Accumulate::Native), ("wide", Accumulate::Wide)];
const DUPLICATES: [(&str, Duplicates); 2] =
    [("allow", Duplicates::Allow), ("reject", Duplicates::Reject)];
const BOUNDS: [(&str, Bounds); 3] = [
    ("error", Bounds::Error),
    ("skip", Bounds::Skip),
    ("clamp", Bounds::Clamp),
];
const MODES: [(&str, CacheMode); 2] = [
    ("linear", CacheMode::Linear),
    ("circular", CacheMode::Circular),
];

#[inline]
fn choose<T: Copy>(option: &str, name: &str, values: &[(&str, T)]) -> PyResult<T> {
    let found = values.iter().find(|&&(known, _)| known == name);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let known: Vec<_> = values
            .iter()
            .map(|(known, _)| format!("{known:?}"))
            .collect();
        PyValueError::new_err(format!(
            "`{option}` is {name:?}; use one of {}",
            known.join(", ")
        ))
    })
}

pub(crate) fn parse_mode(name: &str) -> PyResult<CacheMode> {
    choose("mode", name, &MODES)
}

#[inline]
fn parse_reduction(name: &str) -> PyResult<Reduction> {
    // The commonest, without the copy in lower case that parsing makes.
    match name {
        "none" => Ok(Reduction::None),
        "add" => Ok(Reduction::Add),
        name => (name.parse()).map_err(|unknown: ndscatter::UnknownReduction| {
            PyValueError::new_err(unknown.to_string())
        }),
    }
}

/// Which operator, scatter or gather.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operator {
    Nd { batch_dims: usize },
    Along { axis: isize },
    Elements { axis: isize },
    Cache { axis: isize, mode: CacheMode },
}

impl Operator {
    #[inline]
    pub(crate) fn scatter(self, meaning: Meaning, rules: Rules) -> Scatter<'static> {
        let scatter = match self {
            Self::Nd { .. } => Scatter::nd(),
            Self::Along { axis } => Scatter::update(axis),
            Self::Elements { axis } => Scatter::elements(axis),
            Self::Cache { axis, mode } => Scatter::cache(axis, mode),
        };
        scatter
            .reduction(meaning.reduction)
            .include_self(meaning.include_self)
            .accumulate(meaning.accumulate)
            .duplicates(meaning.duplicates)
            .bounds(rules.bounds)
            .negative_indices(rules.negative_indices)
    }

    #[inline]
    pub(crate) fn gather(self, rules: Rules) -> Gather<'static> {
        let gather = match self {
            Self::Nd { batch_dims } => Gather::nd(batch_dims),
            Self::Along { axis } => Gather::along(axis),
            // There is no gather from a cache.
            Self::Elements { axis } | Self::Cache { axis, .. } => Gather::elements(axis),
        };
        (gather.bounds(rules.bounds)).negative_indices(rules.negative_indices)
    }

    pub(crate) fn is_of_elements(self) -> bool {
        matches!(self, Self::Elements { .. })
    }

    /// The same operator on data that have one axis more behind the `rank` that they had,
    /// for tuples of `tuple_len` coordinates; the new axis is out of its reach.
    pub(crate) fn before_last_axis(self, rank: usize, tuple_len: usize) -> PyResult<Self> {
        let from_front = |axis: isize| {
            let found = if axis < 0 {
                axis.checked_add_unsigned(rank)
            } else {
                Some(axis)
            };
            let found = found.filter(|&found| (0..rank.cast_signed()).contains(&found));
            found.ok_or(Failure(ScatterError::AxisOutOfRange { axis, rank }))
        };
        Ok(match self {
            Self::Nd { batch_dims } => {
                let rank = rank.saturating_sub(batch_dims);
                if tuple_len > rank {
                    return Err(Failure(ScatterError::TupleLength { tuple_len, rank }).into());
                }
                self
            }
            Self::Along { axis } => Self::Along {
                axis: from_front(axis)?,
            },
            Self::Elements { axis } => Self::Elements {
                axis: from_front(axis)?,
            },
            Self::Cache { axis, mode } => Self::Cache {
                axis: from_front(axis)?,
                mode,
            },
        })
    }
}
