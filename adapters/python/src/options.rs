//! Conversion of the options of a call, which are strings and booleans in Python, to the builders
//! `Scatter` and `Gather` of the crate.
//!
//! This module knows the names of the Python arguments. It does not know arrays.

use std::str::FromStr;

use ndscatter::{
    Accumulate, Bounds, Duplicates, Gather, Operator, Reduction, Scatter, UnknownName,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::failure::Failure;

/// The options of a call. The operator of the call is not among the options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    pub(crate) reduction: Reduction,
    pub(crate) include_self: bool,
    pub(crate) accumulate: Accumulate,
    pub(crate) bounds: Bounds,
    pub(crate) duplicates: Duplicates,
    pub(crate) negative_indices: bool,
}

impl Meaning {
    /// The default options. Updates replace the existing values. Negative indices count from the
    /// end of the axis. An index out of bounds is an error.
    pub(crate) const DEFAULT: Self = Self {
        reduction: Reduction::None,
        include_self: true,
        accumulate: Accumulate::Native,
        bounds: Bounds::Error,
        duplicates: Duplicates::Allow,
        negative_indices: true,
    };

    #[inline]
    pub(crate) fn parse(
        reduction: &str,
        include_self: bool,
        accumulate: &str,
        bounds: &str,
        duplicates: &str,
        negative_indices: bool,
    ) -> PyResult<Self> {
        Ok(Self {
            reduction: choose("reduction", reduction)?,
            include_self,
            accumulate: choose("accumulate", accumulate)?,
            bounds: choose("bounds", bounds)?,
            duplicates: choose("duplicates", duplicates)?,
            negative_indices,
        })
    }

    /// Returns the options of a gather, or of a scatter into a KV cache. Gathers and cache scatters
    /// have no reduction. All options except `bounds` and `negative_indices` have default values.
    #[inline]
    pub(crate) fn of_indices(bounds: &str, negative_indices: bool) -> PyResult<Self> {
        Ok(Self {
            bounds: choose("bounds", bounds)?,
            negative_indices,
            ..Self::DEFAULT
        })
    }

    /// Returns the options of writes in place. A negative index never counts from the end.
    pub(crate) fn of_rows(bounds: &str, duplicates: &str) -> PyResult<Self> {
        Ok(Self {
            duplicates: choose("duplicates", duplicates)?,
            ..Self::of_indices(bounds, false)?
        })
    }

    #[inline]
    pub(crate) fn scatter(self, operator: Operator) -> PyResult<Scatter<'static>> {
        let scatter = Scatter::new(operator).map_err(Failure)?;
        Ok(scatter
            .reduction(self.reduction)
            .include_self(self.include_self)
            .accumulate(self.accumulate)
            .duplicates(self.duplicates)
            .bounds(self.bounds)
            .negative_indices(self.negative_indices))
    }

    #[inline]
    pub(crate) fn gather(self, operator: Operator) -> PyResult<Gather<'static>> {
        let gather = Gather::new(operator).map_err(Failure)?;
        Ok((gather.bounds(self.bounds)).negative_indices(self.negative_indices))
    }
}

/// Parses the string `name`, which is the value of the Python argument `option`.
#[inline]
pub(crate) fn choose<T: FromStr<Err = UnknownName>>(option: &str, name: &str) -> PyResult<T> {
    let unknown = |unknown| PyValueError::new_err(format!("`{option}`: {unknown}"));
    name.parse().map_err(unknown)
}
