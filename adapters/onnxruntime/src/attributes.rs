//! A node's attributes, and the scatter that they mean.
//!
//! Knows names and values of attributes, and which of the two domains has which.

use std::ffi::CStr;

use ndscatter::{Accumulate, Bounds, CacheMode, Duplicates, Reduction, Scatter};
use ort_sys::OrtKernelInfo;

use crate::api::Api;
use crate::definition::{Domain, Meaning};
use crate::failure::Failure;

/// What a node means by its attributes.
#[derive(Debug)]
pub(crate) struct Attributes {
    pub(crate) meaning: Meaning,
    pub(crate) axis: isize,
    pub(crate) mode: CacheMode,
    pub(crate) reduction: Reduction,
    pub(crate) include_self: bool,
    pub(crate) bounds: Bounds,
    accumulate: Accumulate,
    duplicates: Duplicates,
    negative_indices: bool,
}

const STANDARD: &[(&str, Reduction)] = &[
    ("none", Reduction::None),
    ("add", Reduction::Add),
    ("mul", Reduction::Mul),
    ("min", Reduction::Min),
    ("max", Reduction::Max),
];

const OWN: &[(&str, Reduction)] = &[
    ("none", Reduction::None),
    ("add", Reduction::Add),
    ("sub", Reduction::Sub),
    ("mul", Reduction::Mul),
    ("min", Reduction::Min),
    ("max", Reduction::Max),
    ("mean", Reduction::Mean),
];

impl Attributes {
    /// # Safety
    ///
    /// `info` is the host's.
    pub(crate) unsafe fn read(
        api: Api,
        info: *const OrtKernelInfo,
        (domain, meaning): (Domain, Meaning),
    ) -> Result<Self, Failure> {
        let node = Node { api, info };
        let is_own = domain == Domain::Own;
        let is_cache = meaning == Meaning::Cache;
        // Not asked for where the operator has none of that name.
        let own = |name, default| {
            if is_own {
                node.flag(name, default)
            } else {
                Ok(default)
            }
        };
        Ok(Self {
            meaning,
            axis: match meaning {
                Meaning::Nd => 0,
                Meaning::Elements => node.axis(0)?,
                Meaning::Cache => node.axis(-2)?,
            },
            mode: if is_cache {
                node.choice(
                    c"mode",
                    &[
                        ("linear", CacheMode::Linear),
                        ("circular", CacheMode::Circular),
                    ],
                )?
            } else {
                CacheMode::Linear
            },
            reduction: match (is_cache, is_own) {
                (true, _) => Reduction::None,
                (false, true) => node.choice(c"reduction", OWN)?,
                (false, false) => node.choice(c"reduction", STANDARD)?,
            },
            include_self: own(c"include_self", true)?,
            negative_indices: own(c"negative_indices", true)?,
            duplicates: if own(c"reject_duplicates", false)? {
                Duplicates::Reject
            } else {
                Duplicates::Allow
            },
            bounds: if is_own {
                node.choice(
                    c"bounds",
                    &[
                        ("error", Bounds::Error),
                        ("skip", Bounds::Skip),
                        ("clamp", Bounds::Clamp),
                    ],
                )?
            } else {
                Bounds::Error
            },
            accumulate: if is_own {
                node.choice(
                    c"accumulate",
                    &[("native", Accumulate::Native), ("wide", Accumulate::Wide)],
                )?
            } else {
                Accumulate::Native
            },
        })
    }

    /// The scatter that is meant, along `axis`.
    pub(crate) fn scatter(&self, axis: isize) -> Scatter<'static> {
        let operator = match self.meaning {
            Meaning::Nd => Scatter::nd(),
            Meaning::Elements => Scatter::elements(axis),
            Meaning::Cache => Scatter::cache(axis, self.mode),
        };
        operator
            .reduction(self.reduction)
            .include_self(self.include_self)
            .accumulate(self.accumulate)
            .duplicates(self.duplicates)
            .negative_indices(self.negative_indices)
            .bounds(self.bounds)
    }

    /// The gather that reads what the scatter writes, with the same rules for indices;
    /// `None` of a cache, which has none.
    pub(crate) fn gather(&self) -> Option<ndscatter::Gather<'static>> {
        let gather = match self.meaning {
            Meaning::Nd => ndscatter::Gather::nd(0),
            Meaning::Elements => ndscatter::Gather::elements(self.axis),
            Meaning::Cache => return None,
        };
        Some(
            gather
                .negative_indices(self.negative_indices)
                .bounds(self.bounds),
        )
    }
}

/// A node whose attributes are read.
struct Node {
    api: Api,
    info: *const OrtKernelInfo,
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

    fn flag(&self, name: &CStr, default: bool) -> Result<bool, Failure> {
        match self.int(name) {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(other) => Err(Failure::invalid(format_args!(
                "the attribute {name:?} is {other}; use 0 or 1"
            ))),
            None => self.absent(name, default),
        }
    }

    /// One of several names, the first of which is the default.
    fn choice<T: Copy>(&self, name: &CStr, choices: &[(&str, T)]) -> Result<T, Failure> {
        let Some(text) = self.text(name) else {
            return self.absent(name, choices[0].1);
        };
        let chosen = choices.iter().find(|(choice, _)| *choice == text);
        chosen.map(|&(_, meaning)| meaning).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|&(choice, _)| choice).collect();
            let names = names.join(", ");
            Failure::invalid(format_args!(
                "the attribute {name:?} is {text:?}; use one of {names}"
            ))
        })
    }
}
