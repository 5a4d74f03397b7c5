//! Reads the attributes of a node and builds its scatter.
//!
//! This module knows the names and values of the attributes. It knows which attributes the
//! operators of each domain have.

use std::ffi::CStr;
use std::fmt::Display;

use ndscatter::{
    Accumulate, Bounds, CacheMode, Duplicates, Gather, Operator, Reduction, Scatter, ScatterError,
};
use ort_sys::OrtKernelInfo;

use crate::api::Api;
use crate::definition::Domain;
use crate::failure::Failure;

/// The checked attributes of a node.
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

/// The reductions of the ONNX standard.
const STANDARD: [Reduction; 5] = [
    Reduction::None,
    Reduction::Add,
    Reduction::Mul,
    Reduction::Min,
    Reduction::Max,
];

impl Attributes {
    /// Reads and checks the attributes of a node. The default of the attribute `axis` is the axis
    /// of `operator`.
    ///
    /// # Safety
    ///
    /// `info` is a valid object of the host.
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

    /// Returns a scatter with the operator `operator` and the other attributes of `self`.
    pub(crate) fn scatter(&self, operator: Operator) -> Result<Scatter<'static>, ScatterError> {
        Ok(Scatter::new(operator)?
            .reduction(self.reduction)
            .include_self(self.include_self)
            .accumulate(self.accumulate)
            .duplicates(self.duplicates)
            .negative_indices(self.negative_indices)
            .bounds(self.bounds))
    }

    /// Returns the gather that reads the elements that the scatter writes. The gather treats
    /// negative indices and indices out of bounds as the scatter does.
    pub(crate) fn gather(&self) -> Result<Gather<'static>, ScatterError> {
        Ok(Gather::new(self.operator)?
            .negative_indices(self.negative_indices)
            .bounds(self.bounds))
    }
}

/// A node while its attributes are read.
struct Node {
    api: Api,
    info: *const OrtKernelInfo,
    /// Whether the node belongs to the domain of this library. Only nodes of this domain have the
    /// attributes that the ONNX standard does not define.
    is_own: bool,
}

impl Node {
    fn int(&self, name: &CStr) -> Option<i64> {
        // SAFETY: `info` is valid (contract of `Attributes::read`).
        unsafe { self.api.int_attribute(self.info, name) }
    }

    fn text(&self, name: &CStr) -> Option<String> {
        // SAFETY: `info` is valid (contract of `Attributes::read`).
        unsafe { self.api.text_attribute(self.info, name) }
    }

    /// Returns `default` for an attribute that the host did not find with the expected type. Fails
    /// if the node has the attribute `name` as an integer, a string, a float, or a list of floats
    /// or integers.
    ///
    /// When the library requests an attribute, the host does not distinguish a missing attribute
    /// from an attribute of another type.
    fn absent<T>(&self, name: &CStr, default: T) -> Result<T, Failure> {
        // SAFETY: `info` is valid (contract of `Attributes::read`).
        let is_other = unsafe { self.api.has_float_or_list(self.info, name) };
        if is_other || self.int(name).is_some() || self.text(name).is_some() {
            return Err(Failure::invalid(format_args!(
                "the attribute {name:?} has a type that the operator does not allow"
            )));
        }
        Ok(default)
    }

    fn axis(&self, default: isize) -> Result<isize, Failure> {
        match self.int(c"axis") {
            // An axis that does not fit in `isize` is out of range for any rank, and so is
            // `isize::MAX`.
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

    /// Returns the element of `choices` whose name equals the string attribute `name`. Returns the
    /// first element of `choices` if the node does not have the attribute. Fails if no name
    /// equals the attribute.
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
