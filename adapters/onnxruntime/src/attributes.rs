//! A node's attributes, and the scatter that they mean.
//!
//! Knows names and values of attributes, and which of the two domains has which.

use std::ffi::CStr;
use std::fmt::Display;

use ndscatter::{
    Accumulate, Bounds, CacheMode, Duplicates, Gather, Operator, Reduction, Scatter, ScatterError,
};
use ort_sys::OrtKernelInfo;

use crate::api::Api;
use crate::definition::Domain;
use crate::failure::Failure;

/// What a node means by its attributes.
#[derive(Debug)]
pub(crate) struct Attributes {
    pub(crate) operator: Operator,
    pub(crate) reduction: Reduction,
    pub(crate) include_self: bool,
    bounds: Bounds,
    accumulate: Accumulate,
    duplicates: Duplicates,
    negative_indices: bool,
}

/// The reductions of the standard.
const STANDARD: [Reduction; 5] = [
    Reduction::None,
    Reduction::Add,
    Reduction::Mul,
    Reduction::Min,
    Reduction::Max,
];

impl Attributes {
    /// # Safety
    ///
    /// `info` is the host's.
    pub(crate) unsafe fn read(
        api: Api,
        info: *const OrtKernelInfo,
        domain: Domain,
        operator: Operator,
    ) -> Result<Self, Failure> {
        let is_own = domain == Domain::Own;
        let node = Node { api, info, is_own };
        Ok(Self {
            operator: match operator {
                Operator::Elements { axis } => Operator::Elements {
                    axis: node.axis(axis)?,
                },
                Operator::Cache {
                    axis, update_len, ..
                } => Operator::Cache {
                    axis: node.axis(axis)?,
                    mode: node.choice(c"mode", &CacheMode::ALL)?,
                    update_len,
                },
                operator => operator,
            },
            reduction: match operator {
                Operator::Cache { .. } => Reduction::None,
                _ if is_own => node.choice(c"reduction", &Reduction::ALL)?,
                _ => node.choice(c"reduction", &STANDARD)?,
            },
            include_self: node.own_flag(c"include_self", true)?,
            negative_indices: node.own_flag(c"negative_indices", true)?,
            duplicates: match node.own_flag(c"reject_duplicates", false)? {
                true => Duplicates::Reject,
                false => Duplicates::Allow,
            },
            bounds: node.own_choice(c"bounds", &Bounds::ALL)?,
            accumulate: node.own_choice(c"accumulate", &Accumulate::ALL)?,
        })
    }

    /// The scatter that is meant, by this operator.
    pub(crate) fn scatter(&self, operator: Operator) -> Result<Scatter<'static>, ScatterError> {
        Ok(Scatter::new(operator)?
            .reduction(self.reduction)
            .include_self(self.include_self)
            .accumulate(self.accumulate)
            .duplicates(self.duplicates)
            .negative_indices(self.negative_indices)
            .bounds(self.bounds))
    }

    /// The gather that reads what the scatter writes, with the same rules for indices.
    pub(crate) fn gather(&self) -> Result<Gather<'static>, ScatterError> {
        Ok(Gather::new(self.operator)?
            .negative_indices(self.negative_indices)
            .bounds(self.bounds))
    }
}

/// A node whose attributes are read.
struct Node {
    api: Api,
    info: *const OrtKernelInfo,
    /// Whether it is of this library's domain: nodes of the standard have no attributes but
    /// the standard's, and are not asked for others.
    is_own: bool,
}

impl Node {
    fn int(&self, name: &CStr) -> Option<i64> {
        // SAFETY: `Attributes::read` was promised that `info` is the host's.
        unsafe { self.api.int_attribute(self.info, name) }
    }

    fn text(&self, name: &CStr) -> Option<String> {
        // SAFETY: as above.
        unsafe { self.api.text_attribute(self.info, name) }
    }

    /// Refuses an attribute that is there, but not of the type that was asked for: to the
    /// host both look alike.
    fn absent<T>(&self, name: &CStr, default: T) -> Result<T, Failure> {
        // SAFETY: as above.
        let is_other = unsafe { self.api.has_float_or_list(self.info, name) };
        if is_other || self.int(name).is_some() || self.text(name).is_some() {
            return Err(Failure::invalid(format_args!(
                "the attribute {name:?} has a type that it cannot have"
            )));
        }
        Ok(default)
    }

    fn axis(&self, default: isize) -> Result<isize, Failure> {
        match self.int(c"axis") {
            // One that does not fit is out of range for any rank.
            Some(axis) => Ok(isize::try_from(axis).unwrap_or(isize::MAX)),
            None => self.absent(c"axis", default),
        }
    }

    fn own_flag(&self, name: &CStr, default: bool) -> Result<bool, Failure> {
        match self.is_own.then(|| self.int(name)) {
            None => Ok(default),
            Some(None) => self.absent(name, default),
            Some(Some(0)) => Ok(false),
            Some(Some(1)) => Ok(true),
            Some(Some(other)) => Err(Failure::invalid(format_args!(
                "the attribute {name:?} is {other}; use 0 or 1"
            ))),
        }
    }

    /// One of several values by its name; the first one is the default.
    fn choice<T: Copy + Display>(&self, name: &CStr, choices: &[T]) -> Result<T, Failure> {
        let Some(text) = self.text(name) else {
            return self.absent(name, choices[0]);
        };
        let names: Vec<_> = choices.iter().map(T::to_string).collect();
        let chosen = names.iter().position(|choice| *choice == text);
        chosen.map(|position| choices[position]).ok_or_else(|| {
            let names = names.join(", ");
            Failure::invalid(format_args!(
                "the attribute {name:?} is {text:?}; use one of {names}"
            ))
        })
    }

    fn own_choice<T: Copy + Display>(&self, name: &CStr, choices: &[T]) -> Result<T, Failure> {
        match self.is_own {
            true => self.choice(name, choices),
            false => Ok(choices[0]),
        }
    }
}
